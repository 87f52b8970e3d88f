"""The pages build into a site without a warning, and the site asks no other host for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.docs.pages import ROOT

_LOADED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?(https?:)?//|<link[^>]*href=["']?(?:https?:)?//|"""
    r"""@import\s+["'(]*(?:https?:)?//|url\(\s*["']?(?:https?:)?//""",
    re.IGNORECASE,
)


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mkdocs",
            "build",
            "--strict",
            "--quiet",
            "--site-dir",
            str(tmp_path / "site"),
        ],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    pages = [file for file in (tmp_path / "site").rglob("*") if file.suffix in (".html", ".css")]
    assert pages
    found = {
        str(file.relative_to(tmp_path)): hit[0] for file in pages if (hit := _LOADED.search(file.read_text()))
    }
    assert found == {}
