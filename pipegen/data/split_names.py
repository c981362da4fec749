"""Names of splits that mean something to their author and nothing to the language: a lint, and what Python says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.diagnostics.advice import write
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Applicability, Edit, Fix
from pipegen.diagnostics.foreign import rows
from pipegen.diagnostics.suggest import closest
from pipegen.spec.branches import branches

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pipegen.diagnostics.diagnostic import Diagnostic, Label, Span
    from pipegen.ops.transform import When
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec
    from pipegen.spec.source_map import KeyPath

_KNOWN = frozenset({"train", "validation", "test", "predict"})
_ATTRIBUTES = frozenset({"train", "validation", "test"})
"""The splits that are attributes of a pipeline."""


def lint_names(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    """Finds splits such as `val` and `training`, which nothing takes for `validation` and `train`.

    A name is the user's own where the split that it could be is there as well.
    """
    names = spec.split_names()
    taken: set[str] = set()
    for name in names:
        right = next((row.lines for row in rows(name, "split")), name.casefold())
        if name in _KNOWN or right not in _KNOWN or right in names:
            continue
        places = _places(spec, name)
        message = f"a split is named `{name}`, which nothing takes for `{right}`: {_WHY[right]}"
        said = f'name it {{}}, here and wherever `{name}` is used; or read it as `pipe["{name}"]`'
        help_ = write(right, "key", said)
        labels = [locate(place, key=True) for place in places]
        fix = _renamed(name, right, labels) if right not in taken else None
        taken.add(right)
        yield make("PG523", message, labels[0], help=help_, fix=fix)


def meant_split(name: str, splits: Collection[str]) -> str:
    """Says which split Python code probably meant by a name that is none, and which there are; begins with a semicolon."""
    there = f"; the splits are {', '.join(splits)}"
    usual = {name, *(row.lines for row in rows(name, "split"))}
    alike = (split for split in splits if any(row.lines in usual for row in rows(split, "split")))
    near = name if name in splits else closest(name, splits) or next(alike, None)
    if near is None:
        return there
    written = f"pipe.{near}" if near in _ATTRIBUTES else f'pipe["{near}"]'
    return f"; is `{written}` meant?{there}"


_WHY = {
    "train": "only `train` is shuffled and augmented",
    "validation": "`pipe.validation` is the split `validation`",
    "test": "`pipe.test` is the split `test`",
    "predict": "`predict` is the split without labels",
}


def uses(spec: PipelineSpec) -> Iterator[tuple[str, KeyPath]]:
    """Yields the splits that a spec names beside their definitions, and where."""
    if isinstance(spec.batch.remainder, dict):
        yield from ((name, ("batch", "remainder", name)) for name in spec.batch.remainder)
    for i, step in enumerate(spec.transforms):
        if isinstance(step.when, list):
            yield from ((name, ("transforms", i, step.op, "when", j)) for j, name in enumerate(step.when))
    for branch, view in branches(spec).items():
        own: list[tuple[When | None, KeyPath]] = [(view.when, ("views", str(branch), "when"))]
        own += [(step.when, ("views", str(branch), "transforms", i, step.op, "when")) for i, step in enumerate(view.transforms)]
        for when, place in own:
            yield from ((name, (*place, j)) for j, name in enumerate(when if isinstance(when, list) else ()))
    for i, test in enumerate(spec.tests):
        if isinstance(test.split, str):
            yield test.split, ("tests", i, test.op, "split")
        else:
            yield from ((name, ("tests", i, test.op, "split", j)) for j, name in enumerate(test.split or ()))


def _places(spec: PipelineSpec, name: str) -> list[KeyPath]:
    """Returns where a spec names a split, its definition first."""
    definition: KeyPath = ("splits", "parts", name) if spec.source.split_names() is None else ("source", spec.source.op, name)
    return [definition, *(place for used, place in uses(spec) if used == name)]


def _renamed(name: str, right: str, places: list[Label]) -> Fix | None:
    """Returns the edit of every place that names the split; none where one stands in no file, or as something else than the bare name."""
    spans: list[Span] = [label.span for label in places if label.span is not None]
    if len(spans) < len(places) or any(s.line != s.end_line or s.end_column - s.column != len(name) for s in spans):
        return None
    # Code that asks for `pipe["val"]` does not follow.
    return Fix(f"rename the split `{name}` to `{right}`", tuple(Edit(span, right) for span in spans), Applicability.SUGGESTION)
