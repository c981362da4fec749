"""`prepared`: records that `pipegen prepare` processed and stored."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from pipegen.errors import OpError, PartError
from pipegen.lazy import np
from pipegen.ops.arguments.magnitudes import Number
from pipegen.ops.fields.columns import Ragged
from pipegen.ops.fields.strings import Strings
from pipegen.ops.kinds.base import InstanceNumber, Levels, PixelValues, having, kind_of
from pipegen.ops.kinds.mask import with_numbers
from pipegen.ops.model import FeatureName, Model
from pipegen.ops.sources.features.feature import Beside, HeldKindName, KeepsBoxes, NamesPoints
from pipegen.ops.sources.listing.base import Listing, Location, Parts, always
from pipegen.ops.sources.prepared_store.layout import (
    ARRAY_RECORD,
    PREPARE_AGAIN,
    StoreAbout,
    StoredMessages,
    StoredRows,
    check_columns,
    check_files,
    places,
    read_about,
    read_column,
)
from pipegen.ops.sources.tables.selecting import SelectingSource
from pipegen.ops.transform import SplitName, Transform
from pipegen.types import INTEGER_RANGES, ElementType, FeatureType, Interval

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipegen.ops.arguments.item_rules import BoxRules
    from pipegen.ops.fields.strings import Ints


class StoredFeature(KeepsBoxes, NamesPoints, Beside):
    """One feature of a store, as written by `pipegen prepare`."""

    kind: HeldKindName
    """`image`, `mask`, `label`, `tensor`, `weight`, `boxes` or `keypoints`."""
    dtype: Literal["uint8", "uint16", "int32", "int64", "float32", "string"] = "uint8"
    """The dtype of a value; `string` for encoded files."""
    shape: tuple[int | None, ...] = ()
    """Shape of an example, or of the content of its encoded file. `null` for a side that varies between examples, and for the number of
    items."""
    range: tuple[Number, Number] | None = None
    """Lowest and highest value; by default, for pixels of integers, the range of their dtype."""
    classes: Annotated[int, Field(ge=1)] | None = None
    """For a label or a mask: the number of classes."""
    canvas: tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]] | None = None
    """For pixels: height and width of the canvas that holds each example."""
    channels: Annotated[int, Field(ge=1)] | None = None
    """For encoded images: their channels."""
    bits: Literal[8, 16] | None = None
    """For encoded images: the bits of a value; by default 8."""
    places: Annotated[int, Field(ge=1)] | None = None
    """For boxes and keypoints: the number of places per example in a batch, the same as without the store."""
    absent: tuple[SplitName, ...] = ()
    """Splits whose records do not have it."""

    @classmethod
    def reject_misplaced(cls, given: Mapping[str, Any]) -> None:
        """Accepts what `prepare` wrote: every feature has a dtype, a shape and so on."""

    def box_rules(self) -> BoxRules:
        """Returns the rules for keeping boxes; stored boxes already lie on their image."""
        return self.rules(None)

    def type(self, of: str | None = None) -> FeatureType:
        kind = kind_of(self)
        if kind.ragged:
            return kind.array_types(self)[0].with_(dtype=self.dtype, shape=self.shape, most=self.places or 0)
        usual = INTEGER_RANGES.get(self.dtype) if kind.has(Levels) else None
        interval = Interval(*self.range) if self.range is not None else usual
        found = FeatureType(kind.name, self.dtype, self.shape, interval, self.of, self.classes, ignore=self.ignore)
        found = found.with_(instances=self.home) if kind.has(InstanceNumber) else found
        if not found.encoded:
            return found
        height, width = (*self.shape, None, None)[:2]
        size = (height, width) if height is not None and width is not None else None
        return found.with_(shape=(), file_channels=self.channels, file_bits=self.bits, file_size=size)


class Changes(Model):
    """Differences between a store and the spec that it was prepared from."""

    shorter_side: Annotated[int, Field(ge=1)] | None = None
    """Images with a longer shorter side were shrunk to it by `resize` with `antialias`."""
    jpeg: Annotated[int, Field(ge=1, le=100)] | None = None
    """Images were encoded again as JPEG of this quality."""


class Prepared(SelectingSource):
    """Records stored by `pipegen prepare`, which also writes this section. Do not edit it by hand.

    Examples keep their ids, and thus their draws, and their splits. Pixels are mapped into memory and read without Python; a random crop
    reads whole batches.
    """

    op: ClassVar[str] = "prepared"

    path: Annotated[str, Field(min_length=1)]
    """Folder of the store, relative to the spec's file."""
    of: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Hash of the spec that the store was prepared from."""
    splits: Annotated[tuple[SplitName, ...], Field(min_length=1)]
    """Splits of the store."""
    features: Annotated[dict[FeatureName, StoredFeature], Field(min_length=1)]
    """Features of a record."""
    changes: Changes = Changes()
    """Differences from that spec, if any."""

    @model_validator(mode="after")
    def _beside_items(self) -> Prepared:
        for name, feature in self.features.items():
            home = self.features.get(feature.home or "")
            if feature.home is not None and (home is None or not kind_of(home).ragged or home.home is not None):
                raise PartError(f"`{name}` is `with: {feature.home}`, which has no items", "features", name, "with")
        return self

    def infer(self) -> ElementType:
        return with_numbers(ElementType(tuple((name, feature.type()) for name, feature in self.features.items())))

    def decoders(self) -> Mapping[str, Transform]:
        found = {name: kind_of(feature).decoder(feature) for name, feature in self.features.items() if feature.dtype == "string"}
        return {name: decoder for name, decoder in found.items() if decoder is not None}

    def described(self) -> Mapping[str, tuple[str, ...]]:
        """Returns nothing: the spec that it was prepared from describes the features."""
        return {}

    def split_names(self) -> tuple[str, ...]:
        return self.splits

    def lacks(self, split: str) -> frozenset[str]:
        return frozenset(name for name, feature in self.features.items() if split in feature.absent)

    def remarks(self) -> tuple[str, ...]:
        side, quality = self.changes.shorter_side, self.changes.jpeg
        found = [] if side is None else [f"images were shrunk to a shorter side of {side} pixels before they were stored"]
        return (*found, *([] if quality is None else [f"images were encoded again as JPEG of quality {quality}"]))

    def canvases(self) -> Mapping[str, tuple[int, int]]:
        return {name: feature.canvas for name, feature in self.features.items() if feature.canvas is not None}

    has_folders = always(False)  # folders have no meaning here

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        root = Path(os.path.abspath(os.path.join(base, os.path.expanduser(self.path))))
        about = read_about(root)
        check_files(root, about)
        self._fits(root, about)
        check_columns(root, about)
        if progress is not None:
            progress(about.total)
        return self.selected(self._listed(root, about), base)

    def _fits(self, root: Path, about: StoreAbout) -> None:
        """Raises `PG571` if the arguments describe another store."""
        help_ = "use the spec that `pipegen prepare` wrote beside the store"
        if about.of != self.of:
            message = f"{str(root)!r} was prepared from another spec: {about.of[:12]}…; `of` is {self.of[:12]}…"
            raise OpError("PG571", message, field="of", help=help_)
        if tuple(about.splits) != self.splits:
            message = f"the store has the splits {', '.join(about.splits)}; `splits` lists {', '.join(self.splits)}"
            raise OpError("PG571", message, field="splits", help=help_)
        stored = {name for name in self.features if name in about.pixels}
        wanted = {*having(self.features, PixelValues)}
        types = self.infer()
        columns = {name for name in types if name not in wanted}
        columns |= {f"@count.{name}" for name, t in types.items() if kind_of(t).ragged and t.beside is None}
        canvases = {name: own.canvas[:2] for name, own in about.pixels.items() if own.canvas}
        if stored != wanted or not columns <= set(about.columns) or canvases != self.canvases():
            raise OpError("PG571", "`features` does not match the features of the store", field="features", help=help_)

    def _listed(self, root: Path, about: StoreAbout) -> Listing:
        reader = StoredRows(root, about)
        if about.suffix == ARRAY_RECORD and about.shards:
            reader = StoredMessages(root, about)
            reader.examine()
        type_ = self.infer()
        columns = {name: _column(root, about, name, t) for name, t in type_.items() if kind_of(t).pixels is None}
        keys = Strings(*(np.array(read_column(root, name)) for name in ("@keys", "@bounds")))
        codes: Ints = np.repeat(np.arange(len(about.splits), dtype=np.int16), list(about.splits.values()))
        return Listing(
            root=str(root),
            location=Location(keys, keys, np.array(read_column(root, "@bytes")), places(about), "row"),
            parts=Parts(tuple(about.splits), codes),
            readers={"": reader},
            in_table=True,
            columns=columns,
            classes={name: classes for name, classes in about.classes.items() if name in columns},
            label=about.label,
            ids=np.array(read_column(root, "@ids")),
            type=type_,
        )


def _column(root: Path, about: StoreAbout, name: str, t: FeatureType) -> Any:
    """Reads the stored values of a feature without pixels: a row per record, or all items with their counts (`PG570` if they differ)."""
    values = np.array(read_column(root, name))
    if not kind_of(t).ragged:
        return values
    lengths = np.array(read_column(root, f"@count.{t.beside or name}"))
    if len(lengths) != about.total or int(lengths.sum()) != len(values):
        message = f"the store in {str(root)!r} has {len(values):,} items of `{name}`; its records count {int(lengths.sum()):,}"
        raise OpError("PG570", message, field="path", help=PREPARE_AGAIN)
    return Ragged(values, lengths)
