"""Links between the pages lead to files and headings that exist."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from tests.docs.pages import DOCS, PAGES, ROOT, anchors, links


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    broken = []
    for link in links(page):
        target = urlsplit(link)
        if target.scheme:
            continue
        file = (page.parent / target.path).resolve() if target.path else page
        if not file.is_file() or (target.fragment and target.fragment not in anchors(file)):
            broken.append(link)
    assert broken == []


def test_pages_of_the_site_link_to_nothing_outside_of_it():
    # such a link works in the repository, and is broken on the site
    outside = [
        (str(page.relative_to(ROOT)), link)
        for page in PAGES
        if DOCS in page.parents
        for link in links(page)
        if not urlsplit(link).scheme
        and not (page.parent / urlsplit(link).path).resolve().is_relative_to(DOCS)
    ]
    assert outside == []


def test_every_page_can_be_reached_from_the_first_one():
    reached, left = set(), [DOCS / "index.md"]
    while left:
        page = left.pop()
        if page in reached:
            continue
        reached.add(page)
        found = ((page.parent / urlsplit(link).path).resolve() for link in links(page) if urlsplit(link).path)
        left.extend(file for file in found if file.suffix == ".md" and file.is_file())
    assert sorted(set(DOCS.rglob("*.md")) - reached) == []
