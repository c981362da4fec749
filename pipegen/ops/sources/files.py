"""`files`: files found by patterns; several files of a record, such as an image and its mask, are paired by name."""

from __future__ import annotations

import builtins
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, reduce
from pathlib import Path
from typing import Annotated, ClassVar, get_args

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticKnownError

from pipegen.errors import Attempts, OpError, OpErrors, PartError
from pipegen.lazy import np
from pipegen.ops.fields.notes import Note
from pipegen.ops.fields.strings import Ints, Strings
from pipegen.ops.kinds.base import Levels, having
from pipegen.ops.model import FeatureName
from pipegen.ops.sources.features.feature import LATER, AnyKindName, EncodedFeature, FeatureSource, FileKindName
from pipegen.ops.sources.folders.scan import IMAGES, Scan, Tree, compile_glob, nothing_found, sounds, tally_notes
from pipegen.ops.sources.listing.base import Listing, Location, Missing, always
from pipegen.ops.sources.listing.paths import find_root
from pipegen.ops.sources.tables.features import FileFeature, unread_formats
from pipegen.ops.sources.tables.selecting import SelectingSource
from pipegen.patterns import compile_pattern

_WILD = re.compile(r"[*?\[]")
_compiled = lru_cache(maxsize=16)(compile_pattern)


class FilesFeature(FileFeature):
    """One file of each record, or columns of the joined table."""

    later: ClassVar[frozenset[str]] = LATER | (
        {*FileFeature.model_fields} - {*EncodedFeature.model_fields, "kind", "classes", "format", "shape"}
    )
    kind: AnyKindName
    """In files: `image`; `mask`: a class for each pixel of the image; `dense`: numbers for each pixel; `audio`; or `array`: numbers of one
    `shape`.
    In columns of the joined table: `label`, `tensor`, `weight`, `boxes` or `keypoints`, as in `csv`."""
    path: Annotated[str, Field(min_length=1)] | None = Field(None, validate_default=True)
    """Folder whose images or sounds are all read, or a pattern such as `photos/**/*.jpg`; relative to the spec's file. What is in files
    needs one."""

    @field_validator("path")
    @classmethod
    def _sound_pattern(cls, path: str | None, info: ValidationInfo) -> str | None:
        if path is None and info.data.get("kind", "image") in get_args(FileKindName):
            raise PydanticKnownError("missing")
        pattern = None if path is None else _split(path)[1]
        if pattern is not None:
            compile_glob(pattern)
        return path

    @model_validator(mode="after")
    def _in_one_place(self) -> FilesFeature:
        if (self.path is None) is (self.own_kind.storage == "encoded"):
            raise PartError(f"{self.own_kind.plural} are in columns of the joined table, not in files", "path", help="name a `column`")
        if self.path is not None and (self.column, self.columns) != (None, None):
            raise PartError("`path` names files, and `column` a column of the joined table; leave one of them out", "path")
        self.check_whole()
        return self


def _split(path: str) -> tuple[str, str | None]:
    """Splits a path into the folder and the pattern below it."""
    parts = path.split("/")
    wild = next((i for i, part in enumerate(parts) if _WILD.search(part)), None)
    if wild is None:
        return path, None
    return "/".join(parts[:wild]) or ("/" if path.startswith("/") else "."), "/".join(parts[wild:])


class Files(SelectingSource, FeatureSource):
    """Files, paired by name if there are several features in files. A joined table can add features in its columns, such as labels.

    A record is identified by the relative path of its first image. Hidden files and folders are ignored.
    """

    op: ClassVar[str] = "files"

    features: Annotated[dict[FeatureName, FilesFeature], Field(min_length=1)]
    """Files of each record: `{image: {kind: image, path: photos}, mask: {kind: mask, path: masks, values: {0: 0, 255: 1}}}`. With a `join`,
    also columns of the joined table: `{label: {kind: label, column: breed}}`."""
    key: Annotated[str, Field(min_length=1)] = "stem"
    """What the files of a record share. `stem`: the relative path below the folder, without its ending. Or a regular expression (RE2: no
    look-around, no back-references) that is searched in the relative path, with one group: `(\\d+)_(?:photo|mask)`."""
    follow_links: bool = False
    """Whether linked folders are entered; linked files are always read."""

    @field_validator("key")
    @classmethod
    def _one_group(cls, key: str) -> str:
        if key == "stem":
            return key
        try:
            groups = compile_pattern(key).groups
        except ValueError as error:
            raise ValueError(f"`key` must be `stem` or a regular expression; {error}") from None
        if groups != 1:
            said = "needs exactly one group, around what the files of a record share"
            raise ValueError(f"the regular expression of `key` {said}; it has {groups}")
        return key

    @field_validator("features")
    @classmethod
    def _some_in_files(cls, features: dict[str, FilesFeature]) -> dict[str, FilesFeature]:
        if all(feature.path is None for feature in features.values()):
            raise PartError("all features are in columns, and none in files")
        return features

    reads_addresses = always(True)
    fetched_as_read = always(frozenset({"path"}))

    @property
    def pictures(self) -> tuple[str, ...]:
        """Lists the features in files, images first; the first one identifies a record."""
        files = [name for name, feature in self.features.items() if feature.path is not None]
        return tuple(dict.fromkeys((*having(self.features, Levels), *files)))

    @property
    def joined(self) -> Mapping[str, FilesFeature]:
        return {name: feature for name, feature in self.features.items() if feature.path is None}

    by_class = always(False)  # folders are not classes

    def has_folders(self) -> bool:
        """Tells whether folders may carry meaning: only if records have one file each."""
        return len(self.pictures) == 1

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """Find the files and pair them; see `Source.list`. Raises `OpError`: `PG401` if a folder is missing, `PG402` if a pattern matches
        nothing, `PG424` if files share a key, have none, or cannot be paired."""
        notes: builtins.list[Note] = []
        tried = Attempts()
        tried.errors += unread_formats(self.features)
        tries = {name: tried.of(self._find, name, str(base), progress, notes) for name in self.pictures}
        found = {name: there for name, there in tries.items() if there is not None}
        if tried.errors:
            raise OpErrors(tried.errors)
        first, *others = self.pictures
        root, files = found[first]
        if not others:
            return self.selected(Listing(root, Location.below(root, files.paths, files.sizes), tuple(notes)), base)
        places = self._paired(found)
        missing = [m for name in self.pictures for m in self._unpaired(name, *found[name], places[name], root)]
        whole = {name: Location.below(own, tree.paths, tree.sizes).take(places[name]) for name, (own, tree) in found.items()}
        beside = {name: whole[name] for name in others}
        listing = Listing(root, whole[first], tuple(notes), beside=beside, missing=tuple(missing))
        return self.selected(listing, base)

    def _find(self, name: str, base: str, progress: Callable[[int], None] | None, notes: builtins.list[Note]) -> tuple[str, Tree]:
        folder, pattern = _split(str(self.features[name].path))
        field = f"features.{name}.path"
        root = find_root(base, folder, field=field)
        match, feature = compile_glob(pattern) if pattern else None, self.features[name]
        in_arrays = feature.format is not None or feature.values == "vectors"
        values = feature.own_kind.values
        wanted = sounds() if values is not None and values.listed == "sounds" else IMAGES
        scan = Scan(root, match=match, follow_links=self.follow_links, progress=progress, every_file=in_arrays, wanted=wanted)
        files = scan.tree()
        if not files:
            raise nothing_found(scan, pattern=pattern).at(field)
        notes.extend(tally_notes(scan))
        return root, files

    def _paired(self, found: Mapping[str, tuple[str, Tree]]) -> dict[str, Ints]:
        """Returns the places of the files of each record, by feature, ordered by the first one's paths."""
        keyless: dict[str, str] = {}
        keys = {name: Strings.hold(self._keys(name, files.paths, keyless)) for name, (_, files) in found.items()}
        place: dict[str, int] = {}  # a number for each key
        numbers: dict[str, Ints] = {
            name: np.fromiter((place.setdefault(key, len(place)) for key in own), np.int64, len(own)) for name, own in keys.items()
        }
        for name, own in numbers.items():
            known, first = np.unique(own, return_index=True)
            if len(known) < len(own):
                raise self._same_key(name, found[name][1].paths, keys[name], first[np.searchsorted(known, own)])
            if name in keyless:
                message = f"`key` does not match {keyless[name]!r} of `{name}`"
                raise OpError("PG424", message, field="key", help="narrow the `path` of the feature")
        shared = reduce(np.intersect1d, numbers.values())
        one, other = list(keys)[:2]
        if not len(shared):
            message = f"no file of `{one}` has a partner in `{other}`: keys such as {keys[one][0]!r} and {keys[other][0]!r} differ"
            help_ = "give a `key` with a group around the shared part, such as `(\\d+)`"
            raise OpError("PG424", message, field="key" if self.key != "stem" else f"features.{other}.path", help=help_)
        order = numbers[one][np.isin(numbers[one], shared)]
        rows = {name: np.argsort(own) for name, own in numbers.items()}
        return {name: rows[name][np.searchsorted(own, order, sorter=rows[name])] for name, own in numbers.items()}

    def _unpaired(self, name: str, own: str, files: Tree, places: Ints, root: str) -> Iterator[Missing]:
        """Yields the files of a feature without a partner, which are in no record; `root` is the folder of the first feature."""
        alone = files.paths.take(np.setdiff1d(np.arange(len(files.paths)), places))
        if not alone:
            return
        within = os.path.relpath(own, root).replace(os.sep, "/")
        others = " or ".join(f"`{other}`" for other in self.pictures if other != name)
        keys, help_ = alone if within == "." else alone.below(f"{within}/"), ("add the missing files, or remove these",)
        example = lambda i: f"{alone[i]!r} of `{name}` has no partner in {others}"  # noqa: E731
        yield Missing("PG424", keys, example, None, ("file", "files"), "a partner", help_, f"features.{name}.path")

    def _keys(self, name: str, paths: Strings, keyless: dict[str, str]) -> Iterator[str]:
        """Yields the key of each file; stops at the first path that `key` does not match."""
        for path in paths:
            if self.key == "stem":
                yield os.path.splitext(path)[0]
                continue
            match = _compiled(self.key).search(path)
            if match is None or match.first is None:
                keyless[name] = path
                return
            yield match.first

    def _same_key(self, name: str, paths: Strings, keys: Strings, first: Ints) -> OpError:
        """Names the first file with another one's key; `first` has, for each, the first file with its key."""
        place = int((first != range(len(first))).argmax())
        message = f"{paths[int(first[place])]!r} and {paths[place]!r} of `{name}` have the same key {keys[place]!r}"
        help_ = "narrow the pattern, or give a `key` that distinguishes them"
        return OpError("PG424", message, field=f"features.{name}.path", help=help_)
