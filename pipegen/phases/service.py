"""Checks, once the data is known, that workers of the tf.data service can make the batches of a spec."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.diagnostics.catalog import make
from pipegen.memory import ram_budget
from pipegen.phases.layered import read_by_reader, source_of
from pipegen.plan.check import PREPARE, SERVICE, WITHOUT
from pipegen.spec.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipegen.data.manifest import Manifest
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.phases.specs import Spec
    from pipegen.plan.nodes import Plan

LARGEST = 2**31 - 2**28
"""The most bytes of arrays in a graph, which has at most 2 GiB when it is serialised."""


def service_findings(spec: Spec, manifest: Manifest, plans: Mapping[str, Plan]) -> Iterator[Diagnostic]:
    """Reports records of the training split that are read by Python, or are too large for the graph that workers get."""
    plan = plans.get("train")
    if spec.model.runtime.service is None or plan is None:
        return
    locate, budget, held = spec.loaded.locate.label, ram_budget(spec.model.runtime), 0
    asked = locate(SERVICE, "workers are asked for here", key=True)
    parts = manifest.of("train")
    for (name, part), read in zip(parts.items(), plan.part_reads(len(parts)), strict=True):
        place, features = locate(source_of(spec, name), key=True), read_by_reader(part, "train", read)
        reader = part.listing.reader("train")
        python = reader.python(features, budget)
        if python:
            message = f"the training split reads {python} by Python, which workers do not have"
            yield make("PG486", message, place, asked, help=(PREPARE, WITHOUT))
        held += reader.held_bytes(features, budget)
        if held > LARGEST:
            message = f"the arrays of the training split have {format_bytes(held)}, too much for a worker's graph of less than 2 GiB"
            yield make("PG487", message, place, asked, help=(PREPARE, WITHOUT))
            return
