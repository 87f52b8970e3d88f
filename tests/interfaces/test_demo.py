"""The demonstration ends by itself, has checked every stream table, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pgtrickle.interfaces.demo.shop import EXAMPLES


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.own_server
def test_the_demonstration_follows_verifies_and_leaves_nothing_behind():
    directory = Path(tempfile.mkdtemp(prefix="pgtrickle-test-"))
    directory.chmod(0o755)
    command = [sys.executable, "-m", "pgtrickle.interfaces.demo", "--seconds", "6"]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "TMPDIR": str(directory)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        left = list(directory.glob("pgtrickle-*"))
    finally:
        shutil.rmtree(directory)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"All {len(EXAMPLES)} stream tables equal their queries." in done.stdout
    assert left == []
    assert [title for title in _titles() if str(directory) in title] == []


def _titles() -> list[str]:
    titles = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            titles.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return titles
