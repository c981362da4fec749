"""Checks, before any work is done, that steps behind the cut can do with images that were shrunk to any size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipegen.diagnostics.catalog import make
from pipegen.errors import SpecError
from pipegen.ops.kinds.registry import kind_of
from pipegen.preparing.cut import NoCutError, find_cut
from pipegen.preparing.rest import fitting, rest_of
from pipegen.spec.steps import ids_of
from pipegen.types import times

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.phases.specs import Spec
    from pipegen.plan.nodes import Plan
    from pipegen.preparing.cut import Cut
    from pipegen.preparing.options import Options


def check_shrinking(spec: Spec, plans: Mapping[str, Plan], cut: Cut, options: Options) -> None:
    """Checks that images may be shrunk where the spec is cut.

    Raises:
        SpecError: `PG576` where the steps that are left need the size that shrinking takes away.
    """
    side = options.shorter_side
    if side is None or _fits(spec, cut, options) or not _fits(spec, cut, replace(options, shorter_side=None)):
        return
    ids = ids_of(spec.model.transforms)
    last = ids[cut.steps - 1] if cut.steps else "decode"
    sizes = {times(t.shape[:2]) for _, t in cut.type.items() if kind_of(t).pictured and None not in t.shape[:2]}
    size = " or ".join(sorted(sizes)) or "a fixed size of"
    message = f"the steps behind `{last}` need the {size} pixels that it gives, and `--shorter-side {side}` takes that away"
    help_ = [f"leave `--shorter-side` out: the store has images as `{last}` gives them"]
    earlier = next((own for own in reversed(ids[: cut.steps - 1]) if _fits_behind(spec, plans, own, options)), None)
    if earlier is not None:
        help_.append(f"or say `--at {earlier}`, which shrinks them before `{ids[ids.index(earlier) + 1]}`")
    elif not any(step.op == "decode" for step in spec.model.transforms):
        help_.append(f"or begin with the step `- decode` and say `--at decode`, which shrinks them before `{ids[0]}`")
    label = spec.loaded.locate.label(("transforms", max(0, cut.steps - 1)))
    raise SpecError([make("PG576", message, label, help=tuple(help_))])


def _fits_behind(spec: Spec, plans: Mapping[str, Plan], step: str, options: Options) -> bool:
    """Returns whether a cut behind a step leaves a spec that is right."""
    try:
        return _fits(spec, find_cut(spec.model, plans, step), options)
    except NoCutError:
        return False


def _fits(spec: Spec, cut: Cut, options: Options) -> bool:
    try:
        fitting(rest_of(spec.model, spec.hash, cut, options, {}))
    except SpecError:
        return False
    return True
