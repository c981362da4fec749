"""Compares what runs on the machine with its cores: beside other programs a pipeline is slower, and what is measured is uncertain."""

from __future__ import annotations

from collections.abc import Iterator

from pipegen.doctor.examination import Examination
from pipegen.doctor.line import Line

_BUSY = 0.5
"""The share of its cores that a machine may have in use on average before a word about it; this program takes one itself."""


def check(examination: Examination) -> Iterator[Line]:
    """Names the mean number of programs that ran or waited for a core in the last minute, where the system tells."""
    machine = examination.machine
    words = machine.read("proc/loadavg").split()
    if not words or not machine.processors:
        return
    load, cores = float(words[0]), machine.processors
    figures = {"load": load, "cores": cores}
    fact = f"{load:.1f} programs ran or waited for a core in the last minute, on {cores} cores"
    if load <= 1 + _BUSY * cores:
        yield Line("load", fact, figures=figures)
        return
    remedy = "end other programs, or wait, before you measure: `profile`, `tune` and `bench` share the cores with them"
    yield Line("load", f"{fact}: the machine is busy", "warning", remedy, figures)
