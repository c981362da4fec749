"""Tests of the keys of examples: `accepted`, `present`, `unique`, `disjoint`; and of copies in two splits: `no_leak`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.ops.data_test import Copies, DataTest, Failure, Known, Listed, Outcome, Reads, listed_splits, many, named
from pipegen.ops.kinds.base import Levels, having
from pipegen.patterns import compile_pattern

Name = Annotated[int, Field(ge=0)] | Annotated[str, Field(min_length=1)]


def _check_pattern(value: str) -> str:
    compile_pattern(value)
    return value


Regex = Annotated[str, AfterValidator(_check_pattern)]


class KeyTest(DataTest):
    """A test of keys of examples: a column of the table, the file of a feature, or a part of the path."""

    bare: ClassVar[str | None] = "key"

    key: Name | None = None
    """A column of the table, by its name or its number from 0; a key of records; or a feature with a file, whose path is the key."""
    path: Regex | None = None
    """Instead of `key`: a regular expression (RE2) searched in the relative path; its first group, or the whole match, is the key. Examples
    without a match have no key."""

    @model_validator(mode="after")
    def _one(self) -> KeyTest:
        if (self.key is None) == (self.path is None):
            raise ValueError("give `key` or `path`, and not both" if self.key is not None else "give `key` or `path`")
        return self

    def features(self) -> tuple[str, ...]:
        return (self.key,) if isinstance(self.key, str) else ()

    @property
    def field(self) -> str:
        """The argument that names the key."""
        return "key" if self.path is None else "path"

    @property
    def called(self) -> str:
        """The name of the key in a sentence."""
        return f"`{self.key}`" if self.path is None else f"the part of the path that matches `{self.path}`"

    def problems(self, known: Known) -> Iterator[OpError]:
        files = [name for name, t in known.source.infer().items() if t.encoded]
        if self.path is not None and known.source.has_rows():
            yield OpError("PG700", f"`{self.op}` tests paths, but `{known.source.op}` has rows without paths", field="path")
        advice = None if self.key is None or self.key in files else known.source.lacks_column(str(self.key))
        if advice is not None:
            message = f"`{known.source.op}` has no column `{self.key}`"
            listed = " or ".join(f"`{name}`" for name in files)
            help_ = f"`key` can be the file of {listed}; for a part of the path give `path: REGEX`" if files else "remove the test"
            if self.key in dict(known.source.infer().items()):
                message = f"`{self.key}` has no file in the source `{known.source.op}`, so it identifies no example"
            yield OpError("PG700", message, field="key", help=(*advice, help_))

    def looked_up(self, data: Listed, split: str) -> Sequence[str]:
        """The key of each example of a split; the empty text for an example without one."""
        if self.path is not None:
            pattern = compile_pattern(self.path)
            found = (pattern.search(key) for key in data.keys(split))
            return ["" if m is None else m.whole if m.first is None else m.first for m in found]
        assert self.key is not None  # noqa: S101 - checked by the validator
        files = data.files(split, self.key) if isinstance(self.key, str) else None
        return files if files is not None else data.cells(split, self.key)


class Accepted(KeyTest):
    """Finds keys that are not accepted. Examples without a key do not count; `present` finds them."""

    op = "accepted"
    bare = None
    examples = ("accepted: {key: site, values: [bern, basel]}", "accepted: {key: image_id, matches: 'IMG_\\d{4}'}")

    values: list[str] = Field(default=[], min_length=1)
    """The keys that are accepted."""
    matches: Regex | None = None
    """Instead of `values`: a regular expression (RE2) that must match each whole key."""

    @model_validator(mode="after")
    def _some(self) -> Accepted:
        if bool(self.values) == (self.matches is not None):
            raise ValueError("give `values` or `matches`" + (", and not both" if self.values else ""))
        return self

    def run(self, data: Listed) -> Outcome:
        splits = self.splits(data.known.splits)
        counts = Counter(key for split in splits for key in self.looked_up(data, split) if key)
        pattern = compile_pattern(rf"\A(?:{self.matches})\z") if self.matches is not None else None
        values = set(self.values)
        wrong = [key for key in counts if (key not in values if pattern is None else pattern.search(key) is None)]
        seen = f"{many(len(counts), 'value')} in {listed_splits(splits)}"
        if not wrong:
            return Outcome(seen)
        examples = sum(counts[key] for key in wrong)
        what = "are not among the accepted ones" if len(wrong) > 1 else "is not among the accepted ones"
        if pattern is not None:
            what = f"{'do' if len(wrong) > 1 else 'does'} not match `{self.matches}`"
        message = f"{many(len(wrong), 'value')} of {self.called}, in {many(examples, 'example')}, {what}: {named(wrong)}"
        near = closest(wrong[0], self.values)
        help_ = (f"is {near!r} meant?",) if near else ()
        return Outcome(seen, (Failure("PG716", message, "matches" if pattern is not None else "values", help_),))


class Present(KeyTest):
    """Finds examples without a key, which are empty cells of a table or paths without a match, and keys that no example has."""

    op = "present"
    examples = ("present: image_id", "present: {key: site, values: [bern, basel]}")

    values: list[str] = Field(default=[], min_length=1)
    """The keys that must occur in these splits."""

    def run(self, data: Listed) -> Outcome:
        splits = self.splits(data.known.splits)
        without: list[str] = []
        have: set[str] = set()
        total = 0
        for split in splits:
            keys = self.looked_up(data, split)
            total += len(keys)
            have.update(keys)
            names = data.keys(split)
            without += [names[i] for i, key in enumerate(keys) if not key]
        found = []
        if without:
            verb = "has" if len(without) == 1 else "have"
            message = f"{many(len(without), 'example')} of {total:,} {verb} no {self.called}: {named(without)}"
            found.append(Failure("PG715", message, self.field, ("fill the cells in, or leave such examples out",)))
        missing = [value for value in self.values if value not in have]
        if missing:
            message = f"no example in {listed_splits(splits)} has {self.called} {named(missing)}"
            found.append(Failure("PG715", message, "values", ("add the data, or remove it from the list",)))
        return Outcome(f"{many(total - len(without), 'example')} with a key in {listed_splits(splits)}", tuple(found))


class Unique(KeyTest):
    """Finds keys that several examples share: in a split, or in several together; without `split`, in all. Examples without a key do not
    count."""

    op = "unique"
    examples = ("unique: image_id", "unique: {path: '([^/]+)$'}")

    def run(self, data: Listed) -> Outcome:
        splits = self.splits(data.known.splits)
        seen = Counter(key for split in splits for key in self.looked_up(data, split) if key)
        twice = [key for key, n in seen.items() if n > 1]
        looked = f"{many(len(seen), 'key')} in {listed_splits(splits)}"
        if not twice:
            return Outcome(looked)
        extra = many(sum(seen[key] - 1 for key in twice), "example")
        verb = "occurs" if len(twice) == 1 else "occur"
        message = f"{many(len(twice), 'value')} of {self.called} {verb} more than once, in {extra} too many: {named(twice)}"
        help_ = "remove the repeated examples; if repeats are intended, such as several images of a subject, test for `disjoint` splits"
        return Outcome(looked, (Failure("PG714", message, self.field, (help_,)),))


class Disjoint(KeyTest):
    """Finds keys that two splits share, such as a patient with images in both. Examples without a key do not count."""

    op = "disjoint"
    examples = ("disjoint: patient", "disjoint: {path: '^(patient_\\d+)/', split: [train, test]}")

    def problems(self, known: Known) -> Iterator[OpError]:
        yield from super().problems(known)
        yield from needs_two_splits(self.op, self.splits(known.splits), given=self.split is not None)

    def run(self, data: Listed) -> Outcome:
        splits = self.splits(data.known.splits)
        keys = {split: dict.fromkeys(key for key in self.looked_up(data, split) if key) for split in splits}
        source, found = data.known.source, []
        group = self.key if self.path is None else "{{path: '{}'}}".format(self.path.replace("'", "''"))
        help_ = f"`splits: {{group: {group}}}` keeps what belongs together in one split"
        if source.split_names() is not None or (self.path is None and self.key in source.infer()):
            help_ = "take them out of one of the splits"  # the data itself defines the splits, or the key is not a column
        for first, second in combinations(splits, 2):
            shared = [key for key in keys[first] if key in keys[second]]
            if shared:
                what = f"{many(len(shared), 'value')} of {self.called} {'is' if len(shared) == 1 else 'are'}"
                message = f"{what} in both `{first}` and `{second}`: {named(shared)}"
                found.append(Failure("PG717", message, self.field, (help_,)))
        return Outcome(f"{many(len(set().union(*keys.values())), 'key')} in {listed_splits(splits)}", tuple(found))


def needs_two_splits(op: str, splits: tuple[str, ...], *, given: bool) -> Iterator[OpError]:
    """Yields the error for a test between splits that has only one."""
    if len(splits) < 2:
        help_ = "name two splits or more" if given else "remove the test, or divide the data with `splits`"
        message = f"`{op}` compares splits, but the spec has only `{splits[0]}`"
        yield OpError("PG700", message, field="split" if given else None, help=help_)


_SHOWN = 3


class NoLeak(DataTest):
    """Finds images of one split that are also in another: a model would be evaluated on images it was trained on.

    A copy has the same content, or is an image whose perceptual hash and pixels are nearly the same; a possible copy is a warning. Sounds,
    and windows of series, are compared by their bytes.
    """

    op = "no_leak"
    bare = "by"
    reads: ClassVar[Reads] = "files"
    examples = ("no_leak: exact", "no_leak: {by: near, split: [train, test]}")

    by: Literal["exact", "near"]
    """What counts as a copy: the same bytes (`exact`), or also an image that was saved again, made smaller, cropped a little or mirrored
    (`near`), which decodes every file."""

    def problems(self, known: Known) -> Iterator[OpError]:
        yield from needs_two_splits(self.op, self.splits(known.splits), given=self.split is not None)

    def run(self, data: Listed) -> Outcome:
        splits = self.splits(data.known.splits)
        pairs, looked_at = data.copies(splits, self.by == "near")
        total = sum(map(data.num_examples, splits))
        if total and not looked_at:
            message = f"none of the {many(total, 'record')} of {listed_splits(splits)} could be compared"
            raise OpError(
                "PG702",
                message,
                help=(
                    "`pipegen validate SPEC --data` names files that cannot be read",
                    "sounds are compared by `no_leak: exact` alone, and rows of numbers not at all",
                ),
            )
        compared = many(total, "record") if looked_at == total else f"{looked_at:,} of {many(total, 'record')}"
        seen = f"{compared} of {listed_splits(splits)} compared"
        help_ = _HELP if data.known.source.split_names() is None else _HELP[:1]
        both = [(severity, [p for p in pairs if p.severity == severity]) for severity in ("error", "warning")]
        return Outcome(seen, tuple(_failure(some, help_, data.known, doubtful=severity == "warning") for severity, some in both if some))


def _failure(pairs: Sequence[Copies], help_: tuple[str, ...], known: Known, *, doubtful: bool) -> Failure:
    between = Counter((p.split, p.other_split) for p in pairs)
    where = "; ".join(f"{n:,} in `{a}` and `{b}`" for (a, b), n in between.items())
    alike = ("is the same as" if p.same else "mirrors" if p.mirrored else "looks like" for p in pairs[:_SHOWN])
    shown = ", ".join(f"{p.key!r} {like} {p.other_key!r}" for p, like in zip(pairs, alike, strict=False))
    rest = f" and {len(pairs) - _SHOWN:,} more" if len(pairs) > _SHOWN else ""
    noun = "image" if having(known.source.infer(), Levels) else "record"
    what = many(len(pairs), f"{noun} is", f"{noun}s are")
    message = f"{what} {'probably ' if doubtful else ''}in two splits ({where}): {shown}{rest}"
    return Failure("PG721", message, None, help_, doubtful)


_HELP = (
    "`pipegen report SPEC --write-exclude copies.txt` shows both of each pair, and lists one for `splits: {exclude: copies.txt}`",
    "what belongs together stays in one split by `splits.group`",
)
