"""The files in `packaging/`, parsed."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer.main
import yaml

from pgtrickle.interfaces.cli.application import application

ROOT = Path(__file__).parents[2]
PACKAGING = ROOT / "packaging"
DOCKERFILE = PACKAGING / "docker" / "Dockerfile"
COMPOSE = PACKAGING / "compose"
KUBERNETES = PACKAGING / "kubernetes"
UNIT = PACKAGING / "systemd" / "pgtrickle@.service"
PORT = 8432


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a Dockerfile, with the stage that it belongs to."""

    stage: int
    name: str
    text: str


def instructions(dockerfile: Path = DOCKERFILE) -> list[Instruction]:
    """The instructions in order; continued lines are joined and comments left out."""
    lines = [line for line in dockerfile.read_text().splitlines() if not line.startswith("#")]
    found: list[Instruction] = []
    stage = 0
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        if not line.strip():
            continue
        name, _, text = line.partition(" ")
        stage += name == "FROM"
        found.append(Instruction(stage, name, text))
    return found


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((COMPOSE / "compose.yaml").read_text())
    return found


def manifests() -> dict[str, dict[str, Any]]:
    """The Kubernetes objects, by file."""
    return {file.name: yaml.safe_load(file.read_text()) for file in sorted(KUBERNETES.glob("*.yaml"))}


def command_lines() -> dict[str, list[str]]:
    """Every command line of pgtrickle in the packaging, without the program."""
    (image,) = (one for one in instructions() if one.name == "CMD")
    (container,) = manifests()["deployment.yaml"]["spec"]["template"]["spec"]["containers"]
    environment = (PACKAGING / "systemd" / "example.env").read_text()
    (options,) = re.findall(r"^PGTRICKLE_RUN_OPTIONS=(.*)$", environment, re.MULTILINE)
    services = compose()["services"]
    return {
        "image": json.loads(image.text),
        "kubernetes": container["args"],
        "systemd": ["run", *shlex.split(options)],
        "compose sidecar": services["sidecar"]["command"],
        "compose install": services["install"]["command"],
    }


def options_of(command: str) -> set[str]:
    """The options that a command of the command line takes."""
    found = typer.main.get_command(application()).commands[command]  # type: ignore[attr-defined]
    return {option for parameter in found.params for option in parameter.opts}
