"""Tests of the numbers of examples and classes: `examples`, `classes`, `balance`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field, model_validator

from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.ops.data_test import ClassCounts, DataTest, Failure, Known, Listed, Outcome, listed_splits, many, unknown_features
from pipegen.ops.fields.notes import quoted
from pipegen.ops.kinds.base import ExampleClass, ItemClass, having


class Examples(DataTest):
    """Counts the examples of a split, or of several together; without `split`, of all."""

    op = "examples"
    examples = ("examples: {split: train, min: 1000}", "examples: {split: test, share: [0.1, 0.2]}")

    min: Annotated[int, Field(ge=0)] | None = None
    """The least number of examples."""
    max: Annotated[int, Field(ge=0)] | None = None
    """The greatest number of examples."""
    share: tuple[Annotated[float, Field(ge=0, le=1)], Annotated[float, Field(ge=0, le=1)]] | None = None
    """The least and the greatest fraction of the examples of all splits."""

    @model_validator(mode="after")
    def _bounded(self) -> Examples:
        if self.min is None and self.max is None and self.share is None:
            raise ValueError("give `min`, `max` or `share`")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"`max` is {self.max}, below `min`, which is {self.min}")
        if self.share is not None and self.share[0] > self.share[1]:
            raise ValueError("`share` is the least and the greatest fraction, in this order")
        return self

    def run(self, data: Listed) -> Outcome:
        splits = self.splits(data.known.splits)
        n = sum(map(data.num_examples, splits))
        total = sum(map(data.num_examples, data.known.splits))
        where = f"{listed_splits(splits)} {'has' if len(splits) == 1 else 'have'}"
        found = []
        if self.min is not None and n < self.min:
            found.append(Failure("PG710", f"{where} {many(n, 'example')}, fewer than {self.min:,}", "min"))
        if self.max is not None and n > self.max:
            found.append(Failure("PG710", f"{where} {many(n, 'example')}, more than {self.max:,}", "max"))
        share = n / total if total else 0.0
        if self.share is not None and not self.share[0] <= share <= self.share[1]:
            bounds = f"{self.share[0]:g} to {self.share[1]:g}"
            message = f"{where} {n:,} of {many(total, 'example')}, a share of {share:.4g}, which is not in {bounds}"
            found.append(Failure("PG710", message, "share"))
        return Outcome(f"{many(n, 'example')} in {listed_splits(splits)}", tuple(found))


class LabelTest(DataTest):
    """A test of the frequencies of the classes of a label."""

    feature: str | None = None
    """The label; by default the one that defines the classes of the data. For a label `with: boxes`, boxes are counted."""

    def features(self) -> tuple[str, ...]:
        return (self.feature,) if self.feature is not None else ()

    def label(self, known: Known) -> str | None:
        """The label to test; `None` if there is none."""
        if self.feature is not None:
            return self.feature
        main = known.source.class_feature()
        types = known.source.infer()
        return main or next(iter((*having(types, ExampleClass), *having(types, ItemClass))), None)

    def problems(self, known: Known) -> Iterator[OpError]:
        name = self.label(known)
        if name is None:
            yield OpError("PG700", f"`{self.op}` counts classes, but the source has no labels", help="remove the test")
            return
        unknown = [*unknown_features(known, self.splits(known.splits), [name])]
        yield from unknown
        labels = [f"`{n}`" for n in having(known.source.infer(), ExampleClass, ItemClass)]
        if not unknown and f"`{name}`" not in labels:
            help_ = f"the labels are {', '.join(labels)}" if labels else "the source has no labels: remove the test"
            yield OpError("PG700", f"`{self.op}` counts classes, but `{name}` is not a label", field="feature", help=help_)


_SHOWN = 5


class Classes(LabelTest):
    """Counts the examples of every class, or of some, in each split. Without arguments, every split must have every class."""

    op = "classes"
    examples = ("classes", "classes: {split: train, min: 100}", "classes: {names: [rose, tulip], min_share: 0.05}")

    names: list[str] | None = None
    """The classes to test; by default all."""
    min: Annotated[int, Field(ge=0)] = 1
    """The least number of examples of each of these classes, in each split."""
    max: Annotated[int, Field(ge=1)] | None = None
    """The greatest number of examples of each of these classes, in each split."""
    min_share: Annotated[float, Field(gt=0, le=1)] | None = None
    """The least share of each of these classes among the examples of a split, or the items on them."""
    max_share: Annotated[float, Field(gt=0, le=1)] | None = None
    """The greatest share."""

    @model_validator(mode="after")
    def _ordered(self) -> Classes:
        if self.max is not None and self.max < self.min:
            raise ValueError(f"`max` is {self.max}, below `min`, which is {self.min}")
        return self

    def run(self, data: Listed) -> Outcome:
        found: list[Failure] = []
        seen = []
        for split in self.splits(data.known.splits):
            counted = data.class_counts(split, self.label(data.known) or "")
            unknown = next((name for name in self.names or () if name not in counted.names), None)
            if unknown is not None:
                near = closest(unknown, counted.names)
                help_ = f"did you mean {near!r}?" if near else f"the classes are {quoted(counted.names)}"
                raise OpError("PG701", f"unknown class {unknown!r}", field="names", help=help_)
            named = zip(counted.names, counted.counts, strict=True)
            of = {name: n for name, n in named if self.names is None or name in self.names}
            found += self._failures(split, of, counted)
            least, most = min(of.values(), default=0), max(of.values(), default=0)
            each = f"{least:,} to {many(most, counted.each)}" if least < most else many(most, counted.each)
            seen.append(f"{split}: {many(len(of), 'class', 'classes')} of {each}")
        return Outcome("; ".join(seen), tuple(found))

    def _failures(self, split: str, counts: dict[str, int], counted: ClassCounts) -> list[Failure]:
        total, each = counted.total, counted.each
        missing = [name for name, n in counts.items() if n == 0 and self.min > 0]
        rare = {name: n for name, n in counts.items() if 0 < n < self.min}
        usual = {name: n for name, n in counts.items() if self.max is not None and n > self.max}
        shares = {name: n / total if total else 0.0 for name, n in counts.items()}
        low = {name: s for name, s in shares.items() if self.min_share is not None and s < self.min_share and name not in missing}
        high = {name: s for name, s in shares.items() if self.max_share is not None and s > self.max_share}
        found = []
        if missing:
            message = f"`{split}` has no {each} of {many(len(missing), 'class', 'classes')}: {quoted(missing)}"
            help_ = "add data of the class to this split; if not every class has to occur, list those that do in `names`"
            found.append(Failure("PG711", message, help=(help_,)))
        for some, field, said in ((rare, "min", f"fewer than {self.min:,} {each}s"), (usual, "max", f"more than {self.max} {each}s")):
            if some:
                found.append(Failure("PG710", f"`{split}` has {said} of {_counted(some)}", field))
        for few, field, bound in ((low, "min_share", self.min_share), (high, "max_share", self.max_share)):
            if few:
                word = "below" if field == "min_share" else "above"
                listed = _counted({name: f"{share:.4g}" for name, share in few.items()})
                found.append(Failure("PG710", f"in `{split}` the share of {listed} is {word} {bound:g}", field))
        return found


def _counted(counts: Mapping[str, object]) -> str:
    """Lists classes with a figure each: `'rose' (3), 'tulip' (5) and 2 more`."""
    shown = [f"{name!r} ({n})" for name, n in list(counts.items())[:_SHOWN]]
    return ", ".join(shown) + (f" and {len(counts) - _SHOWN:,} more" if len(counts) > _SHOWN else "")


class Balance(LabelTest):
    """Compares the most frequent class of each split with the rarest."""

    op = "balance"
    bare = "max_ratio"
    examples = ("balance: {feature: label, max_ratio: 10}",)

    max_ratio: Annotated[float, Field(ge=1)]
    """The greatest ratio of examples, or items, of the most frequent class to those of the rarest."""

    def run(self, data: Listed) -> Outcome:
        found: list[Failure] = []
        seen = []
        for split in self.splits(data.known.splits):
            counted = data.class_counts(split, self.label(data.known) or "")
            names, counts = counted.names, counted.counts
            if not counts:
                continue
            most, least = max(range(len(counts)), key=counts.__getitem__), min(range(len(counts)), key=counts.__getitem__)
            ratio = counts[most] / counts[least] if counts[least] else float("inf") if counts[most] else 1.0
            seen.append(f"{split}: {ratio:.3g} to 1" if counts[least] or not counts[most] else f"{split}: a class without {counted.each}s")
            if ratio > self.max_ratio:
                rarest = f"{names[least]!r} has {counts[least]:,}: {ratio:.3g} times as many" if counts[least] else f"{names[least]!r} none"
                both = f"{names[most]!r} has {many(counts[most], counted.each)} and {rarest}"
                message = f"in `{split}`, {both}, and `max_ratio` is {self.max_ratio:g}"
                by_example = counted.each == "example"
                weigh = "weigh the loss: `model.fit(…, class_weight=pipe.class_weights)`" if by_example else "weigh it in the loss"
                found.append(Failure("PG712", message, "max_ratio", (f"add examples of the rare class, or {weigh}",)))
        return Outcome("; ".join(seen), tuple(found))
