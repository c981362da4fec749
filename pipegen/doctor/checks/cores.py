"""Counts the cores that this process may use: by the machine, by its affinity, by its control groups."""

from __future__ import annotations

from collections.abc import Iterator

from pipegen.doctor.examination import Examination
from pipegen.doctor.line import Line

_HELD_BACK = 0.1
"""The share of periods in which a group was held back, from which on it is worth a word."""


def check(examination: Examination) -> Iterator[Line]:
    """Names the cores, and how many the pipeline takes of them."""
    machine, cores = examination.machine, examination.cores
    quota, groups = machine.cgroup.cpu_quota, machine.cgroup.version
    by_group = "without control groups" if not groups else f"control groups v{groups} grant {'all' if quota is None else f'{quota:g}'}"
    fact = f"{machine.processors} in the machine, {machine.affinity} by affinity, {by_group}: the pipeline takes {cores}"
    figures = {"machine": machine.processors, "affinity": machine.affinity, "quota": quota, "cgroup": groups, "taken": cores}
    asked = examination.needs.threads if examination.needs is not None else None
    if asked is not None and asked > cores:
        fact = f"{fact}, and the spec asks for {asked} threads"
        yield Line("cores", fact, "warning", f"leave `runtime: {{threads: auto}}`, or {cores}: more threads wait for each other", figures)
    elif cores < 2:
        yield Line("cores", fact, "note", "one core makes batches or runs the model, not both: ask for two or more", figures)
    else:
        yield Line("cores", fact, figures=figures)
    held = machine.cgroup.throttled
    if held is not None and held[0] > _HELD_BACK * held[1]:
        share = held[0] / held[1]
        remedy = "raise the quota, or take fewer threads than it has cores: what is held back stands still for up to 100 ms"
        yield Line("throttling", f"the control group was held back in {share:.0%} of its periods", "warning", remedy, {"share": share})
