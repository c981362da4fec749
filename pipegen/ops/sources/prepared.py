"""`prepared`: records that `pipegen prepare` has worked on and stored, so that what never changes is computed once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from pipegen.errors import OpError, PartError
from pipegen.ops.arguments.magnitudes import Number
from pipegen.ops.families.array_decoder import MaskDecoder
from pipegen.ops.kinds.numbering import with_numbers
from pipegen.ops.kinds.ragged import Ragged
from pipegen.ops.kinds.registry import kind_of, names_in
from pipegen.ops.model import Model
from pipegen.ops.sources.features.arrays import FeatureName
from pipegen.ops.sources.features.items import LATER, Beside, KeepsBoxes, NamesPoints
from pipegen.ops.sources.listing.base import Listing, Parts, Source
from pipegen.ops.transform import SplitName
from pipegen.types import INTEGER_RANGES, ElementType, FeatureType, Interval

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipegen.ops.arguments.item_rules import BoxRules
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.ops.sources.prepared_store.layout import StoreAbout
    from pipegen.ops.transform import Transform

    Kind = str
else:
    Kind = names_in("arrays")


class StoredFeature(KeepsBoxes, NamesPoints, Beside):
    """One feature of a store, as `pipegen prepare` has written it."""

    _later: ClassVar[frozenset[str]] = LATER | {"places"}

    kind: Kind
    """`image`, `mask`, `label`, `tensor`, `weight`, `boxes` or `keypoints`."""
    dtype: Literal["uint8", "uint16", "int32", "int64", "float32", "string"] = "uint8"
    """The dtype of a value; `string` for encoded files."""
    shape: tuple[int | None, ...] = ()
    """The shape of an example, or of what its encoded file holds; `null` for a side that differs between examples, and for how many items
    there are."""
    range: tuple[Number, Number] | None = None
    """The lowest and the highest value; integers that are pixels have that of their dtype."""
    classes: Annotated[int, Field(ge=1)] | None = None
    """For a label or a mask: how many classes there are."""
    canvas: tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]] | None = None
    """For pixels: height and width of the canvas that each example lies on."""
    channels: Annotated[int, Field(ge=1)] | None = None
    """For encoded images: their channels."""
    bits: Literal[8, 16] | None = None
    """For encoded images: the bits of a value; by default 8."""
    places: Annotated[int, Field(ge=1)] | None = None
    """For boxes and keypoints: the places that an example of a batch has for them, as many as it had without the store."""

    @property
    def home(self) -> str | None:
        """Returns the feature of which each item has one of these, if any."""
        found: str | None = getattr(self, "with")
        return found

    def box_rules(self) -> BoxRules:
        """Returns which of its boxes are kept; those that are stored are on their image."""
        return self.rules(None)

    def type(self) -> FeatureType:
        """Returns the type of an example."""
        kind = kind_of(self)
        if kind.ragged:
            return kind.array_types(self)[0].with_(dtype=self.dtype, shape=self.shape, most=self.places or 0)
        interval = Interval(*self.range) if self.range is not None else None
        if interval is None and kind_of(self).levels:
            interval = INTEGER_RANGES.get(self.dtype)
        found = FeatureType(kind.name, self.dtype, self.shape, interval, self.of, self.classes, ignore=self.ignore)
        found = found.with_(instances=self.home) if kind.marks_items else found
        if not found.encoded:
            return found
        height, width = (*self.shape, None, None)[:2]
        size = (height, width) if height is not None and width is not None else None
        return found.with_(shape=(), file_channels=self.channels, file_bits=self.bits, file_size=size)

    def decoder(self) -> MaskDecoder | None:
        """Returns what decodes the files of a mask, which hold class indices."""
        if self.dtype != "string" or not kind_of(self).categorical:
            return None
        return MaskDecoder(allowed=tuple(sorted({*range(self.classes), self.ignore})) if self.classes is not None else None)


class Changes(Model):
    """Says what a store computes otherwise than the spec that it was prepared from."""

    shorter_side: Annotated[int, Field(ge=1)] | None = None
    """Images whose shorter side is longer than this were shrunk to it, by `resize` with `antialias`."""
    jpeg: Annotated[int, Field(ge=1, le=100)] | None = None
    """Images were encoded again, as JPEG of this quality."""


class Prepared(Source):
    """Reads what `pipegen prepare` has stored. That command writes this section, too, and nothing in it is to be changed by hand.

    Examples keep the ids, and so the draws, and the splits that they had. Pixels are rows of bytes that are mapped into memory, and read
    without Python; a random crop on them is done for whole batches.
    """

    op: ClassVar[str] = "prepared"

    path: Annotated[str, Field(min_length=1)]
    """The folder of the store, relative to the spec's file."""
    of: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """The hash of the spec that it was prepared from."""
    splits: Annotated[tuple[SplitName, ...], Field(min_length=1)]
    """The splits, as they were assigned then."""
    features: Annotated[dict[FeatureName, StoredFeature], Field(min_length=1)]
    """What a record holds, by the name of the feature."""
    changes: Changes = Changes()
    """What is computed otherwise than by that spec; empty where nothing is."""

    @model_validator(mode="after")
    def _beside_items(self) -> Prepared:
        for name, feature in self.features.items():
            home = self.features.get(feature.home or "")
            if feature.home is not None and (home is None or not kind_of(home).ragged or home.home is not None):
                raise PartError(f"`{name}` is `with: {feature.home}`, which has no items", "features", name, "with")
        return self

    def infer(self) -> ElementType:
        """Infers the type of a record, which the features say in full."""
        return with_numbers(ElementType(tuple((name, feature.type()) for name, feature in self.features.items())))

    def decoders(self) -> Mapping[str, Transform]:
        """Those of masks that are files."""
        found = {name: feature.decoder() for name, feature in self.features.items()}
        return {name: decoder for name, decoder in found.items() if decoder is not None}

    def described(self) -> Mapping[str, tuple[str, ...]]:
        """Describes nothing that is to be looked at: what there is was said where it was prepared."""
        return {}

    def split_names(self) -> tuple[str, ...]:
        """Returns the splits that the data was assigned to when it was prepared."""
        return self.splits

    def remarks(self) -> tuple[str, ...]:
        """Says what the store computes otherwise than the spec that it was prepared from."""
        side, quality = self.changes.shorter_side, self.changes.jpeg
        found = [] if side is None else [f"images were shrunk to a shorter side of {side} pixels before they were stored"]
        return (*found, *([] if quality is None else [f"images were encoded again as JPEG of quality {quality}"]))

    def canvases(self) -> Mapping[str, tuple[int, int]]:
        """Returns the canvas of each feature that has one."""
        return {name: feature.canvas for name, feature in self.features.items() if feature.canvas is not None}

    def has_folders(self) -> bool:
        """Returns that folders say nothing here."""
        return False

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """List the records; see `Source.list`."""
        from pipegen.ops.sources.prepared_store.checksums import check_columns
        from pipegen.ops.sources.prepared_store.layout import check_files, read_about

        root = Path(os.path.abspath(os.path.join(base, os.path.expanduser(self.path))))
        about = read_about(root)
        check_files(root, about)
        self._fits(root, about)
        check_columns(root, about)
        if progress is not None:
            progress(about.total)
        return self._listed(root, about)

    def _fits(self, root: Path, about: StoreAbout) -> None:
        """Checks that the store is the one that the arguments describe."""
        help_ = "read it with the spec that `pipegen prepare` has written beside it"
        if about.of != self.of:
            message = f"{str(root)!r} was prepared from another spec: {about.of[:12]}…, and `of` says {self.of[:12]}…"
            raise OpError("PG571", message, field="of", help=help_)
        if tuple(about.splits) != self.splits:
            message = f"the store has the splits {', '.join(about.splits)}, and `splits` says {', '.join(self.splits)}"
            raise OpError("PG571", message, field="splits", help=help_)
        stored = {name for name in self.features if name in about.pixels}
        wanted = {name for name, feature in self.features.items() if kind_of(feature).pictured}
        types = self.infer()
        columns = {name for name, t in types.items() if not kind_of(t).pictured}
        columns |= {f"@count.{name}" for name, t in types.items() if kind_of(t).ragged and t.beside is None}
        canvases = {name: own.canvas[:2] for name, own in about.pixels.items() if own.canvas}
        if stored != wanted or not columns <= set(about.columns) or canvases != self.canvases():
            raise OpError("PG571", "the store has other features than `features` says", field="features", help=help_)

    def _listed(self, root: Path, about: StoreAbout) -> Listing:
        import numpy as np

        from pipegen.ops.sources.listing.strings import Strings
        from pipegen.ops.sources.prepared_store.layout import ARRAY_RECORD, read_column
        from pipegen.ops.sources.prepared_store.messages import StoredMessages
        from pipegen.ops.sources.prepared_store.rows import StoredRows, places

        at = places(about)
        reader = StoredRows(root, about)
        if about.suffix == ARRAY_RECORD and about.shards:
            reader = StoredMessages(root, about)
            reader.examine()
        type_ = self.infer()
        columns = {name: _column(root, about, name, t) for name, t in type_.items() if not kind_of(t).pictured}
        label = columns.pop(about.label, None) if about.label is not None else None
        blob, bounds = (np.array(read_column(root, name)) for name in ("@keys", "@bounds"))
        codes: Ints = np.repeat(np.arange(len(about.splits), dtype=np.int16), list(about.splits.values()))
        return Listing(
            root=str(root),
            keys=Strings(blob, bounds),
            labels=label,
            class_names=about.class_names,
            sizes=np.array(read_column(root, "@bytes")),
            parts=Parts(tuple(about.splits), codes),
            readers={"": reader},
            in_table=True,
            columns=columns,
            column_classes={name: classes for name, classes in about.classes.items() if name in columns},
            rows=at,
            ids=np.array(read_column(root, "@ids")),
            type=type_,
        )


def _column(root: Path, about: StoreAbout, name: str, t: FeatureType) -> Any:
    """Reads what is stored of a feature beside pixels: a row for each record, or all items and how many each has.

    Raises:
        OpError: `PG570` where there are more or fewer items than all records are said to have.
    """
    import numpy as np

    from pipegen.ops.sources.prepared_store.layout import PREPARE_AGAIN, read_column

    values = np.array(read_column(root, name))
    if not kind_of(t).ragged:
        return values
    lengths = np.array(read_column(root, f"@count.{t.beside or name}"))
    if len(lengths) != about.total or int(lengths.sum()) != len(values):
        message = f"the store in {str(root)!r} has {len(values):,} items of `{name}`, and its records have {int(lengths.sum()):,}"
        raise OpError("PG570", message, field="path", help=PREPARE_AGAIN)
    return Ragged(values, lengths)
