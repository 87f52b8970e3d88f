"""The wheel holds the whole product, and what the Makefile sets up is what each target needs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import pgtrickle

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy, because a build leaves files behind."""
    copy = tmp_path_factory.mktemp("checkout")
    shutil.copytree(SOURCE, copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    built = copy / "dist"
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(built), str(copy)], check=True)
    (found,) = built.glob("pgtrickle-*.whl")
    return found


def test_the_wheel_has_every_file_of_the_source(wheel):
    expected = {
        str(file.relative_to(SOURCE))
        for pattern in ("*.py", "*.sql", "*.java", "py.typed", "page/*", "page/*/*")
        for file in (SOURCE / "pgtrickle").rglob(pattern)
        if file.is_file()
    }
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("pgtrickle/")}
    assert packed == expected


def test_the_command_runs_from_the_wheel(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    entry = next(tmp_path.glob("*.dist-info")) / "entry_points.txt"
    assert "pgtrickle = pgtrickle.interfaces.cli:main" in entry.read_text()
    for option, expected in (("--version", f"pgtrickle {pgtrickle.__version__}\n"), ("--help", "install")):
        command = [sys.executable, "-m", "pgtrickle.interfaces.cli", option]
        done = subprocess.run(
            command,
            check=True,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={"PYTHONPATH": str(tmp_path)},
        )
        assert expected in done.stdout


def test_the_package_has_the_version_of_the_project():
    assert _project()["version"] == pgtrickle.__version__


def test_every_dependency_has_a_floor():
    assert all(re.search(r">=|==", dependency) for dependency in _project()["dependencies"])


def test_the_demonstration_sets_up_no_pooler_and_the_tests_do():
    assert "scripts/setup pooler" not in _commands("demo")
    for target in ("fast", "test", "test-all", "bench"):
        assert "scripts/setup pooler" in _commands(target)


def test_only_the_lanes_that_run_dbt_set_it_up():
    for target in ("demo", "fast", "bench"):
        assert "scripts/setup dbt" not in _commands(target)
    for target in ("test", "test-all"):
        assert "scripts/setup dbt" in _commands(target)


def test_the_demonstration_sets_up_no_promtool_and_the_tests_do():
    assert "scripts/setup promtool" not in _commands("demo")
    for target in ("fast", "test", "test-all"):
        assert "scripts/setup promtool" in _commands(target)


def _project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def _commands(target: str) -> list[str]:
    """What make would run."""
    command = ["make", "--dry-run", "--no-print-directory", target]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
