"""Every request passes one layer: host, origin, token. What is not listed needs the token."""

from __future__ import annotations

import re

import pytest

from pgtrickle.interfaces.http.access import Need
from pgtrickle.interfaces.http.access_table import ACCESS
from pgtrickle.interfaces.http.application import build
from pgtrickle.model.errors import BadSetting
from pgtrickle.model.http_settings import HttpAddress
from tests.http.conftest import plain_client

HEADERS = {
    "content-security-policy",
    "x-content-type-options",
    "x-frame-options",
    "referrer-policy",
    "cross-origin-resource-policy",
}


def routes(api) -> set[tuple[str, str]]:
    """Every method and path that the server has."""
    return {
        (method, str(getattr(route, "path", "")))
        for route in build(api.server.context).routes
        for method in getattr(route, "methods", ())
    }


def concrete(path: str) -> str:
    return re.sub(r"\{\w+\}", "nope", path)


def elsewhere(serve, **more):
    """A server that listens on all interfaces, reached by its loopback address."""
    return serve(http=HttpAddress("0.0.0.0", 0), **more)


def test_every_route_says_what_it_needs(api):
    assert routes(api) == set(ACCESS)


def test_every_route_that_needs_the_token_is_refused_without_it(api, shop):
    for (method, path), need in ACCESS.items():
        if path.endswith("/events"):
            continue
        answer = api.client.request(method, concrete(path))
        assert (answer.status_code == 401) == (need is Need.TOKEN), path
        assert answer.headers.keys() >= HEADERS


def test_no_write_and_nothing_with_rows_is_open_to_readers():
    for (method, path), need in ACCESS.items():
        writes = method not in ("GET", "HEAD")
        shows_rows = any(part in path for part in ("rows", "preview", "changes"))
        if (writes or shows_rows) and not path.endswith("/session"):
            assert need is Need.TOKEN, path


def test_elsewhere_everything_but_the_page_and_probes_needs_the_token(serve):
    api = elsewhere(serve)
    base = f"http://127.0.0.1:{api.server.address.port}"
    with plain_client(base) as client:
        for (method, path), need in ACCESS.items():
            answer = client.request(method, concrete(path))
            assert (answer.status_code == 401) == (need is not Need.NOTHING), path
        assert client.get("/api/v1/overview", headers=api.bearer).status_code == 200
        assert client.get("/readyz").json()["checks"] == {}
        assert client.get("/api/v1/session").json()["token_required_for_reads"] is True


def test_elsewhere_a_token_must_be_configured(serve):
    with pytest.raises(BadSetting, match=r"needs a token to listen on 0\.0\.0\.0"):
        elsewhere(serve, http_token=None)


@pytest.mark.parametrize(
    "header",
    ["Bearer wrong-token-0123456789", "Bearer", "Basic YTpi", "bearer\ta-token", "x" * 5000],
)
def test_a_wrong_token_is_refused_even_where_none_is_needed(api, header):
    answer = api.get("/overview", headers={"Authorization": header})
    assert (answer.status_code, answer.json()["code"]) == (401, "PGT-H002")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_the_token_is_in_no_answer_and_no_log(api, caplog):
    for path in ("/overview", "/tables/nope", "/nothing"):
        assert api.token not in api.get(path, token=True).text
    wrong = api.post("/session", {"token": api.token, "more": api.token}, token=False)
    assert (wrong.status_code, api.token in wrong.text) == (422, False)
    assert api.token not in caplog.text
    assert api.token not in repr(api.server.token) + repr(api.settings) + repr(vars(api.server))


def test_tokens_cannot_be_guessed_fast(api):
    def guess(token: str) -> int:
        return int(api.get("/overview", headers={"Authorization": f"Bearer {token}"}).status_code)

    answers = [guess(f"guess-number-{number:010}") for number in range(25)]
    assert answers[:20] == [401] * 20
    assert 429 in answers[20:]
    assert guess(api.token) == 429
    refused = api.get("/overview", token=True)
    assert (refused.json()["code"], refused.headers["Retry-After"]) == ("PGT-H004", "30")
    assert api.get("/overview").status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.test",
        "evil.test:8432",
        "127.0.0.1.evil.test",
        "localhost@evil.test",
        "",
        "[::1",
        "2130706433",
        "0",
    ],
)
def test_a_name_that_is_not_ours_is_refused(api, host):
    answer = api.get("/overview", headers={"Host": host})
    assert (answer.status_code, answer.json()["code"]) == (403, "PGT-H003")
    page = api.client.get("/", headers={"Host": host})
    assert page.status_code == 403


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "127.0.0.1:1", "[::1]:8432"])
def test_names_of_the_loopback_interface_are_ours(api, host):
    assert api.get("/overview", headers={"Host": host}).status_code == 200


def test_with_the_token_any_name_is_ours(api):
    assert api.get("/overview", token=True, headers={"Host": "10.1.2.3:8432"}).status_code == 200


@pytest.mark.parametrize("host", ["10.1.2.3:8432", "sidecar.shop.svc", ""])
def test_probes_are_answered_by_any_name_and_learn_nothing_else(api, host):
    assert api.get("/healthz", headers={"Host": host}).json() == {"ok": True}
    assert api.get("/readyz", headers={"Host": host}).json() == {"ready": True, "checks": {}}


def test_an_address_for_all_interfaces_is_no_name(serve):
    api = elsewhere(serve)
    base = f"http://127.0.0.1:{api.server.address.port}"
    with plain_client(base) as client:
        assert client.get("/", headers={"Host": "0.0.0.0"}).status_code == 403
        assert client.get("/", headers={"Host": "localhost"}).status_code == 200


def test_further_names_can_be_allowed(serve):
    api = serve(http_host=("shop.test",))
    assert api.get("/overview", headers={"Host": "Shop.Test:443"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.test"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1.evil.test"},
        {"Origin": ""},
    ],
)
@pytest.mark.parametrize("token", [False, True])
def test_other_origins_are_refused_with_and_without_the_token(api, headers, token):
    for method, path in (("GET", "/overview"), ("GET", "/events"), ("POST", "/tables"), ("POST", "/session")):
        answer = api.send(method, path, token=token, headers=headers, json={} if method == "POST" else None)
        assert (answer.status_code, answer.json()["code"]) == (403, "PGT-H003"), path


def test_no_other_origin_may_ask_for_anything(api):
    answer = api.client.options(
        "/api/v1/tables",
        headers={"Origin": "http://evil.test", "Access-Control-Request-Method": "POST"},
    )
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert not [name for name in api.get("/overview").headers if name.startswith("access-control")]


def test_another_site_may_link_to_the_page(api):
    assert api.client.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200
