"""Sizes the windows of orders over records that are read by blocks, and says where memory is too small for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.diagnostics.advice import write
from pipegen.diagnostics.catalog import make
from pipegen.memory import ram_budget
from pipegen.spec.units import format_bytes

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec

USUAL = 2**30
"""Bytes of a window where a spec shuffles globally and a record cannot be read by itself."""
HELD = 2
"""Windows in memory at a time: the one that is being read, and the next one's beginning."""


def window_bytes(asked: int | None, manifest: Manifest, split: str) -> int:
    """Returns the bytes of a window: what the spec says, else a usual size, or one block where that is more."""
    return asked or max(USUAL, int(manifest.listing.reader(split).at_once * manifest.mean_bytes(split)))


def judge_windows(spec: PipelineSpec, manifest: Manifest, locate: Locate) -> list[Diagnostic]:
    """Warns where the windows of the training split do not fit in memory, so that blocks are read again and again."""
    if "train" not in manifest.splits or spec.shuffle == "none" or manifest.listing.reader("train").at_once == 1:
        return []
    asked = spec.shuffle.window if spec.shuffle != "global" else None
    size = manifest.mean_bytes("train") * manifest.num_examples("train")
    window, budget = window_bytes(asked, manifest, "train"), ram_budget(spec.runtime)
    if HELD * window <= budget or size <= budget:
        return []
    called = manifest.listing.reader("train").called
    message = (
        f"the records are read by whole {called}, and {HELD} windows of {format_bytes(window)} are in memory at a time; the RAM budget "
        f"is {format_bytes(budget)}, so {called} would be read again and again"
    )
    help_ = write(f"shuffle: {{window: {_rounded(budget // HELD)}}}", "spec", "make windows smaller: {}; or raise `ram_budget`")
    return [make("PG445", message, locate(("shuffle",)), help=help_)]


def judge_fetching(spec: PipelineSpec, manifest: Manifest, locate: Locate) -> list[Diagnostic]:
    """Warns where the order of the training split jumps about among more than the cache of remote files may keep."""
    if "train" not in manifest.splits or spec.shuffle == "none" or not manifest.listing.reader("train").fetches:
        return []
    size = int(manifest.mean_bytes("train") * manifest.num_examples("train"))
    reach = size if spec.shuffle == "global" else min(size, spec.shuffle.window)
    limit = spec.runtime.remote_cache.size
    if reach <= limit:
        return []
    message = (
        f"the order jumps about among {format_bytes(reach)} on other machines, and `remote_cache` may keep {format_bytes(limit)}, so that "
        "most of them are fetched anew in each epoch"
    )
    window = write(f"shuffle: {{window: {_rounded(limit // HELD)}}}", "spec", "or let the order jump about in smaller windows: {}")
    help_ = ("raise it, where the disk has room: `runtime: {remote_cache: {size: …}}`", window)
    return [make("PG745", message, locate(("runtime", "remote_cache", "size")), help=help_)]


def _rounded(num_bytes: int) -> str:
    """Writes a size as a spec does, rounded down."""
    unit, name = next(((unit, name) for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")) if num_bytes >= 4 * unit), (1, "B"))
    return f"{max(1, num_bytes // unit)}{name}"
