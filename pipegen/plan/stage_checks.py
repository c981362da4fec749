"""Checks the stages of training against the spec that they are stages of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.plan.nodes import Plan
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec
from pipegen.types import FeatureType


def check_stages(
    spec: PipelineSpec | None, plans: Mapping[str, Plan], stages: Sequence[Mapping[str, Plan]], locate: Locate
) -> Iterator[Diagnostic]:
    """Yields what only a look at the whole spec and at its stages shows.

    Args:
        spec: The spec, where it could be loaded.
        plans: Its plainest plans, by split.
        stages: Those of each stage.
        locate: Finds the places for findings.
    """
    if spec is None or not spec.stages:
        return
    if "train" not in spec.split_names():
        named = ", ".join(f"`{name}`" for name in spec.split_names())
        help_ = (f"the splits are {named}: name the one that the model is trained on `train`, or leave `stages` out",)
        yield make("PG561", "there are stages of training, and no split `train`", locate(("stages",), key=True), help=help_)
        return
    split = next((name for name in plans if name != "train"), "train")
    if stages and split in stages[-1] and split in plans:
        whole, last = plans[split].out, stages[-1][split].out
        for name, t in last.items():
            if name in whole and (t.shape, t.dtype) != (whole[name].shape, whole[name].dtype):
                message = f"the last stage trains with `{name}` of {_said(t)}, and the spec as it is written gives {_said(whole[name])}"
                help_ = ("prediction and evaluation outside the stages go by the latter: let the params have the values of the last stage",)
                yield make("PG562", message, locate(("stages", len(stages) - 1)), help=help_)
                return


def _said(t: FeatureType) -> str:
    shape = "×".join("?" if size is None else str(size) for size in t.shape)
    return f"{shape} {t.dtype}"
