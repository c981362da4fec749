"""Everything that can be found without data: plans for every split, and the findings on the way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipegen.data.check import check_splits
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostics
from pipegen.errors import OpError
from pipegen.plan.build import Builder
from pipegen.plan.lints import lint_recipe

if TYPE_CHECKING:
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.plan.build import Locate
    from pipegen.plan.nodes import Plan
    from pipegen.spec.models import PipelineSpec
    from pipegen.types import ElementType


@dataclass(frozen=True)
class Checked:
    """The plainest plan of each split, where there is one, and every finding."""

    plans: dict[str, Plan]
    diagnostics: Diagnostics


def check(spec: PipelineSpec, locate: Locate, *, classes: int | None = None) -> Checked:
    """Build every split's plan and collect the findings, each once.

    Args:
        spec: The spec.
        locate: Finds the place of a key path.
        classes: The number of classes, once the data has been listed.
    """
    diagnostics = Diagnostics()
    diagnostics.extend(check_splits(spec, locate))
    source = _source_type(spec, classes)
    plans: dict[str, Plan] = {}
    per_split: dict[str, list[Diagnostic]] = {}
    for split in spec.split_names():
        builder = Builder(spec, split, locate, source)
        try:
            plan = builder.build()
        except OpError as error:  # an op broke its contract by raising outside `infer`
            builder.findings.append(make(error.code, error.message, locate(("transforms",))))
            plan = None
        per_split[split] = builder.findings
        if plan is not None:
            plans[split] = plan
    diagnostics.extend(_merge(per_split))
    if not diagnostics.has_errors:
        diagnostics.extend(_same_type(plans, locate))
    diagnostics.extend(lint_recipe(spec, locate))
    return Checked(plans, diagnostics)


def _source_type(spec: PipelineSpec, classes: int | None) -> ElementType:
    type_ = spec.source.infer()
    if classes is not None and "label" in type_:
        type_ = type_.replace(label=type_["label"].with_(classes=classes))
    return type_


def _merge(per_split: dict[str, list[Diagnostic]]) -> list[Diagnostic]:
    """One finding for what several splits share; what only some have names them."""
    where: dict[Diagnostic, list[str]] = {}
    for split, findings in per_split.items():
        for finding in findings:
            splits = where.setdefault(finding, [])
            if split not in splits:
                splits.append(split)
    merged = []
    for finding, splits in where.items():
        if len(splits) < len(per_split) and not any(f"`{s}`" in finding.message for s in splits):
            named = " and ".join(f"`{s}`" for s in splits)
            finding = replace(finding, message=f"{finding.message} (in split {named})")
        merged.append(finding)
    return _join_unbatchable(merged)


def _join_unbatchable(findings: list[Diagnostic]) -> list[Diagnostic]:
    """One finding for a missing `resize` that concerns several splits alike."""
    unbatchable = [f for f in findings if f.code == "PG201"]
    if len(unbatchable) < 2:
        return findings
    first = unbatchable[0]
    splits = " and ".join("`" + f.message.split("`")[1] + "`" for f in unbatchable)
    tail = first.message.split("have no fixed size", 1)[1]
    joined = replace(first, message=f"images of splits {splits} have no fixed size{tail}")
    return [joined if f is first else f for f in findings if f.code != "PG201" or f is first]


def _same_type(plans: dict[str, Plan], locate: Locate) -> list[Diagnostic]:
    """DESIGN rule 3: every split gives the model the same element type."""
    reference: tuple[str, dict[str, tuple[object, ...]]] | None = None
    for split, plan in plans.items():
        types = {name: (t.dtype, t.shape) for name, t in plan.out.items() if t.kind == "image"}
        if reference is None:
            reference = (split, types)
        elif types != reference[1]:
            first, second = plans[reference[0]].out, plan.out
            name = next(n for n in types if types[n] != reference[1].get(n))
            return [
                make(
                    "PG210",
                    f"`{name}` is {first[name]} in split `{reference[0]}` and {second[name]} in split `{split}`; a model takes one of them",
                    locate(("transforms",), key=True),
                    help=("let the steps of every split end at the same size, channels and dtype",),
                )
            ]
    return []
