"""Checks, before any work is done, that steps behind the cut can do with images that were shrunk to any size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipegen.diagnostics.catalog import make
from pipegen.errors import SpecError
from pipegen.preparing.cut import NoCutError, find_cut
from pipegen.preparing.rest import fitting, rest_of
from pipegen.spec.steps import ids_of
from pipegen.types import times

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.plan.nodes import Plan
    from pipegen.preparing.cut import Cut
    from pipegen.preparing.options import Options
    from pipegen.preparing.work import Work


def check_shrinking(work: Work, plans: Mapping[str, Plan]) -> None:
    """Checks that images may be shrunk where the spec is cut.

    Raises:
        SpecError: `PG576` where the steps that are left need the size that shrinking takes away.
    """
    side, cut = work.options.shorter_side, work.cut
    if side is None or _fits(work, cut, work.options) or not _fits(work, cut, replace(work.options, shorter_side=None)):
        return
    ids = ids_of(work.model.transforms)
    last = ids[cut.steps - 1] if cut.steps else "decode"
    sizes = {times(cut.type[name].shape[:2]) for name in work.pictured if None not in cut.type[name].shape[:2]}
    size = " or ".join(sorted(sizes)) or "a fixed size of"
    message = f"the steps behind `{last}` need the {size} pixels that it gives, and `--shorter-side {side}` takes that away"
    help_ = [f"leave `--shorter-side` out: the store has images as `{last}` gives them"]
    earlier = next((own for own in reversed(ids[: cut.steps - 1]) if _fits_behind(work, plans, own)), None)
    if earlier is not None:
        help_.append(f"or say `--at {earlier}`, which shrinks them before `{ids[ids.index(earlier) + 1]}`")
    elif not any(step.op == "decode" for step in work.model.transforms):
        help_.append(
            f"write `- decode` as the first step and say `--at decode`: then they are shrunk before `{ids[0]}`, which is left to do"
        )
    raise SpecError([make("PG576", message, work.label(("transforms", max(0, cut.steps - 1))), help=tuple(help_))])


def _fits_behind(work: Work, plans: Mapping[str, Plan], step: str) -> bool:
    """Returns whether a cut behind a step leaves a spec that is right."""
    try:
        return _fits(work, find_cut(work.model, plans, step), work.options)
    except NoCutError:
        return False


def _fits(work: Work, cut: Cut, options: Options) -> bool:
    try:
        fitting(rest_of(work.model, work.fitted.spec.hash, cut, options, {}))
    except SpecError:
        return False
    return True
