"""The page and the description of the API are served from the package."""

from __future__ import annotations

import re

import pytest

from pgtrickle.interfaces.http.access_table import ACCESS, API
from pgtrickle.interfaces.http.routes.page import page_files


def test_the_page_is_served_at_the_root(api):
    answer = api.client.get("/")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert answer.content == page_files()["index.html"].content
    assert answer.headers["Cache-Control"] == "no-cache"


def test_every_file_of_the_page_is_served_with_a_tag(api):
    for name, file in page_files().items():
        answer = api.client.get(f"/{name}")
        assert (answer.status_code, answer.content) == (200, file.content)
        again = api.client.get(f"/{name}", headers={"If-None-Match": answer.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert api.client.head(f"/{name}").content == b""


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/..%2fserver.py",
        "/%2e%2e/server.py",
        "/server.py",
        "/page/index.html",
        "/x",
    ],
)
def test_nothing_but_the_page_is_served(api, path):
    answer = api.client.get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, "PGT-H006")


def test_the_page_needs_no_other_server_and_no_inline_script():
    for name, file in page_files().items():
        text = file.content.decode("utf-8", "replace")
        if name.endswith(".html"):
            assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|<style|\sstyle=", text), name
        if name.endswith((".html", ".css", ".js")):
            loaded = re.findall(r"""(?:src|href)=["'](https?:)?//|@import|url\(["']?https?:""", text)
            assert loaded == [], name


def test_the_description_lists_every_route_of_the_api(api):
    document = api.client.get(f"{API}/openapi.json").json()
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    expected = {
        (method, path)
        for method, path in ACCESS
        if path in ("/healthz", "/readyz", "/metrics")
        or (path.startswith(API) and path != f"{API}/openapi.json")
    }
    assert described == expected


def test_every_route_is_described_with_its_answer_and_its_errors(api):
    document = api.client.get(f"{API}/openapi.json").json()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["description"].endswith("."), path
            answers = operation["responses"]
            good = answers.get("200") or answers.get("201") or answers.get("204")
            assert good is not None, path
            if "204" not in answers:
                content = next(iter(good["content"].values()))
                assert content["schema"], (method, path)
            if path.startswith(API):
                assert "application/problem+json" in answers["default"]["content"], path


def test_references_of_the_description_exist(api):
    text = api.client.get(f"{API}/openapi.json").text
    document = api.client.get(f"{API}/openapi.json").json()
    known = set(document["components"]["schemas"])
    assert "Problem" in known
    assert set(re.findall(r"#/components/schemas/(\w+)", text)) <= known
