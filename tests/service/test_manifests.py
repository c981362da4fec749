"""The manifests for Kubernetes and Docker Compose start what they say: their commands run here as processes on the loopback address."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass, field
from pathlib import Path
from pipes import sections
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from fleet import LIMIT_S, Process, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parents[2] / "docs" / "how-to" / "input-workers"
KINDS = ("kubernetes", "docker-compose")
HOSTS = ("input-dispatcher", "dispatcher", "$(POD_IP)")
PORTS = ("5050", "5051")


@dataclass
class Container:
    """One container of a manifest."""

    command: list[str]
    mounts: list[str]
    ports: list[int] = field(default_factory=list)
    probed: list[int] = field(default_factory=list)


def documents(kind: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / f"{kind}.yaml").read_text(encoding="utf-8")))


def containers(kind: str) -> dict[str, Container]:
    """The containers of a manifest by name."""
    if kind == "docker-compose":
        (whole,) = documents(kind)
        return {
            name: Container(one["command"], [volume.split(":")[1] for volume in one["volumes"]]) for name, one in whole["services"].items()
        }
    found = {}
    for document in documents(kind):
        for one in document.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ()):
            probes = [probe["tcpSocket"]["port"] for name, probe in one.items() if name.endswith("Probe")]
            ports = [port["containerPort"] for port in one.get("ports", ())]
            found[one["name"]] = Container(one["command"], [m["mountPath"] for m in one["volumeMounts"]], ports, probes)
    return found


def only(kind: str, what: str) -> dict[str, Any]:
    """The one document of a kind of Kubernetes' objects."""
    (found,) = [document for document in documents(kind) if document["kind"] == what]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_each_has_a_dispatcher_with_a_journal_a_worker_with_the_data_and_a_training(kind: str) -> None:
    found = containers(kind)
    assert list(found) == ["dispatcher", "worker", "training"]
    assert found["dispatcher"].command[:3] == ["pipegen", "service", "dispatcher"]
    assert found["dispatcher"].command[-2:] == ["--work-dir", *found["dispatcher"].mounts]
    assert found["worker"].command[:3] == ["pipegen", "service", "worker"]
    assert found["worker"].mounts == found["training"].mounts == ["/data"]


def test_kubernetes_finds_the_pods_that_it_names() -> None:
    kind = "kubernetes"
    dispatcher, workers, service = only(kind, "StatefulSet"), only(kind, "Deployment"), only(kind, "Service")
    policy, job = only(kind, "NetworkPolicy"), only(kind, "Job")
    for one in (dispatcher, workers):
        assert one["spec"]["selector"]["matchLabels"] == one["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == dispatcher["spec"]["template"]["metadata"]["labels"]
    assert dispatcher["spec"]["serviceName"] == service["metadata"]["name"]
    (guarded,) = policy["spec"]["podSelector"]["matchExpressions"]
    assert guarded["values"] == [one["spec"]["template"]["metadata"]["labels"][guarded["key"]] for one in (dispatcher, workers)]
    (rule,) = policy["spec"]["ingress"]
    allowed = [peer["podSelector"]["matchLabels"] for peer in rule["from"]]
    for one in (job, workers):
        labels = one["spec"]["template"]["metadata"]["labels"].items()
        assert any(selector.items() <= labels for selector in allowed)
    ports = [port["port"] for port in rule["ports"]]
    for name in ("dispatcher", "worker"):
        one = containers(kind)[name]
        assert one.ports == [int(one.command[one.command.index("--port") + 1])]
        assert set(one.probed) == set(one.ports) <= set(ports)
    claims = {claim["metadata"]["name"] for claim in dispatcher["spec"]["volumeClaimTemplates"]}
    mounted = dispatcher["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    assert {mount["name"] for mount in mounted} == claims


@pytest.fixture
def running() -> Iterator[list[Process]]:
    """What is to be ended behind a test."""
    started: list[Process] = []
    yield started
    for process in started:
        process.end()


@pytest.mark.tf
@pytest.mark.nightly
@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("kind", KINDS)
def test_a_manifest_runs_with_processes_in_place_of_containers(kind: str, photos: Path, tmp_path: Path, running: list[Process]) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "flowers.pipegen.yaml").write_text(json.dumps(sections(photos)), encoding="utf-8")
    (tmp_path / "journal").mkdir()
    ports = {port: str(free_port()) for port in PORTS}

    def here(word: str) -> str:
        for host in HOSTS:
            word = word.replace(f"{host}:", "127.0.0.1:")
        for inside, outside in ports.items():
            word = outside if word == inside else word.replace(f":{inside}", f":{outside}")
        for mount in ("/journal", "/data"):
            word = f"{tmp_path}{word}" if word.startswith(mount) else word
        return word

    def start(name: str, *more: str) -> Process:
        command = [here(word) for word in containers(kind)[name].command]
        if name == "worker" and "--address" not in command:  # on a network of containers, each has a name of its own
            command += ["--address", f"127.0.0.1:{ports['5051']}"]
        process = Process(tmp_path / f"{name}.log", *command[1:], *more)
        running.append(process)
        return process

    servers = [start("dispatcher"), start("worker")]
    for server in servers:
        server.wait_for("ready: ")
    training = start("training", "--steps", "10", "--set=runtime.service.patience=60s", "--format", "json")
    text = training.wait()
    told = json.loads(text[text.index("{\n") :])
    assert told["service"]["there"] >= 8
    assert told["service"]["waited"] >= 0
    for server in servers:
        assert server.end(signal.SIGTERM).rstrip().splitlines()[-1].startswith("stopped: ")
