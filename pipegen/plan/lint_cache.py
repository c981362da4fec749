"""The lint about a cache that the training split cannot have."""

from __future__ import annotations

from collections.abc import Sequence

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.errors import OpError
from pipegen.plan.stages import StepRef
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec
from pipegen.types import FeatureType

_CACHE = ("runtime", "cache")


def lint_cache(spec: PipelineSpec, locate: Locate, entry: FeatureType, steps: Sequence[StepRef]) -> list[Diagnostic]:
    """Warns of a cache that the spec asks for by name and that has nothing to hold of the training split.

    Args:
        spec: The spec.
        locate: Finds the place of a key path.
        entry: The type of a record's image.
        steps: The steps of the training split, the decoder first where there is one.
    """
    if spec.runtime.cache in ("auto", "none") or "train" not in spec.split_names():
        return []
    if spec.errors.skip is not None:
        message = "the training split is not cached: `errors: skip` replaces damaged records, and a cache would keep a replacement for good"
        return [make("PG518", message, locate(_CACHE), locate(("errors", "decode"), "skipped here"), help=_HELP_SKIP)]
    early = _early(entry, steps, disk=spec.runtime.cache != "memory")
    if early is None:
        return []
    why, label, help_ = ("is random", "drawn anew in every epoch", _HELP_ORDER)
    if not early.is_random:
        why, label, help_ = ("is Python code without a `version`", "may give something else in another process", _HELP_VERSION)
    message = f"the training split is not cached: `{early.step.op}` {why} and comes before images have a fixed size"
    return [make("PG518", message, locate(_CACHE), locate(early.path, label, key=True), help=help_)]


_HELP_ORDER = ("`resize` first, and crop or turn what comes out of it", "or leave `cache` out: the other splits are cached where they fit")
_HELP_VERSION = ("`resize` first", "or give the step a `version`, and another one whenever its code gives something else")
_HELP_SKIP = ("list damaged files in `errors: {exclude: FILE}`; `pipegen validate --data=all --write-exclude FILE` writes one",)


def _early(entry: FeatureType, steps: Sequence[StepRef], *, disk: bool) -> StepRef | None:
    """The first step that no cache can stand behind, where it comes before the size of images is fixed."""
    type_ = entry
    for ref in steps:
        if not type_.encoded and type_.is_static:
            return None
        if ref.is_random or (disk and not ref.step.lasting()):
            return ref
        try:
            type_ = ref.step.infer(type_)
        except OpError:
            return None
    return None
