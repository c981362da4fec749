"""Checks that addresses can be fetched in the way that a spec asks for."""

from __future__ import annotations

from collections.abc import Iterator

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.ops.sources.listing.base import Source
from pipegen.spec.address import Address
from pipegen.spec.addresses import fetched, replaced
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec

_FETCH = ("runtime", "remote_cache", "fetch")


def check_fetching(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    """Yields a finding where a source needs its files in another way than `runtime.remote_cache.fetch` says."""
    wanted = spec.runtime.remote_cache.fetch
    odd: list[tuple[tuple[str, ...], str]] = []

    def look(address: Address, path: tuple[str, ...], of: Source | None) -> str:
        done = fetched(of, path, address, spec.runtime)
        beside = done == "whole" and of is not None and of.fetched_as_read()  # such as a table, whose pictures are files
        if done != wanted and not beside:
            odd.append((path, done))
        return address.text

    if wanted in ("auto", "whole"):
        return
    replaced(spec.source, look)
    for path, done in odd[:1]:
        needs = "whole files" if done == "whole" else "parts of files, which TensorFlow does not cut out of addresses"
        labels = (locate(_FETCH), locate(("source", spec.source.op, *path), "this address"))
        yield make("PG743", f"`{spec.source.op}` reads {needs}, and `fetch` is `{wanted}`", *labels, help=f"`fetch: {done}` reads them")
