"""The image: pinned packages, no root, and steps that run in a clean folder."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pgtrickle
from tests.packaging.files import DOCKERFILE, ROOT, instructions

REQUIREMENTS = ROOT / "packaging" / "docker" / "requirements.txt"


def test_the_packages_are_those_that_the_tests_run_with():
    written = runpy.run_path(str(ROOT / "scripts" / "runtime-requirements"))["runtime_requirements"]()
    assert REQUIREMENTS.read_text() == written, "run: .venv/bin/python scripts/runtime-requirements"


def test_every_package_is_pinned_with_hashes_and_no_index_is_named():
    text = REQUIREMENTS.read_text()
    pins = re.findall(r"^[a-z0-9].*?(?=^[a-z0-9]|\Z)", text, re.MULTILINE | re.DOTALL)
    assert len(pins) > 20
    assert [pin for pin in pins if "==" not in pin or "--hash=sha256:" not in pin] == []
    assert "://" not in text
    assert "--index" not in text
    for needed in ("pyspark", "psycopg-binary", "fastapi", "uvicorn", "prometheus-client", "pyarrow"):
        assert re.search(rf"^{needed}==", text, re.MULTILINE), needed
    for unwanted in ("pytest", "mypy", "playwright", "ruff", "hypothesis"):
        assert not re.search(rf"^{unwanted}==", text, re.MULTILINE), unwanted


def test_the_process_is_not_root_and_health_is_asked_of_it():
    final = max(one.stage for one in instructions())
    last = {one.name: one.text for one in instructions() if one.stage == final}
    user = last["USER"].partition(":")[0]
    assert int(user) > 0
    assert f"--uid {user}" in DOCKERFILE.read_text()
    assert last["ENTRYPOINT"] == '["pgtrickle"]'
    assert "/healthz" in last["HEALTHCHECK"]
    assert last["STOPSIGNAL"] == "SIGTERM"


def test_what_is_copied_exists_and_is_not_ignored():
    allowed = (DOCKERFILE.parent / "Dockerfile.dockerignore").read_text().splitlines()
    for one in instructions():
        if one.name != "COPY" or one.text.startswith("--from"):
            continue
        *sources, _ = one.text.split()
        for source in sources:
            assert (ROOT / source).exists(), source
            assert f"!{source}" in allowed, source


def _build(tmp_path: Path, runs: list[str]) -> Path:
    """Carry out the first stage in a folder: copy what it copies, run these of its steps. The venv."""
    folder, venv = tmp_path / "build", tmp_path / "venv"
    folder.mkdir()
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    for one in (one for one in instructions() if one.stage == 1):
        if one.name == "COPY":
            *sources, target = one.text.split()
            for source in sources:
                place = folder / (Path(source).name if target == "./" else target)
                if (ROOT / source).is_dir():
                    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
                    shutil.copytree(ROOT / source, place, ignore=ignored)
                else:
                    shutil.copy(ROOT / source, place)
        elif one.name == "RUN" and one.text in runs:
            command = one.text.replace("/opt/pgtrickle", str(venv))
            command = re.sub(r"^python ", f"{sys.executable} ", command)
            subprocess.run(command, shell=True, cwd=folder, env=environment, check=True)
    return venv


def _steps() -> list[str]:
    return [one.text for one in instructions() if one.stage == 1 and one.name == "RUN"]


@pytest.mark.slow
def test_the_package_is_built_from_what_the_image_copies(tmp_path):
    environment, tools, _, package = _steps()
    venv = _build(tmp_path, [environment, tools, package])
    done = subprocess.run(
        [venv / "bin" / "python", "-c", "import pgtrickle; print(pgtrickle.__version__, pgtrickle.__file__)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
    )
    version, place = done.stdout.split()
    assert version == pgtrickle.__version__
    assert str(venv) in place


@pytest.mark.slow
@pytest.mark.thorough
def test_all_steps_of_the_image_run_in_a_clean_folder(tmp_path):
    venv = _build(tmp_path, _steps())
    for module in (
        "pgtrickle.pipeline.session",
        "fastapi",
        "uvicorn",
        "prometheus_client",
        "opentelemetry.sdk",
    ):
        subprocess.run(
            [venv / "bin" / "python", "-c", f"import {module}"],
            check=True,
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"]},
        )
    done = subprocess.run(
        [venv / "bin" / "pgtrickle", "--version"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout == f"pgtrickle {pgtrickle.__version__}\n"
