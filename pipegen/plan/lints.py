"""Legal but unwise: findings about a recipe as a whole. What concerns one step alone is the step's own `lints`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.diagnostics.advice import write
from pipegen.diagnostics.catalog import make
from pipegen.errors import OpError
from pipegen.ops.base import Family
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.kinds.registry import kind_of
from pipegen.plan.lint_cache import lint_cache
from pipegen.plan.lint_mixing import lint_mixing
from pipegen.plan.lint_unused import lint_unused
from pipegen.plan.recipe import recipe, runs_on
from pipegen.spec.models import WindowShuffle

if TYPE_CHECKING:
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.plan.stages import StepRef
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec
    from pipegen.types import ElementType


def lint_recipe(spec: PipelineSpec, locate: Locate, record: ElementType | None = None) -> list[Diagnostic]:
    """Every lint about the order and the use of steps; `record` is the type that enters the first of them."""
    record = record or spec.source.infer()
    whole = [*_augmented_evaluation(spec, locate), *_weak_shuffle(spec, locate), *_padded(spec, locate), *lint_mixing(spec, locate)]
    return [*whole, *lint_unused(spec, locate, record), *_walk(spec, locate, record)]


def _augmented_evaluation(spec: PipelineSpec, locate: Locate) -> list[Diagnostic]:
    found = []
    for index, step in enumerate(spec.transforms):
        others = [s for s in spec.split_names() if s != "train" and runs_on(step, s)]
        if step.random and step.when is not None and others:
            found.append(
                make(
                    "PG507",
                    f"`{step.op}` is random and also runs on `{'`, `'.join(others)}`, so what is measured there is not the data itself",
                    locate(("transforms", index, step.op, "when")),
                    help=("leave `when` out: random steps run on `train` alone",),
                )
            )
    return found


def _weak_shuffle(spec: PipelineSpec, locate: Locate) -> list[Diagnostic]:
    if "train" not in spec.split_names() or not spec.source.by_class():
        return []
    if spec.shuffle == "none" or isinstance(spec.shuffle, WindowShuffle):
        kind = "is not shuffled" if spec.shuffle == "none" else "is shuffled in windows only"
        return [
            make(
                "PG505",
                f"the training split is stored class by class and {kind}, so that a batch holds few classes",
                locate(("shuffle",)),
                help=(write("global", "value", "{} costs no memory here", shown="shuffle: global"),),
            )
        ]
    return []


def _padded(spec: PipelineSpec, locate: Locate) -> list[Diagnostic]:
    padded = [s for s in spec.split_names() if s != "train" and spec.batch.remainder_for(s) == "pad"]
    if not padded:
        return []
    return [
        make(
            "PG512",
            f"split `{'`, `'.join(padded)}` is padded with examples of weight 0, "
            "which plain `metrics=` count and `weighted_metrics=` do not",
            locate(("batch", "remainder")),
            help=("compile the model with `weighted_metrics=`, and use `pipe.trim` on predictions",),
        )
    ]


def _walk(spec: PipelineSpec, locate: Locate, record: ElementType) -> list[Diagnostic]:
    """Follow the training recipe's types and look at neighbours."""
    found: list[Diagnostic] = []
    names = spec.split_names()
    split = "train" if "train" in names else names[0]
    type_ = next((t for t in dict(record.items()).values() if kind_of(t).levels), None)
    if type_ is None:
        return found
    arithmetic: StepRef | None = None
    resized: StepRef | None = None
    steps = _with_decoder(spec, split) if type_.encoded else recipe(spec, split).steps
    found.extend(lint_cache(spec, locate, type_, steps))
    name = next(name for name, t in record.items() if t is type_)
    for ref in (ref for ref in steps if ref.step.feature in (None, name)):
        traits = ref.step.traits(type_)
        if traits.family is Family.GEOMETRIC and not traits.moves_pixels_only and arithmetic is not None:
            message = f"`{ref.step.op}` comes after `{arithmetic.step.op}`, so it works on floats, which is slower and gives nothing"
            found.append(
                make(
                    "PG504",
                    message,
                    locate(ref.path, key=True),
                    locate(arithmetic.path, "floats from here", key=True),
                    help=("put it before",),
                )
            )
            arithmetic = None
        if traits.family is Family.POINTWISE:
            arithmetic = ref
        if traits.resizes:
            if resized is not None and resized.path != ref.path:
                message = f"`{ref.step.op}` resizes what `{resized.step.op}` has already resized, which blurs and costs twice"
                found.append(make("PG506", message, locate(ref.path, key=True), locate(resized.path, "resized here", key=True)))
            resized = ref
        try:
            type_ = ref.step.infer(type_)
        except OpError:
            break
    return found


def _with_decoder(spec: PipelineSpec, split: str) -> list[StepRef]:
    from pipegen.ops.registry import default_decoder
    from pipegen.plan.stages import StepRef

    steps = list(recipe(spec, split).steps)
    if steps and isinstance(steps[0].step, DecodeTransform):
        return steps
    return [StepRef(default_decoder(), "decode", ("transforms",), 0, False), *steps]
