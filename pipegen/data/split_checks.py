"""Checks of `splits` that need no data: sizes, options that exclude each other, names, lints."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction

from pipegen.data.named_files import path_only
from pipegen.data.rounding import SLACK, exact
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Advice, Applicability, Diagnostic, Diagnostics, Edit, Fix, Severity, write
from pipegen.diagnostics.suggest import closest, rows
from pipegen.ops.sampling_sections import REST, ByColumn, PathGroup, Splits
from pipegen.ops.sources.listing.base import PREDICTED
from pipegen.ops.transform import When
from pipegen.patterns import compile_pattern
from pipegen.spec.expect import join, one_of
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec
from pipegen.spec.source_map import KeyPath
from pipegen.spec.variants import branches, joined, part_path, relocated_part

_KNOWN = frozenset({"train", "validation", "test", "predict"})
_ATTRIBUTES = _KNOWN - {"predict"}  # splits that are attributes of a pipeline


def lint_names(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    """Finds splits such as `val` and `training`, which do not act as `validation` and `train`.

    Accepts such a name if the spec also has the split that it resembles.
    """
    names = spec.split_names()
    taken: set[str] = set()
    for name in names:
        right = name if name in _KNOWN else next((row.lines for row in rows(name, "split")), name.casefold())
        if right not in _KNOWN or right in names:
            continue
        definition: KeyPath = ("splits", "parts", name) if spec.source.split_names() is None else ("source", spec.source.op, name)
        labels = [locate(place, key=True) for place in (definition, *(place for used, place in uses(spec) if used == name))]
        message = f"the split `{name}` does not act as `{right}`: {_WHY[right]}"
        help_ = write(right, "key", f'name it {{}}, here and wherever `{name}` is used; or read it as `pipe["{name}"]`')
        # Bare names in files can be renamed; code that asks for `pipe["val"]` does not follow.
        spans = [s for s in (at.span for at in labels) if s is not None and (s.end_line, s.end_column) == (s.line, s.column + len(name))]
        fix = Fix(f"rename the split `{name}` to `{right}`", tuple(Edit(span, right) for span in spans), Applicability.SUGGESTION)
        renames = right not in taken and len(spans) == len(labels)
        taken.add(right)
        yield make("PG523", message, labels[0], help=help_, fix=fix if renames else None)


def meant_split(name: str, splits: Collection[str]) -> str:
    """Suggests a split for an unknown name in Python code, and lists the splits; begins with a semicolon."""
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
    """Yields each use of a split's name outside of its definition, with its place."""
    if isinstance(spec.batch.remainder, dict):
        yield from ((name, ("batch", "remainder", name)) for name in spec.batch.remainder)
    whens: list[tuple[When | None, KeyPath]] = [(step.when, ("transforms", i, step.op, "when")) for i, step in enumerate(spec.transforms)]
    for branch, view in branches(spec).items():
        whens.append((view.when, ("views", str(branch), "when")))
        whens += [(step.when, ("views", str(branch), "transforms", i, step.op, "when")) for i, step in enumerate(view.transforms)]
    for when, place in whens:
        yield from ((name, (*place, j)) for j, name in enumerate(when if isinstance(when, list) else ()))
    for i, test in enumerate(spec.tests):
        if isinstance(test.split, str):
            yield test.split, ("tests", i, test.op, "split")
        else:
            yield from ((name, ("tests", i, test.op, "split", j)) for j, name in enumerate(test.split or ()))


_PARTS = ("splits", "parts")
_EXAMPLE = "{train: 0.8, validation: 0.2}"
_GUESSES = 50  # names that get a suggestion: each takes time, and a damaged spec may hold thousands


WITHOUT_DATA = frozenset({"PG626"})  # findings that hold only until the data is listed
WITH_DATA = frozenset({"PG495"})  # findings of plans that only the listed data shows


def check_splits(spec: PipelineSpec, locate: Locate = path_only) -> Diagnostics:
    """Finds what is wrong with splits, as far as that needs no data."""
    found = Diagnostics()
    if spec.source.mixed():
        found.extend(_mix(spec, locate))
    checks = (
        _columns,
        _sizes,
        _conflicts,
        _rows,
        _overlaps,
        _as_utility,
        _folds,
        _labels_and_groups,
        _unknown_names,
        _lints,
        _of_100,
        lint_names,
    )
    for check in checks:
        found.extend(check(spec, locate))
    return found


def _mix(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    """Checks the splits and the epoch of a mix, and the splits of its parts."""
    if spec.epoch != "pass":
        help_ = f"remove `epoch`; in the mix, `epoch: {spec.epoch.steps * spec.batch.size}` counts as many examples"
        message = "the `mix` sets the length of an epoch, so `epoch` is not allowed beside it"
        yield make("PG460", message, locate(("epoch",), key=True), locate(("source", "mix", "epoch"), "it is set here"), help=help_)
    first = next(iter(spec.source.mixed()))
    for section, help_ in (
        ("sampling", f"write it in a part, `source.mix.parts.{first}.sampling`: it chooses the examples of a pass through that part"),
        ("order", f"write it in a part, `source.mix.parts.{first}.order`: it orders the examples of that part"),
    ):
        if getattr(spec, section) is not None:
            message = f"the weights of a `mix` set how many examples of each part an epoch has, so `{section}` is not allowed beside it"
            yield make("PG467", message, locate((section,), key=True), help=help_)
    for option in ("parts", "method", "stratify", "group", "folds", "seed"):
        if getattr(spec.splits, option) != getattr(Splits(), option):
            message = f"each part of a `mix` has `splits` of its own, so `{option}` is not allowed here"
            help_ = f"write it in `source.mix.parts.{first}.splits`, and in those of the other parts"
            yield make("PG302", message, locate(("splits", option), key=True), help=help_)
    trains = "train" in spec.split_names()
    for name, part in spec.source.mixed().items():
        if trains and "train" not in part.split_names() and any(part.weights()):
            message = f"the part `{name}` has a weight, but no split `train` to mix"
            advice = (f"give it one: `splits: {{parts: {_EXAMPLE}}}`", "or `weight: 0`, for a part that is not trained on")
            yield make("PG461", message, locate(part_path(name), key=True), help=advice)
        alone = check_splits(joined(spec, name).model_copy(update={"transforms": ()}), relocated_part(locate, spec, name))
        yield from (d for d in alone if (d.severity is Severity.ERROR and d.code not in ("PG220", "PG460")) or d.code == "PG626")


def _columns(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    for field, column in spec.splits.columns().items():
        advice = spec.source.lacks_column(str(column))
        if advice is None:
            continue
        instead = {
            "group": "with files, group by the path: `group: {path: REGEX}`",
            "stratify.column": "`stratify: label` goes by the classes",
        }
        help_ = (*advice, instead.get(field, "with folders, use `method: folder` or the source `by_split`"))
        message = f"`{spec.source.op}` has no column {column!r}"
        yield make("PG302", message, locate(("splits", *field.removesuffix(".column").split("."))), help=help_)


def _sizes(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    parts, method = spec.splits.parts, spec.splits.method
    texts = [name for name, size in parts.items() if isinstance(size, str)]
    listing = [name for name, size in parts.items() if isinstance(size, dict)]
    if listing:
        yield from _values(spec, listing, locate)
        return
    if spec.splits.by_time is not None:
        yield from _in_time(spec, locate)
        return
    if method == "folder" or isinstance(method, ByColumn):
        for name in parts:
            if name not in texts:
                what = "folder" if method == "folder" else "value of the column"
                message = f"with this method a part names its {what}, and `{name}` has a size"
                yield make("PG301", message, locate((*_PARTS, name)), help=write(name, "value", "such as {}", shown=f"{name}: {name}"))
        if method == "folder":
            yield from _folders(spec, locate)
            return
        owner: dict[str, str] = {}
        for name in texts:
            other = owner.setdefault(str(parts[name]), name)
            if other != name:
                message = f"`{other}` and `{name}` are both the rows with {parts[name]!r}"
                yield make("PG301", message, locate((*_PARTS, name)), help="a row is in one part: give each a value of its own")
        return
    for name in texts:
        message = f"`{name}` needs a fraction such as 0.8 or a count of examples, and has {parts[name]!r}"
        yield make("PG301", message, locate((*_PARTS, name)), help="folders are named with `method: folder`")
    if not texts:
        yield from _numbers(spec, locate)


def _in_time(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    """Checks parts by time: of one form each, the first of which may be the rest."""
    parts, rules, series = spec.splits.parts, spec.splits.by_time, spec.source.series()
    if series is None and not spec.source.mixed():
        message = f"`method: time` divides windows of time series, and the records of `{spec.source.op}` are none"
        yield make("PG302", message, locate(("splits", "method")), help="read them by the source `series`, with the column `order`")
        return
    if rules is not None and rules.history and series is not None and not series.horizon:
        message = "`history` lets windows begin before their part if their horizon is in it, and the windows have none"
        help_ = "give them one, such as `window: {length: 96, horizon: 24}`, or remove `history`"
        yield make("PG302", message, locate(("splits", "method", "time", "history")), help=help_)
    named = [name for name, size in parts.items() if size == REST]
    first = next(iter(parts), "")
    for name in named if named != [first] else ():
        message = f"`{name}: {REST}` takes what the parts after it leave, so it must be the first one"
        yield make("PG301", message, locate((*_PARTS, name)), help="write fractions, counts or times for the others")
        return
    others = {name: size for name, size in parts.items() if size != REST}
    forms = {
        name: "a fraction" if isinstance(size, float) else "a count of rows" if isinstance(size, int) else "a time"
        for name, size in others.items()
    }
    odd = next((name for name in forms if forms[name] != next(iter(forms.values()))), None)
    if odd is not None:
        one = next(iter(forms))
        message = f"`{odd}` has {forms[odd]}, and `{one}` {forms[one]}"
        yield make(
            "PG301", message, locate((*_PARTS, odd)), locate((*_PARTS, one), forms[one]), help="write all parts but `rest` in one form"
        )
    elif spec.splits.folds is not None and (named or {*forms.values()} - {"a fraction"}):
        yield make("PG301", "beside `folds`, parts by time are fractions", locate(_PARTS), help="such as `parts: {test: 0.1}`")
    elif "a time" in forms.values() and not named:
        message = f"`{first}` is the first part, which begins with the rows"
        yield make(
            "PG301", message, locate((*_PARTS, first)), help=f"give it no time: `{first}: {REST}`; each other part begins at its own"
        )
    total = sum((exact(size) for size in others.values() if isinstance(size, float)), Fraction(0))
    if total > 1 + SLACK or (named and total >= 1):
        message = (
            f"the fractions sum to {float(total):g}, which leaves nothing for `{named[0]}`"
            if named
            else f"the fractions sum to {float(total):g}, which is more than all the data"
        )
        yield make(
            "PG301", message, locate(_PARTS), help="lower them to a sum of at most 1" if not named else "lower them to a sum below 1"
        )


def _overlaps(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    """Warns of windows that share rows and are dealt to splits one by one."""
    series, splits = spec.source.series(), spec.splits
    dealt = splits.method in ("random", "hash", "keras", "keras_utility") and (bool(splits.parts) or splits.folds is not None)
    if series is None or not series.overlap or not dealt or splits.column is not None:
        return
    if series.group is not None and str(splits.group) == str(series.group):
        return
    message = f"windows share rows with their neighbours, and `method: {splits.method}` puts neighbours into different splits"
    time = write("splits: {method: time}", "spec", "use {}: a part then has rows of its own")
    whole = () if series.group is None else (f"or keep each series in one split: `group: {series.group}`",)
    yield make("PG494", message, locate(("splits",)), help=(time, *whole))


def _values(spec: PipelineSpec, listing: list[str], locate: Locate) -> Iterator[Diagnostic]:
    splits, first = spec.splits, listing[0]
    if splits.method != "random":
        message = "the values in `parts` say which split a record is in, so `method` is not allowed"
        yield make("PG302", message, locate(("splits", "method"), key=True), locate((*_PARTS, first), "the values"), help="remove `method`")
        return
    for name, part in splits.parts.items():
        if not isinstance(part, dict):
            message = f"`{first}` lists values of the column {splits.column!r}, and `{name}` has none"
            help_ = f"list its values: `{name}: {{{splits.column}: […]}}`"
            yield make("PG301", message, locate((*_PARTS, name)), locate((*_PARTS, first), "values"), help=help_)
        elif splits.column not in part:
            message = f"`{first}` lists values of the column {splits.column!r}, but `{name}` of {next(iter(part))!r}"
            help_ = "a record could be in both: use one column for all parts"
            yield make("PG301", message, locate((*_PARTS, name)), locate((*_PARTS, first), "another column"), help=help_)
    found = splits.shared_value() if len(listing) == len(splits.parts) and not splits.files else None
    if found is not None:
        value, one, other = found
        message = f"`{other}` lists {value!r}, and so does `{one}`"
        labels = locate((*_PARTS, other)), locate((*_PARTS, one), "here, too")
        yield make("PG301", message, *labels, help="a record is in one part: list each value once")


def _folders(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    folders = {name: str(folder).strip("/").split("/") for name, folder in spec.splits.parts.items()}
    for name, folder in folders.items():
        if any(step in ("", ".", "..") for step in folder):
            yield make("PG301", f"`{name}` needs the name of a folder below the source's path", locate((*_PARTS, name)))
        for i, (other, outer) in enumerate(folders.items()):
            inside = folder[: len(outer)] == outer and folder != outer
            if inside or (folder == outer and i < list(folders).index(name)):
                message = f"the folder of `{name}` is or lies in that of `{other}`, so files would be in both"
                yield make("PG301", message, locate((*_PARTS, name)), locate((*_PARTS, other), "the other"))


def _numbers(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    parts, method = spec.splits.parts, spec.splits.method
    counts = [name for name, size in parts.items() if isinstance(size, int)]
    fractions = {name: exact(size) for name, size in parts.items() if isinstance(size, float)}
    if counts and fractions:
        message = f"`parts` mixes fractions and counts: `{counts[0]}` is a count of {parts[counts[0]]}"
        help_ = "write fractions for all parts or counts for all"
        yield make("PG301", message, locate((*_PARTS, counts[0])), locate((*_PARTS, next(iter(fractions))), "a fraction"), help=help_)
        return
    if PREDICTED in parts and spec.source.lacks(PREDICTED):
        message = "`predict` holds the examples without a label, so `parts` cannot set its size"
        yield make("PG301", message, locate((*_PARTS, PREDICTED), key=True), help="remove it: `parts` divides the examples with a label")
    total = sum(fractions.values(), Fraction(0))
    if total > 1 + SLACK:
        message = f"the fractions sum to {float(total):g}, which is more than all the data"
        whole = locate(_PARTS)
        each = [locate((*_PARTS, name), f"{float(size):g} from here") for name, size in fractions.items()]
        elsewhere = [label for label in each if label.span and whole.span and label.span.file != whole.span.file]
        largest = max(fractions, key=lambda name: fractions[name])
        left = fractions[largest] - (total - 1)
        help_ = f"with `{largest}: {float(left):g}` they sum to 1" if left > 0 else "lower them to a sum of at most 1"
        yield make("PG301", message, whole, *elsewhere, help=help_)
    if counts and method in ("hash", *_OF_KERAS):
        message = f"`method: {method}` needs fractions, and `{counts[0]}` is a count of {parts[counts[0]]}"
        yield make("PG301", message, locate((*_PARTS, counts[0])), help="`method: random` deals out exact counts")
    if method in _OF_KERAS and not counts:
        if len(parts) != 2 or "train" not in parts:
            message = f"`method: {method}` deals out two parts, `train` and one other"
            yield make("PG301", message, locate(_PARTS), help=write(_EXAMPLE, "value", "such as {}", shown=f"parts: {_EXAMPLE}"))
        elif abs(1 - total) > SLACK:
            message = f"Keras puts every file in one of its two parts, and the fractions sum to {float(total):g}"
            yield make("PG301", message, locate(_PARTS), help="let them sum to 1")


def _of_100(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    """Warns of counts that are probably percentages."""
    counts = {name: size for name, size in spec.splits.parts.items() if isinstance(size, int)}
    at_most = 5  # more parts are rarely given in per cent
    if not 0 < len(counts) == len(spec.splits.parts) <= at_most or spec.splits.folds is not None or sum(counts.values()) != 100:
        return
    message = f"{listed(counts)} {'are counts' if len(counts) > 1 else 'is a count'} of examples, and per cent sum to 100 as well"
    help_ = (per_cent(counts), "if 100 examples are meant, silence this: `# pipegen: ignore[PG626]`")
    yield make("PG626", message, locate(_PARTS), help=help_)


def listed(counts: Mapping[str, int]) -> str:
    """Joins the sizes of parts: `80 and 20`."""
    return join([str(size) for size in counts.values()], "and")


def per_cent(counts: Mapping[str, int]) -> Advice:
    """Suggests fractions for counts that sum to 100."""
    parts = ", ".join(f"{name}: {size / 100:g}" for name, size in counts.items())
    return write(f"{{{parts}}}", "value", "for per cent write {}", shown=f"parts: {{{parts}}}")


def _conflicts(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    splits = spec.splits
    given = {"stratify": splits.stratify is not None, "group": splits.group is not None, "folds": splits.folds is not None}
    named = {**given, "parts": bool(splits.parts), "method": splits.method != "random"}
    if spec.source.mixed():
        return
    if spec.source.split_names() is not None:
        for option in (o for o in ("parts", "method", "stratify", "folds") if named[o]):
            message = f"`{spec.source.op}` assigns records to splits itself, so `{option}` is not allowed"
            yield make("PG302", message, locate(("splits", option), key=True), help=f"remove `splits.{option}`")
        return
    if not splits.parts and splits.folds is None:
        for option in (o for o in ("method", "stratify", "group") if named[o]):
            message = f"`{option}` needs `parts`"
            help_ = write(f"splits: {{parts: {_EXAMPLE}}}", "spec", "add {}", shown=f"parts: {_EXAMPLE}")
            yield make("PG302", message, locate(("splits", option), key=True), help=help_)
        return
    listed = splits.column is not None and isinstance(splits.method, str)
    method = "time" if splits.by_time is not None else splits.method if isinstance(splits.method, str) and not listed else "{column: …}"
    for option, refused in _REFUSED.items():
        if given[option] and method in refused:
            message = f"`{option}` does not go with {'values in `parts`' if listed else f'`method: {method}`'}: {refused[method]}"
            other = locate(_PARTS, "the values") if listed else locate(("splits", "method"), "the method")
            random = write("splits: {method: random}", "spec", f"use {{}}, or remove `{option}`", shown="method: random")
            yield make("PG302", message, locate(("splits", option), key=True), other, help=f"remove `{option}`" if listed else random)
    for name in ("train", "validation"):
        if splits.folds is not None and name in splits.parts:
            message = f"the folds make up `{name}`, so `parts` cannot size it"
            said = "beside `folds`, `parts` names only what is taken out first, such as {}"
            help_ = write("splits: {parts: {test: 0.1}}", "spec", said, shown="{test: 0.1}", instead=True)
            yield make("PG302", message, locate((*_PARTS, name)), locate(("splits", "folds"), "the folds", key=True), help=help_)


def _as_utility(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    """Reports a `method: keras_utility` that Keras' utility could not reproduce."""
    splits, source = spec.splits, spec.source
    if splits.method != "keras_utility" or source.mixed():
        return
    if not source.has_folders() or source.split_method() != "random":
        message = f"`method: keras_utility` shuffles the image files of a folder, and the records of `{source.op}` are not such files"
        help_ = write("splits: {method: random}", "spec", "use {}", shown="method: random")
        yield make("PG302", message, locate(("splits", "method")), help=help_)
    if splits.seed >= _KERAS_SEEDS:
        message = f"`method: keras_utility` takes a seed below {_KERAS_SEEDS}, as Keras does, and `splits.seed` is {splits.seed}"
        yield make("PG302", message, locate(("splits", "seed")), help="write the `seed` that `image_dataset_from_directory` was given")


_OF_KERAS = ("keras", "keras_utility")
_KERAS_SEEDS = 2**32  # one above the highest seed of `numpy.random.RandomState`


def _rows(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    """Reports options that need paths if records are rows without paths."""
    if spec.splits.method == "folder" and not spec.source.has_folders():
        help_ = f"use `method: random`, or the source `by_split` with `{spec.source.op}` for each split"
        what = "rows and no folders" if spec.source.has_rows() or spec.source.column_names() is None else "files in several folders"
        yield make("PG302", f"`{spec.source.op}` has {what}", locate(("splits", "method")), help=help_)
    if spec.source.has_rows() and isinstance(spec.splits.group, PathGroup):
        yield make("PG302", f"`{spec.source.op}` has rows and no paths to group by", locate(("splits", "group")), help="remove `group`")


_GIVEN = "the data says which split a record is in"
_BY_TIME = "it cuts each series, whatever is in it"
_REFUSED: dict[str, dict[str, str]] = {
    "stratify": {
        "hash": "each record is placed by its own hash, whatever the others are",
        "keras": "it takes the first files of each class already",
        "keras_utility": "it shuffles the files of all classes together",
        "folder": _GIVEN,
        "{column: …}": _GIVEN,
        "time": _BY_TIME,
    },
    "group": {
        "time": "it cuts each series, so groups are not whole",
        "keras": "it cuts each class at a fixed file",
        "keras_utility": "it assigns each file by itself",
    },
    "folds": {
        "hash": "folds have exact sizes, and hashes have not",
        "keras": "Keras has no folds",
        "keras_utility": "Keras has no folds",
        "folder": _GIVEN,
        "{column: …}": _GIVEN,
    },
}
"""For each option, the methods that exclude it and why."""


def _folds(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    folds = spec.splits.folds
    if folds is not None and folds.fold >= folds.count:
        message = f"fold {folds.fold} is out of range: with `count: {folds.count}` the folds are 0 to {folds.count - 1}"
        yield make("PG303", message, locate(("splits", "folds", "fold")), locate(("splits", "folds", "count"), "the count"))
    sized = {"train", "validation"} & set(spec.splits.parts)
    if folds is not None and not sized and sum(s for s in spec.splits.parts.values() if isinstance(s, float)) >= 1:
        message = "`parts` takes all the data, so nothing is left for the folds"
        yield make("PG301", message, locate(_PARTS), help="lower the fractions to a sum below 1")


def _labels_and_groups(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    if spec.splits.stratify == "label" and not spec.source.has_classes():
        several = spec.source.has_labels()
        what = "one label for each example, and here they have several" if several else "labels, and the source has none"
        where = "several labels here" if several else "no labels here"
        message = f"`stratify: label` needs {what}"
        yield make("PG304", message, locate(("splits", "stratify")), locate(("source",), where), help="remove `stratify`")
    if isinstance(spec.splits.group, PathGroup):
        try:
            compile_pattern(spec.splits.group.path)
        except ValueError as error:
            message = f"the pattern of `group` cannot be used: {error}"
            help_ = "capture what the files of a group share, as in `(patient_\\d+)`"
            yield make("PG105", message, locate(("splits", "group", "path")), help=help_)


def _unknown_names(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    names = spec.split_names()
    for n, (name, path) in enumerate(use for use in uses(spec) if use[0] not in names):
        near, key = closest(name, names) if n < _GUESSES else None, path[-1] == name
        help_: str = f"the splits are {one_of(names, 'and')}"
        if near:
            help_ = write(near, "key" if key else "value", "did you mean {}?")
        yield make("PG220", f"there is no split `{name}`", locate(path, key=key), help=help_)


def _lints(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    names = spec.split_names()
    remainder = spec.batch.remainder
    dropped = [name for name in names if name not in ("train", "predict") and spec.batch.remainder_for(name) == "drop"]
    places = [("batch", "remainder")] if isinstance(remainder, str) else [("batch", "remainder", name) for name in dropped]
    if dropped:
        shown = " and ".join(f"`{name}`" for name in dropped)
        message = f"the last examples of {shown} are dropped when they do not fill a batch, so metrics miss them"
        help_ = "`remainder: {train: drop}` drops in training only, and the others keep theirs"
        yield make("PG508", message, *(locate(place) for place in places), help=help_)
    if "predict" in names and spec.batch.remainder_for("predict") == "drop":
        message = "the last examples of `predict` are dropped when they do not fill a batch, so those files get no prediction"
        yield make("PG508", message, locate(("batch", "remainder")), help="leave `remainder` out: `predict` keeps every file")
    if names == ("train",):
        message = "all the data is `train`, so nothing measures whether the model generalises"
        mixed = spec.source.mixed()
        place = ("source", "mix", "parts", next(iter(mixed))) if mixed else ("splits",)
        more = f"give a part `splits: {{parts: {_EXAMPLE}}}`" if mixed else write(f"splits: {{parts: {_EXAMPLE}}}", "spec", "add {}")
        yield make("PG509", message, locate(place), help=more)
