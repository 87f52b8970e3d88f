"""The unit: systemd accepts it, and it is confined."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from tests.packaging.files import PACKAGING, UNIT

EXPOSURE = 2.5
"""The most that `systemd-analyze security` may find: 0 is confined, 10 is not."""


@pytest.fixture
def analyze():
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed here")
    return program


def test_systemd_accepts_the_unit(analyze, tmp_path):
    unit = tmp_path / UNIT.name
    # the command is not installed where the tests run
    unit.write_text(UNIT.read_text().replace("/opt/pgtrickle/bin/pgtrickle", "/bin/true"))
    done = subprocess.run([analyze, "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_is_confined(analyze):
    done = subprocess.run(
        [analyze, "security", "--offline=true", "--no-pager", UNIT],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"exposure level for .*?: ([\d.]+)", done.stdout)
    if found is None:
        pytest.skip("this systemd cannot judge a unit that is not loaded")
    assert float(found[1]) <= EXPOSURE


def test_refreshes_have_time_to_finish():
    text = UNIT.read_text()
    assert int(re.findall(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)[0]) > 30
    assert "KillMode=mixed" in text


def test_the_example_has_what_the_unit_reads():
    example = (PACKAGING / "systemd" / "example.env").read_text()
    for variable in re.findall(r"\$(\w+)", UNIT.read_text()):
        assert f"{variable}=" in example
    assert "PGTRICKLE_DSN=" in example
