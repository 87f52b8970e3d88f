"""The web page: the files of the package, with an ETag each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from fastapi import APIRouter, Request, Response

from pgtrickle.model.errors import UnknownAddress

_SUFFIXES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
}
INDEX: Final = "index.html"


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file of the page."""

    content: bytes
    media_type: str
    tag: str


def page_files() -> dict[str, PageFile]:
    """All files of the page by path. They are few and small, so they stay in memory."""
    found = {}
    for path, file in _files_below(files("pgtrickle.interfaces.http").joinpath("page")):
        suffix = f".{file.name.rpartition('.')[2]}"
        if suffix in _SUFFIXES:
            content = file.read_bytes()
            tag = f'"{sha256(content).hexdigest()[:20]}"'
            found[path] = PageFile(content, _SUFFIXES[suffix], tag)
    return found


def _files_below(directory: Traversable, prefix: str = "") -> Iterator[tuple[str, Traversable]]:
    for entry in directory.iterdir():
        if entry.is_dir():
            yield from _files_below(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, entry


def router(index_file: str = INDEX) -> APIRouter:
    """The routes. They come last, because they take every path of one or two parts."""
    routes = APIRouter(include_in_schema=False)
    known = page_files()

    def answer(request: Request, name: str) -> Response:
        file = known.get(name)
        if file is None:
            raise UnknownAddress(f"there is nothing at /{name}", hint="the page is at /")
        # browsers ask each time whether it has changed, so an upgrade shows at once
        headers = {"ETag": file.tag, "Cache-Control": "no-cache"}
        if file.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        body = b"" if request.method == "HEAD" else file.content
        return Response(body, media_type=file.media_type, headers=headers)

    @routes.api_route("/", methods=["GET", "HEAD"])
    async def index(request: Request) -> Response:
        return answer(request, index_file)

    @routes.api_route("/{name}", methods=["GET", "HEAD"])
    async def file(name: str, request: Request) -> Response:
        return answer(request, name)

    @routes.api_route("/{directory}/{name}", methods=["GET", "HEAD"])
    async def file_below(directory: str, name: str, request: Request) -> Response:
        return answer(request, f"{directory}/{name}")

    return routes
