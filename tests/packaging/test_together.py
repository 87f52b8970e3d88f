"""What is packaged has one version, one port, options that exist, and images without registries."""

from __future__ import annotations

import re
import tomllib

import pytest
import yaml

import pgtrickle
from pgtrickle.model.http_settings import HTTP_HOST
from tests.packaging.files import (
    COMPOSE,
    DOCKERFILE,
    PACKAGING,
    PORT,
    ROOT,
    command_lines,
    compose,
    instructions,
    manifests,
    options_of,
)


def test_there_is_one_version_everywhere(admin):
    version = pgtrickle.__version__
    found = {
        "package": tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"],
        "catalog": admin.execute("select pgtrickle.version()").fetchone()[0],
        "image": re.findall(r'image\.version="([^"]+)"', DOCKERFILE.read_text())[0],
        "how to build it": re.findall(r"-t pgtrickle:(\S+)", DOCKERFILE.read_text())[0],
        "read me": re.findall(r"-t pgtrickle:(\S+)", (PACKAGING / "README.md").read_text())[0],
        "manifests": manifests()["kustomization.yaml"]["images"][0]["newTag"],
        "label": manifests()["kustomization.yaml"]["labels"][0]["pairs"]["app.kubernetes.io/version"],
    }
    for name, service in compose()["services"].items():
        if "pgtrickle" in service.get("image", ""):
            found[f"compose {name}"] = service["image"].partition(":")[2]
    for file in (ROOT / "dbt").glob("**/dbt_project.yml"):
        project = yaml.safe_load(file.read_text())
        if project["name"] == "pgtrickle":
            found["dbt package"] = project["version"]
    assert set(found.values()) == {version}, found


def test_no_image_names_a_registry():
    images = [one.text.split()[0] for one in instructions() if one.name == "FROM"]
    images += [
        one.text.split()[0]
        for one in instructions(COMPOSE / "pgbouncer" / "Dockerfile")
        if one.name == "FROM"
    ]
    images += [service["image"] for service in compose()["services"].values() if "image" in service]
    pod = manifests()["deployment.yaml"]["spec"]["template"]["spec"]
    images += [one["image"] for one in (*pod["containers"], *pod["initContainers"])]
    assert images
    for image in images:
        assert "/" not in image, image


@pytest.mark.parametrize("place", command_lines())
def test_every_option_that_is_used_exists(place):
    command, *arguments = command_lines()[place]
    used = {argument for argument in arguments if argument.startswith("--")}
    known = options_of(command)
    assert used <= known


def test_the_port_is_the_same_everywhere():
    (exposed,) = (one.text for one in instructions() if one.name == "EXPOSE")
    (checked,) = (one.text for one in instructions() if one.name == "HEALTHCHECK")
    assert int(exposed) == PORT
    assert f":{PORT}/healthz" in checked
    for line in command_lines().values():
        if "--http" in line:
            assert line[line.index("--http") + 1].endswith(f":{PORT}")
    assert compose()["services"]["sidecar"]["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]


def test_other_addresses_than_loopback_get_a_token():
    for place, line in command_lines().items():
        if "--http" not in line or line[line.index("--http") + 1].startswith("127."):
            continue
        if place == "image":
            # whoever runs the image passes it
            assert "PGTRICKLE_HTTP_TOKEN" in DOCKERFILE.read_text()
        elif place == "compose sidecar":
            assert "PGTRICKLE_HTTP_TOKEN" in compose()["services"]["sidecar"]["environment"]
        else:
            assert "--http-token-file" in line, place


def test_the_health_check_of_the_image_asks_for_a_name_that_the_server_answers_for():
    environment = " ".join(one.text for one in instructions() if one.name == "ENV")
    (names,) = re.findall(rf"{HTTP_HOST.variable}=(\S+)", environment)
    (checked,) = (one.text for one in instructions() if one.name == "HEALTHCHECK")
    (asked,) = re.findall(r"http://([^:/]+):", checked)
    assert asked in names.split(",")
