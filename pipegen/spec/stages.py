"""Loads the stages of a spec: each is the whole spec again with other values of params, and another batch."""

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
"""What all stages have in common: the records, where each belongs, and what keys their order and their draws."""
_SIZE: KeyPath = ("batch", "size")


@dataclass(frozen=True)
class Written:
    """Holds a spec before params are put in, and where its values stand, to be completed once for each stage."""

    tree: Tree
    locate: Locator

    @classmethod
    def of(cls, tree: Tree, locate: Locator) -> Written:
        """Keeps a tree as it is now."""
        spans = SourceMap(dict(tree.spans.values), dict(tree.spans.keys))
        known = Locator(spans, locate.files, locate.base, dict(locate.origins), dict(locate.params), outside=dict(locate.outside))
        return cls(Tree(deepcopy(tree.value), spans, dict(tree.odd_keys), tree.partial), known)

    def copy(self) -> tuple[Tree, Locator]:
        """Returns the spec without its stages, to be changed, and its places."""
        spans = SourceMap(dict(self.tree.spans.values), dict(self.tree.spans.keys))
        values = {key: deepcopy(value) for key, value in self.tree.value.items() if key != "stages"}
        known = self.locate
        locate = Locator(spans, known.files, known.base, dict(known.origins), dict(known.params), outside=dict(known.outside))
        return Tree(values, spans, dict(self.tree.odd_keys), self.tree.partial), locate


def in_stage(stage: TrainingStage, number: int, section: Params) -> dict[str, Value]:
    """Returns the values of the params that a stage sets; what is wrong with one is reported."""
    return {name: section.in_stage(name, value, ("stages", number, "params", name)) for name, value in stage.params.items()}


def with_batch(tree: Tree, stage: TrainingStage, number: int, locate: Locator) -> None:
    """Puts the batch of a stage in the place of the spec's; it stands where the stage says it."""
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
    """Returns the epochs of a stage, whose spec is given, and where the next one begins, from where this one does."""
    end = at.first + stage.epochs
    examples = 0 if spec.epoch == "pass" else stage.epochs * spec.epoch.steps * spec.batch.size
    return Stretch(at.first, end, at.examples), Stretch(end, None, at.examples + examples)


def beyond_reach(stage: TrainingStage, number: int, locate: Locator) -> Iterable[Diagnostic]:
    """Yields a finding for each param of a stage that reaches what all stages share."""
    for name in stage.params:
        reached = [path for path, names in locate.params.items() if name in names and any(path[: len(s)] == s for s in SHARED)]
        for path in reached[:1]:
            what = format_path(next(shared for shared in SHARED if path[: len(shared)] == shared))
            places = locate.label(("stages", number, "params", name), key=True), locate.label(path, "used here")
            yield make(
                "PG560",
                f"the param `{name}` reaches `{what}`, which is the same in all stages",
                *places,
                help=("the stages go on in one order over one set of records: leave it out here, or train with a spec of its own",),
            )


def of_stage(found: Iterable[Diagnostic], known: Iterable[Diagnostic], number: int, locate: Locator) -> list[Diagnostic]:
    """Returns the findings that only a stage has, each with the place of the stage."""
    said = {(d.code, d.message, d.span) for d in known}
    here = locate.label(("stages", number), f"in stage {number}")
    own = [d for d in found if d.code != "PG107" and (d.code, d.message, d.span) not in said]
    return [d if here in d.labels else replace(d, labels=(*d.labels, here)) for d in own]
