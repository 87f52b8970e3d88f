"""The demonstration ends by itself, has checked every stream table, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pgtrickle.interfaces.demo.__main__ import demo, next_steps
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
    assert done.stdout.endswith("    pgtrickle run\n")
    assert left == []
    assert [title for title in _titles() if str(directory) in title] == []


def test_the_next_steps_put_the_command_on_the_path_unless_it_is_there():
    project = Path("/home/me/my project")
    assert next_steps("/usr/bin/pgtrickle", project / ".venv", project).splitlines()[:4] == [
        "",
        "Next, try it with your own database:",
        "",
        "    export PGTRICKLE_DSN=postgresql://you@localhost/your_database",
    ]
    assert "    . .venv/bin/activate\n" in next_steps(None, project / ".venv", project)
    elsewhere = next_steps(None, project / ".venv", Path("/tmp"))
    assert "    . '/home/me/my project/.venv'/bin/activate\n" in elsewhere


class _Prepared(Exception):
    """The demonstration has got as far as it needs to."""


@pytest.mark.parametrize(("given", "is_announced"), [(None, True), (5.0, False)])
def test_without_a_terminal_it_says_when_it_ends(given, is_announced, monkeypatch, capsys):
    def prepare(stack):
        raise _Prepared

    monkeypatch.setattr("pgtrickle.interfaces.demo.__main__._prepare", prepare)
    with pytest.raises(_Prepared):
        demo(given)
    assert ("this ends 60 s after the stream tables are loaded" in capsys.readouterr().out) is is_announced


def _titles() -> list[str]:
    titles = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            titles.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return titles
