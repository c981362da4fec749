"""Decides how images in whole records are encoded: where nothing but decoding comes before the cut, their files are kept as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipegen.ops.families.decoder import Decode
from pipegen.ops.families.items import Enter, Measure
from pipegen.ops.kinds.registry import kind_of
from pipegen.plan.nodes import Read
from pipegen.preparing.options import OF_RECORDS, QUALITY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.plan.nodes import Plan
    from pipegen.preparing.cut import Cut
    from pipegen.preparing.options import Options
    from pipegen.spec.models import PipelineSpec


class ChangedFilesError(Exception):
    """Files cannot be kept as they are; the message says why."""


def with_encoding(options: Options, spec: PipelineSpec, plans: Mapping[str, Plan], cut: Cut) -> Options:
    """Returns the options with an encoding: files as they are where the work up to the cut leaves them so, else JPEG.

    Raises:
        ChangedFilesError: Where files as they are were asked for, and are not what the spec gives.
    """
    if options.format not in OF_RECORDS:
        return replace(options, encoding="jpeg")
    changed = _changed(options, spec, plans, cut)
    if options.keeps_files and changed is not None:
        raise ChangedFilesError(changed)
    if options.encoding is not None:
        return options
    return replace(options, encoding="original" if changed is None and options.quality == QUALITY else "jpeg")


def _changed(options: Options, spec: PipelineSpec, plans: Mapping[str, Plan], cut: Cut) -> str | None:
    """Says why the files of images are not what is to be stored of them, if they are not."""
    if options.shorter_side is not None:
        return f"images are to be shrunk to a shorter side of {options.shorter_side} pixels"
    for stage in (stage for own in cut.stages.values() for stage in own):
        if not isinstance(stage, (Decode, Enter, Measure)):
            return f"`{stage.uses()[0].id}` comes before the cut, and changes `{stage.feature}`"
    read = [node.out for plan in plans.values() for node in plan.nodes if isinstance(node, Read)]
    for name, t in cut.type.items():
        if kind_of(t).levels and kind_of(t).pictured and (name in spec.source.decoders() or not all(own[name].encoded for own in read)):
            return f"`{name}` is not stored in files that `decode` reads"
    return None
