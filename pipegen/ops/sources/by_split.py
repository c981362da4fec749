"""`by_split`: a source of its own for each split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from pydantic import field_validator, model_serializer, model_validator

from pipegen.errors import OpError, OpErrors
from pipegen.lazy import np
from pipegen.ops.families.decoder import SoundDecoder
from pipegen.ops.fields.notes import Note
from pipegen.ops.kinds.base import ExampleClass, Indices, Levels, LossWeight, having, kind_of, several_labels
from pipegen.ops.sources.listing.base import PREDICTED, Listing, Source, of_each
from pipegen.ops.sources.mix import InnerSource, written
from pipegen.ops.sources.parts.adapted import with_values
from pipegen.ops.sources.parts.merge import merge
from pipegen.ops.transform import SplitName, Transform
from pipegen.types import ElementType, FeatureType


def _apart(decoder: Transform, other: Transform | None) -> str:
    """Names what two decoders of a feature differ in."""
    fields = type(decoder).model_fields if isinstance(decoder, SoundDecoder) else ()
    odd = next((field for field in fields if getattr(decoder, field) != getattr(other, field, None)), None)
    return "other `values` or `classes`" if odd is None else f"another `{odd}`"


class BySplit(Source):
    """A source for each split, written as in `source`: `{train: {image_folder: {path: a/}}, test: {image_folder: {path: b/}}}`.

    `common` has the arguments that all splits with a source share, such as
    `{common: {csv: {features: {…}}}, train: {csv: {path: a.csv}}, test: {csv: {path: b.csv}}}`; those of a split win, maps are merged.

    Records of a split called `predict` may be without the labels and weights of the others: it then gives `x` alone.

    Sources may be stored in different ways, such as records and files. The classes are those of `train`. An additional class in another
    split is an error, a missing one a warning. The key of a record is `SPLIT/` and its path, so names may repeat across splits.
    """

    op: ClassVar[str] = "by_split"

    parts: dict[SplitName, InnerSource]
    """Source of each split. In a spec the map stands directly under `by_split`."""

    @classmethod
    def from_yaml(cls, value: Mapping[str, object]) -> BySplit:
        """Builds it from the shape that a spec has and `model_dump` returns: `{SPLIT: {NAME: {arguments}}}`.

        A class with this method holds other sources; a loader builds those and passes them as `parts`. Raises `ValueError` if the map is
        invalid."""
        return cls.model_validate(dict(value))

    @model_validator(mode="before")
    @classmethod
    def _from_plain(cls, value: Any) -> Any:
        """Accepts the spec's shape as well as `parts=`."""
        own = value.get("parts") if isinstance(value, Mapping) and len(value) == 1 else None
        built = isinstance(own, Mapping) and all(isinstance(source, Source) for source in own.values())
        return value if built else {"parts": value}

    @model_serializer
    def _to_plain(self) -> dict[str, Any]:
        return {split: written(source) for split, source in self.parts.items()}

    @field_validator("parts")
    @classmethod
    def _alike(cls, parts: dict[str, Source]) -> dict[str, Source]:
        if not parts:
            raise ValueError("`by_split` is empty; name its splits, such as `train: SOURCE`")
        for split, source in parts.items():
            if source.split_names() is not None:
                raise ValueError(f"`{split}` is a `{source.op}`, which has splits of its own; use a plain source such as `image_folder`")
            if source.lacks(PREDICTED):
                raise ValueError(f"`unlabelled` in `{split}` would make a split; select the records by `where`, and leave the label out")
        kinds = {source.has_rows(): split for split, source in parts.items()}
        if len(kinds) > 1:
            raise ValueError(f"`{kinds[True]}` has arrays and `{kinds[False]}` has files; every split must have the same features")
        learned = {split: source for split, source in parts.items() if split != PREDICTED} or parts
        labelled = [split for split, source in learned.items() if source.has_labels()]
        if labelled and len(labelled) < len(learned):
            bare = next(split for split in learned if split not in labelled)
            said = f"every split must have the same features, but one called `{PREDICTED}` may be without labels"
            raise ValueError(f"`{labelled[0]}` has labels and `{bare}` has none; {said}")
        whole = next(iter(learned.values())).infer()
        single = {name for name in having(whole, ExampleClass, LossWeight) if not several_labels(whole[name])}
        spared = single if learned is not parts else set()
        names = {
            frozenset({name for name, _ in source.infer().items()} | (spared if split == PREDICTED else set())): split
            for split, source in parts.items()
        }
        if len(names) > 1:
            (one, here), (other, there), *_ = names.items()
            odd = sorted(one ^ other)[0]
            bearer, bare = (here, there) if odd in one else (there, here)
            raise ValueError(f"`{bearer}` has a feature `{odd}` and `{bare}` has none; every split must have the same features")
        first = next(iter(learned))
        for split, source in parts.items():
            for name, t in source.infer().items():
                if (what := _difference(t, parts[first].infer()[name])) is not None:
                    raise ValueError(f"`{name}` of `{split}` has another {what} `{first}`; every split must have the same features")
            known = parts[first].decoders()
            apart = next((name for name, decoder in source.decoders().items() if decoder != known.get(name)), None)
            if apart is not None:
                odd = _apart(source.decoders()[apart], known.get(apart))
                raise ValueError(f"`{apart}` of `{split}` has {odd} than in `{first}`; use the same in both")
        return parts

    @property
    def reference(self) -> str:
        """The split whose classes count: `train`, else the first, if possible one that is not only predicted on."""
        return "train" if "train" in self.parts else next((split for split in self.parts if split != PREDICTED), PREDICTED)

    def lacks(self, split: str) -> frozenset[str]:
        whole, own = (self.parts[name].infer() if name in self.parts else self.infer() for name in (self.reference, split))
        return frozenset(name for name in whole if name not in own)

    def inner(self) -> Iterable[Source]:
        return self.parts.values()

    has_rows, has_folders = of_each(all, "has_rows"), of_each(all, "has_folders")
    by_class, needs_data, unpacked = of_each(any, "by_class"), of_each(any, "needs_data"), of_each(sum, "unpacked")

    def infer(self) -> ElementType:
        return self.parts[self.reference].infer()

    def has_classes(self) -> bool:
        """Tells whether there are labels; an example may have several, since no split is made by class."""
        return self.has_labels()

    def decoders(self) -> Mapping[str, Transform]:
        return self.parts[self.reference].decoders()

    def described(self) -> Mapping[str, tuple[str, ...]]:
        source = self.parts[self.reference]
        return {name: (self.reference, source.op, *path) for name, path in source.described().items()}

    def column_names(self) -> tuple[str, ...] | None:
        known = [names for source in self.parts.values() if (names := source.column_names()) is not None]
        return tuple(name for name in known[0] if all(name in names for names in known)) if known else None

    def columns_cost(self) -> str:
        return next((cost for source in self.parts.values() if (cost := source.columns_cost())), "")

    def keep_index_in(self, folder: Path | None) -> None:
        for source in self.parts.values():
            source.keep_index_in(folder)

    def possible(self) -> tuple[ElementType, ...]:
        return self.parts[self.reference].possible()

    def split_names(self) -> tuple[str, ...]:
        return tuple(self.parts)

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """List every split, each with its own part of `data`; see `Source.list`. One that cannot be listed is an error note if another
        can."""
        listings: dict[str, Listing] = {}
        errors: dict[str, OpError] = {}
        seen = 0
        for split, source in self.parts.items():
            try:
                so_far = None if progress is None else lambda n, seen=seen: progress(seen + n)
                listing = source.list(base, so_far, _part(split, source, data))
            except OpError as problem:
                errors[split] = problem
                continue
            seen += len(listing.keys)
            own = (n for n in listing.notes if split == self.reference or n.code != "PG668")  # its classes are those of the reference
            notes = (replace(n, message=f"`{split}`: {n.message}", field=self._field(split, n.field)) for n in own)
            lost = tuple(replace(group, field=self._field(split, group.field)) for group in listing.missing)
            lacking = {name: np.array(-1, self.infer()[name].dtype) for name in self.lacks(split)}  # nothing reads it
            listing = replace(listing, notes=tuple(notes), missing=lost)
            listings[split] = with_values(listing, lacking) if lacking else listing
        told = [(self._field(s, e.field), f"`{s}`: {e.message}", e) for s, several in errors.items() for e in several.every]
        if not listings:
            raise OpErrors(OpError(e.code, message, field=field, help=e.help) for field, message, e in told)
        return merge(listings, self.reference, notes=[Note(e.code, message, e.help, field, "error") for field, message, e in told])

    def _field(self, split: str, name: str | None) -> str:
        source = f"{split}.{self.parts[split].op}"
        return source if name is None else f"{source}.{name}"


def _difference(a: FeatureType, b: FeatureType) -> str | None:
    """Says what is different in the types of two features, as far as the arguments say; `None` if nothing is."""
    kind = kind_of(a)
    each = {
        "`kind`": (a.kind, b.kind),
        "type": (a.encoded or kind.has(Levels), b.encoded or kind.has(Levels)),
        "number of labels": (several_labels(a), several_labels(b)),
        "number of dimensions": (len(a.shape), len(b.shape)),
        "`channels`": (a.file_channels, b.file_channels),
        "`bits`": (a.file_bits, b.file_bits),
        "size": (a.file_size, b.file_size),
        "`of`": (a.of, b.of),
        "`ignore`": (a.ignore, b.ignore),
        "number of classes": (a.classes, b.classes) if kind.has(Indices) else (0, 0),
        **{
            f"`{name}`": (getattr(a.details, name, None), getattr(b.details, name, None))
            for name in ("format", "relative", "values", "interpolation")
        },
    }
    found = next(((what, here, there) for what, (here, there) in each.items() if here != there), None)
    if found is None:
        return None
    what, here, there = found
    return f"{what} than in" if isinstance(here, bool) or None in (here, there) else f"{what}, {here}, than in"


def _part(split: str, source: Source, data: object) -> Any:
    """Returns the part of `data` that belongs to a split."""
    if not source.needs_data() or data is None:
        return None
    if not isinstance(data, Mapping) or data.get(split) is None:
        help_ = 'with `by_split`, `data` has a map or a table for each split: `data={"train": {"image": x, "label": y}, …}`'
        raise OpError("PG418", "`data` has nothing for this split", help=help_)
    return data[split]
