"""Counts the items that are cut since an image has more of them than leave the pipeline, such as boxes beyond `max`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.ops.families.items import MixItems, Move
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.listing.wording import count
from pipegen.ops.traits import ANY_IMAGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.data.manifest import Manifest
    from pipegen.plan.nodes import Plan


def cut_items(plan: Plan, manifest: Manifest, split: str) -> tuple[str, ...]:
    """Returns a line for each feature of a split that has a most number of items: of how many images some are cut, as the listing counts
    them. No record is read for it.

    Args:
        plan: The plan of the split.
        manifest: The data.
        split: The split.
    """
    parts = manifest.of(split)
    return tuple(f"{name}: {line}" if name else line for name, part in parts.items() for line in _cut(plan, part, split))


def uncounted(plan: Plan) -> tuple[str, ...]:
    """Returns the same where nobody has listed the data: a line for each feature of which items may be cut."""
    return tuple(
        f"`max: {most}` of `{name}`: how many are cut depends on the data: `pipe.explain()` counts them"
        for name, t in plan.read.items()
        if (most := kind_of(t).limit(t)) is not None
    )


def _cut(plan: Plan, manifest: Manifest, split: str) -> Iterator[str]:
    columns = manifest.columns(split)
    for name, t in manifest.type.items() if manifest.type is not None else ():
        most = kind_of(t).limit(t)
        if most is None or name not in columns or name not in plan.read:
            continue
        items: Any = columns[name]  # a ragged column
        lengths = items.lengths
        over = lengths[lengths > most]
        said = f"`max: {most}` of `{name}`: "
        if not len(over):
            said += f"no image has more, {int(lengths.max(initial=0))} at most"
        else:
            cut, verb = int(over.sum()) - most * len(over), "has" if len(over) == 1 else "have"
            said += f"{len(over):,} of {count(len(lengths), 'image')} {verb} more, as stored: {cut:,} of all {int(lengths.sum()):,} are cut"
        yield said + "".join(_meanwhile(plan, cuts=bool(len(over))))


def _meanwhile(plan: Plan, *, cuts: bool) -> Iterator[str]:
    """Yields what steps do to these numbers."""
    stages = plan.stages()
    if cuts and any(_may_lose(stage) for stage in stages if isinstance(stage, Move)):
        yield "; fewer where steps lose some before"
    if any(isinstance(stage, MixItems) for stage in stages):
        yield "; mixed images have those of several"


def _may_lose(move: Move) -> bool:
    """Returns whether items may leave an image, which are then not there to be cut: not by a mirror, or by another size of the whole."""
    each = (ref.step.traits(ANY_IMAGE.with_(shape=(*move.canvas, 3))) for ref in move.refs)
    return not all(traits.mirrors or traits.turns or traits.stretches for traits in each)
