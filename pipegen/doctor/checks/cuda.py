"""Compares NVIDIA's hardware, driver and device files with what TensorFlow was built for and sees."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pipegen.doctor.examination import Examination
from pipegen.doctor.line import Line, Verdict
from pipegen.doctor.machine import Machine

_NVIDIA = "0x10de"
_DISPLAY = "0x03"
"""The class of display controllers, to which GPUs of data centres belong, too."""
_CONTAINER = "start the container with the GPU: `docker run --gpus all`, or the device plugin of your cluster"
_REINSTALL = "pip install 'tensorflow[and-cuda]'"


def check(examination: Examination) -> Iterator[Line]:
    """Says which GPUs TensorFlow sees, and where it sees none what is missing."""
    answers, machine = examination.answers, examination.machine
    if "tensorflow" not in answers:
        return
    build, gpus = answers["build"], answers.get("gpus")
    if gpus is None:
        yield Line(
            "GPU", f"looking for GPUs fails: {answers.get('failed')}", "error", "look at `nvidia-smi`; a new driver may want a restart"
        )
        return
    driver, takes = _driver(machine), answers.get("driver_cuda")
    figures = {"gpus": gpus, "driver": driver, "driver_cuda": takes, "build": build}
    about = f"TensorFlow is built for {'CUDA ' + str(build['cuda']) if build['is_cuda'] else 'processors only'}"
    if gpus:
        verdict, remedy = _by_driver(build, takes)
        seen = ", ".join(gpus)
        yield Line("GPU", f"{len(gpus)}: {seen}; {about}, driver {driver or 'unknown'}{_upto(takes)}", verdict, remedy, figures)
        return
    fact, verdict, remedy = _without(machine, build, driver, takes)
    yield Line("GPU", f"none: {fact}; {about}", verdict, remedy, figures)


def _without(machine: Machine, build: dict[str, Any], driver: str | None, takes: int | None) -> tuple[str, Verdict, str]:
    """Says why there is none, from the hardware upwards."""
    hidden = machine.environment.get("CUDA_VISIBLE_DEVICES")
    cards = _cards(machine)
    if driver is None and not cards:
        return "this machine has no NVIDIA card", "ok", ""
    if driver is None:
        return (
            f"{cards} NVIDIA card{'s' if cards != 1 else ''} and no driver",
            "error",
            "install NVIDIA's driver for the card; " + _CONTAINER,
        )
    if hidden is not None and hidden.strip() in ("", "-1"):
        return f"CUDA_VISIBLE_DEVICES={hidden!r} hides them", "note", "unset CUDA_VISIBLE_DEVICES to use them"
    if not machine.matching("dev/nvidia[0-9]*"):
        return f"the machine's driver is {driver}, and no card is in /dev", "error", _CONTAINER
    if not build["is_cuda"]:
        return f"driver {driver} works", "error", _REINSTALL
    verdict, remedy = _by_driver(build, takes)
    if verdict != "ok":
        return f"driver {driver} is too old{_upto(takes)}", "error", remedy
    return f"driver {driver} works{_upto(takes)}, and TensorFlow does not find its CUDA libraries", "error", _REINSTALL


def _by_driver(build: dict[str, Any], takes: int | None) -> tuple[Verdict, str]:
    """Compares the driver with the build: programs of one major version run on every driver of it."""
    wanted = re.match(r"(\d+)", build["cuda"] or "")
    if wanted is None or takes is None or takes // 1000 >= int(wanted[1]):
        return "ok", ""
    return "warning", f"update NVIDIA's driver to one for CUDA {wanted[1]}, or install a TensorFlow that is built for CUDA {takes // 1000}"


def _driver(machine: Machine) -> str | None:
    found = re.search(r"(?:Kernel Module\D*|for \S+\s+)(\d+\.\d+(?:\.\d+)?)", machine.read("proc/driver/nvidia/version"))
    return found[1] if found else None


def _cards(machine: Machine) -> int:
    """Returns how many NVIDIA cards are on the bus."""
    vendors = [path for path in machine.matching("sys/bus/pci/devices/*/vendor") if path.read_text().strip() == _NVIDIA]
    return sum((path.parent / "class").read_text().startswith(_DISPLAY) for path in vendors)


def _upto(takes: int | None) -> str:
    return "" if takes is None else f", which takes CUDA up to {takes // 1000}.{takes % 1000 // 10}"
