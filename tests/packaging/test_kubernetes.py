"""The manifests: objects that find each other, probes at the port, nothing that runs as root."""

from __future__ import annotations

from typing import Any

import pytest

from pgtrickle.model.http_settings import HTTP_HOST
from tests.packaging.files import KUBERNETES, PORT, instructions, manifests


@pytest.fixture
def pod() -> dict[str, Any]:
    found: dict[str, Any] = manifests()["deployment.yaml"]["spec"]["template"]["spec"]
    return found


def test_every_object_is_listed_and_every_file_exists():
    listed = set(manifests()["kustomization.yaml"]["resources"])
    assert listed == {file.name for file in KUBERNETES.glob("*.yaml")} - {
        "kustomization.yaml",
        "secret.example.yaml",
    }


def test_labels_and_selectors_agree():
    name = {"app.kubernetes.io/name": "pgtrickle"}
    found = manifests()
    deployment = found["deployment.yaml"]["spec"]
    assert deployment["selector"]["matchLabels"] == name
    assert deployment["template"]["metadata"]["labels"] == name
    assert found["service.yaml"]["spec"]["selector"] == name
    assert found["networkpolicy.yaml"]["spec"]["podSelector"]["matchLabels"] == name


def test_probes_ask_the_port_that_the_sidecar_serves(pod):
    (sidecar,) = pod["containers"]
    (port,) = sidecar["ports"]
    assert port == {"name": "http", "containerPort": PORT}
    asked = {kind: sidecar[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
    assert {kind: (one["path"], one["port"]) for kind, one in asked.items()} == {
        "startup": ("/healthz", "http"),
        "liveness": ("/healthz", "http"),
        "readiness": ("/readyz", "http"),
    }
    (names,) = (one["value"].split(",") for one in sidecar["env"] if one["name"] == HTTP_HOST.variable)
    for one in asked.values():
        # the server refuses requests for names that are not its own, and a probe would ask for the address
        assert {header["name"]: header["value"] for header in one["httpHeaders"]} == {"Host": "localhost"}
        assert "localhost" in names
    (served,) = manifests()["service.yaml"]["spec"]["ports"]
    assert (served["port"], served["targetPort"]) == (PORT, "http")


def test_every_secret_that_is_read_is_in_the_example(pod):
    example = manifests()["secret.example.yaml"]
    keys = {
        variable["valueFrom"]["secretKeyRef"]["key"]
        for container in (*pod["containers"], *pod["initContainers"])
        for variable in container["env"]
        if "valueFrom" in variable
    }
    (token,) = (volume["secret"] for volume in pod["volumes"] if "secret" in volume)
    keys |= {item["key"] for item in token["items"]}
    assert keys == set(example["stringData"])
    assert token["secretName"] == example["metadata"]["name"]
    # an example holds no secret
    assert (example["stringData"]["password"], example["stringData"]["token"]) == ("", "")


def test_volumes_and_mounts_agree(pod):
    (sidecar,) = pod["containers"]
    assert {mount["name"] for mount in sidecar["volumeMounts"]} == {
        volume["name"] for volume in pod["volumes"]
    }
    mounts = {mount["mountPath"] for mount in sidecar["volumeMounts"]}
    token = sidecar["args"][sidecar["args"].index("--http-token-file") + 1]
    assert token.rpartition("/")[0] in mounts
    assert "/tmp" in mounts


def test_nothing_runs_as_root_or_writes_to_the_image(pod):
    (user,) = {one.text.partition(":")[0] for one in instructions() if one.name == "USER"}
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert str(pod["securityContext"]["runAsUser"]) == user
    assert pod["automountServiceAccountToken"] is False
    for container in (*pod["containers"], *pod["initContainers"]):
        confined = container["securityContext"]
        assert confined["readOnlyRootFilesystem"] is True
        assert confined["allowPrivilegeEscalation"] is False
        assert confined["capabilities"] == {"drop": ["ALL"]}
        assert "memory" in container["resources"]["limits"]


def test_refreshes_have_time_to_finish(pod):
    assert pod["terminationGracePeriodSeconds"] > 30
