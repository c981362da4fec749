"""Says what a spec asks of a machine: threads, memory, and how fast its files have to come."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pipegen.data.ownership import source_paths
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.doctor.storage import files_of
from pipegen.errors import SpecError
from pipegen.phases.compilation import collect_data
from pipegen.phases.machine import circumstances
from pipegen.plan.cost import plan_cost
from pipegen.plan.nodes import Cache

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipegen.data.manifest import Manifest
    from pipegen.phases.specs import Spec
    from pipegen.plan.nodes import Plan

_TAKEN = 3000
"""Files of a split that are named: more than can be read in a few seconds."""


@dataclass(frozen=True)
class Needs:
    """Holds what a spec asks for, in its training split or its first one.

    Attributes:
        spec: The spec.
        images_per_s: What the model takes; `None` for as many as the cores prepare.
    """

    spec: Spec
    images_per_s: float | None = None

    @property
    def paths(self) -> list[str]:
        """Returns the files, folders and patterns that the source names."""
        given = [path for _, path in source_paths(self.spec.loaded.raw.get("source"), ("source",))]
        return [path for path in given if "://" not in path]

    @property
    def split(self) -> str:
        """Returns the split that is meant."""
        return "train" if "train" in self.spec.compiled else next(iter(self.spec.compiled))

    @cached_property
    def listed(self) -> Manifest | Diagnostic | None:
        """Lists the data: the manifest, or what stands in the way; `None` where the spec names none, since it comes from Python."""
        if self.spec.model.source.needs_data():
            return None
        try:
            return collect_data(self.spec)
        except SpecError as error:
            return error.diagnostics[0]

    @property
    def manifest(self) -> Manifest | None:
        """Returns the manifest, where the data could be listed."""
        return None if isinstance(self.listed, Diagnostic) else self.listed

    @property
    def parts(self) -> dict[str, Manifest]:
        """Returns the data of the split, by the parts of a mix; of any other under the empty name."""
        return {} if self.manifest is None else dict(self.manifest.of(self.split))

    @property
    def files(self) -> list[str]:
        """Returns files of the split, of very many some; none where its records are rows of arrays."""
        found = [file for part in self.parts.values() for file in files_in(part, self.split)]
        if not found and any(part.blocks(self.split) is not None for part in self.parts.values()):
            return [file for path in self.paths for file in files_of(path)]  # a file whose rows are read block by block
        return found

    @property
    def example_bytes(self) -> float | None:
        """Returns the mean size of a stored example of the split in bytes, where the data could be listed."""
        return None if self.manifest is None else self.manifest.mean_bytes(self.split) or None

    @property
    def threads(self) -> int | None:
        """Returns the threads that the spec asks for; `None` where it leaves that open."""
        return None if self.spec.model.runtime.threads == "auto" else self.spec.model.runtime.threads

    @property
    def cache(self) -> str | None:
        """Returns where the plan caches: `memory`, `disk`, or nowhere."""
        node = next((n for n in self._plan.nodes if isinstance(n, Cache)), None)
        return None if node is None else "disk" if node.disk else "memory"

    @property
    def _plan(self) -> Plan:
        return self.spec.compiled[self.split].plan

    def prepared_per_s(self, cores: int, file_bytes: float) -> float:
        """Returns how many images per second so many cores can prepare while nothing is cached, by the cost model."""
        given = circumstances(self.spec.model, cores, file_bytes=file_bytes)
        return given.threads * 1e6 / plan_cost(self._plan, given).first_us

    def memory(self, cores: int) -> int:
        """Returns the bytes that the plan is expected to hold."""
        found, examples, file_bytes = self.manifest, None, None
        if found is not None:
            examples, file_bytes = found.num_examples(self.split), found.mean_bytes(self.split)
        return plan_cost(self._plan, circumstances(self.spec.model, cores, examples=examples, file_bytes=file_bytes)).bytes


def files_in(manifest: Manifest, split: str) -> list[str]:
    """Returns files of a split of one source, of very many some: of records that lie many in a file, those files."""
    listing = manifest.listing
    if listing.shards is not None:
        every: Sequence[str] = listing.files().take(manifest.members[split].shards)  # type: ignore[attr-defined]  # it is sharded
    elif listing.in_files:
        every = manifest.files(split)
    else:
        return []
    if len(every) <= _TAKEN:
        return list(every)
    return [every[i] for i in sorted(random.Random(0).sample(range(len(every)), _TAKEN))]  # noqa: S311 - no secret
