"""Loading of the stages of a spec: each is the whole spec with other values of params, or another batch size."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, replace

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.spec.locate import Locator
from pipegen.spec.models import PipelineSpec, Stretch, TrainingStage
from pipegen.spec.params import Params, Value
from pipegen.spec.source_map import KeyPath, SourceMap, Tree, format_path

SHARED: tuple[KeyPath, ...] = (("source",), ("splits",), ("seed",), ("errors", "exclude"), ("errors", "missing"), ("sampling", "subset"))
"""The settings that all stages share: the records, their splits, and the seed of order and draws."""
_SIZE: KeyPath = ("batch", "size")


@dataclass(frozen=True)
class Written:
    """A spec with its places before params are filled in, from which each stage is made."""

    tree: Tree
    locate: Locator

    @classmethod
    def of(cls, tree: Tree, locate: Locator) -> Written:
        """Copies a tree in its present state."""
        spans = SourceMap(dict(tree.spans.values), dict(tree.spans.keys))
        known = Locator(spans, locate.files, locate.base, dict(locate.origins), dict(locate.params), outside=dict(locate.outside))
        return cls(Tree(deepcopy(tree.value), spans, dict(tree.odd_keys), tree.partial), known)

    def copy(self) -> tuple[Tree, Locator]:
        """A copy of the spec without its stages, with its places."""
        spans = SourceMap(dict(self.tree.spans.values), dict(self.tree.spans.keys))
        values = {key: deepcopy(value) for key, value in self.tree.value.items() if key != "stages"}
        known = self.locate
        locate = Locator(spans, known.files, known.base, dict(known.origins), dict(known.params), outside=dict(known.outside))
        return Tree(values, spans, dict(self.tree.odd_keys), self.tree.partial), locate


def in_stage(stage: TrainingStage, number: int, section: Params) -> dict[str, Value]:
    """The values of the params of a stage; invalid ones are reported."""
    return {name: section.in_stage(name, value, ("stages", number, "params", name)) for name, value in stage.params.items()}


def with_batch(tree: Tree, stage: TrainingStage, number: int, locate: Locator) -> None:
    """Replaces the batch size of the spec by that of a stage, with its place."""
    if stage.batch is None:
        return
    given = tree.value.get("batch")
    tree.value["batch"] = {**(given if isinstance(given, dict) else {}), "size": stage.batch}
    for path in [path for path in locate.outside if path[:2] == _SIZE]:
        del locate.outside[path]
    at: KeyPath = ("stages", number, "batch")
    for spans in (tree.spans.values, tree.spans.keys):
        if at in spans:
            spans[_SIZE] = spans[at]
            spans.setdefault(_SIZE[:1], spans[at])


def stretch_of(stage: TrainingStage, spec: PipelineSpec, at: Stretch) -> tuple[Stretch, Stretch]:
    """The epochs of a stage with the given spec, and the begin of the next stage; `at` is the begin of this one."""
    end = at.first + stage.epochs
    examples = 0 if spec.epoch == "pass" else stage.epochs * spec.epoch.steps * spec.batch.size
    return Stretch(at.first, end, at.examples), Stretch(end, None, at.examples + examples)


def beyond_reach(stage: TrainingStage, number: int, locate: Locator) -> Iterable[Diagnostic]:
    """Finds params of a stage that change a setting that all stages share."""
    for name in stage.params:
        reached = [path for path, names in locate.params.items() if name in names and any(path[: len(s)] == s for s in SHARED)]
        for path in reached[:1]:
            what = format_path(next(shared for shared in SHARED if path[: len(shared)] == shared))
            places = locate.label(("stages", number, "params", name), key=True), locate.label(path, "used here")
            yield make(
                "PG560",
                f"the param `{name}` changes `{what}`, which all stages share",
                *places,
                help=("leave it out here, or train with a spec of its own: the stages share one set of records in one order",),
            )


def of_stage(found: Iterable[Diagnostic], known: Iterable[Diagnostic], number: int, locate: Locator) -> list[Diagnostic]:
    """The findings that only a stage has, each with the place of the stage."""
    said = {(d.code, d.message, d.span) for d in known}
    here = locate.label(("stages", number), f"in stage {number}")
    own = [d for d in found if d.code != "PG107" and (d.code, d.message, d.span) not in said]
    return [d if here in d.labels else replace(d, labels=(*d.labels, here)) for d in own]
