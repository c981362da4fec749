"""`image_folder` and `audio_folder`: folders of files, with or without one sub-folder per class."""

from __future__ import annotations

import builtins
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.fields.labels import ClassNames, class_notes
from pipegen.ops.fields.notes import Note, quoted
from pipegen.ops.fields.strings import Ints, Strings
from pipegen.ops.sources.features.feature import SoundFiles
from pipegen.ops.sources.folders.scan import (
    IMAGES,
    Scan,
    Wanted,
    compile_glob,
    folder_notes,
    loose_notes,
    nothing_found,
    sounds,
    tally_notes,
)
from pipegen.ops.sources.listing.base import Listing, always
from pipegen.ops.sources.listing.paths import find_root
from pipegen.ops.sources.tables.selecting import JoiningSource
from pipegen.ops.transform import Transform
from pipegen.types import ElementType, FeatureType

if TYPE_CHECKING:
    from pipegen.ops.sources.records.archives import Archive

_ABSOLUTE = re.compile(r"^(/|[A-Za-z]:)")


class ClassFolder(JoiningSource):
    """A folder of files of one kind, with or without one sub-folder per class; a subclass says which files."""

    path: Annotated[str, Field(min_length=1)]
    """Folder, ZIP or tar archive, or a folder in an archive such as `train.zip/train`; relative to the spec's file. Unpacking an archive
    keeps the ids and splits of its examples."""
    classes: ClassNames | None = None
    """Class folders in label order, such as `[cat, dog]`, or a file with one a line: `{file: classes.txt}`; a name may be nested:
    `pets/cat`. By default every sub-folder that holds a file of the kind, sorted by name."""
    labels: Literal["folder", "none"] = "folder"
    """`folder`: the sub-folder is the class. `none`: every file below the folder, sorted by path, without a label."""
    pattern: Annotated[str, Field(min_length=1)] | None = None
    """Only files whose relative path matches this glob, such as `**/*.jpg`; a glob without a slash matches the file's name."""
    follow_links: bool = False
    """Whether linked folders are entered; linked files are always read."""

    @field_validator("classes")
    @classmethod
    def _distinct_classes(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        cleaned = tuple(name.strip("/") if not _ABSOLUTE.match(name) else name for name in names or ())
        for name in cleaned:
            if _ABSOLUTE.match(name) or not name or any(part in ("", ".", "..") for part in name.split("/")):
                raise ValueError(f"invalid class {name!r}; a class is a folder below `path`, such as `cat` or `pets/cat`")
            if cleaned.count(name) > 1:
                raise ValueError(f"the class {name!r} is listed twice")
            outer = next((other for other in cleaned if name.startswith(f"{other}/")), None)
            if outer is not None:
                raise ValueError(f"the class {name!r} lies inside the class {outer!r}, so its files would have two labels")
        return cleaned if names is not None else None

    @field_validator("pattern")
    @classmethod
    def _sound_pattern(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            compile_glob(pattern)
        return pattern

    @model_validator(mode="after")
    def _classes_need_labels(self) -> ClassFolder:
        if self.classes is not None and self.labels == "none":
            raise ValueError("`classes` needs labels, and `labels: none` has none; leave one of them out")
        return self

    reads_addresses = always(True)
    fetched_as_read = always(frozenset({"path"}))

    def wanted(self) -> Wanted:
        """Returns the kind of files."""
        raise NotImplementedError

    def file_type(self) -> FeatureType:
        """Returns the type of a file, a feature that has the name of its kind."""
        raise NotImplementedError

    def infer(self) -> ElementType:
        file = self.file_type()
        types = [(file.kind, file)]
        if self.labels == "folder":
            types.append(("label", FeatureType("label", "int64", (), classes=len(self.classes) if self.classes else None)))
        return self.with_joined(ElementType(tuple(types)))

    def by_class(self) -> bool:
        return self.labels == "folder"

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        scan = self._scan(base, progress)
        listing = self._kept(self._list_below(scan, ""), base)
        return replace(listing, notes=(*scan.notes, *listing.notes))

    def _kept(self, listing: Listing, base: Path) -> Listing:
        """Keeps the files that `where` and `join` choose. Without `classes`, a class is one that still has a file."""
        kept = self.selected(listing, base)
        if self.classes is not None or listing.labels is None or kept.labels is None or len(kept.keys) == len(listing.keys):
            return kept
        used, labels = np.unique(kept.labels, return_inverse=True)
        names = tuple(kept.class_names[i] for i in used.tolist())
        return replace(kept, columns={**kept.columns, "label": labels}, classes={**kept.classes, "label": names})

    def list_parts(self, base: Path, folders: Mapping[str, str], progress: Callable[[int], None] | None = None) -> Listing:
        """List the files of splits that have one folder each, with the classes one level below, relative to `path`; see
        `Source.list_parts`. A missing or empty split folder is a note with the field `parts.SPLIT`; `PG401` without `path`."""
        from pipegen.ops.sources.parts.merge import merge

        scan = self._scan(base, progress)
        present, links, loose = scan.level("")
        listings: dict[str, Listing] = {}
        notes: builtins.list[Note] = [*scan.notes]
        for split, folder in folders.items():
            try:
                listings[split] = self._list_part(scan, folder, progress)
            except OpError as error:
                notes.append(Note.of(error.at(f"parts.{split}")))
        listings = {split: self._kept(listing, base) for split, listing in listings.items()}
        used = {folder.split("/")[0] for folder in folders.values()}
        beside = [name for name in (*present, *links) if name not in used]
        if beside:
            notes.append(Note("PG411", f"`parts` does not name {quoted(beside)}; files there are in no split", field="path"))
        notes += loose_notes(scan, len(loose))
        notes += tally_notes(scan)
        reference = "train" if "train" in folders else next(iter(folders))
        return merge(listings, reference, root=scan.root, notes=notes)

    def _scan(self, base: Path, progress: Callable[[int], None] | None) -> Scan:
        archive = _archive_at(os.path.abspath(os.path.join(base, os.path.expanduser(self.path))))
        return self._walk(archive or find_root(str(base), self.path), progress)

    def _walk(self, root: str | Archive, progress: Callable[[int], None] | None) -> Scan:
        match = compile_glob(self.pattern) if self.pattern is not None else None
        if isinstance(root, str):
            return Scan(root, match=match, follow_links=self.follow_links, progress=progress, wanted=self.wanted())
        from pipegen.ops.sources.records.archives import ArchiveScan

        return ArchiveScan(root, match=match, progress=progress, wanted=self.wanted())

    def _list_part(self, scan: Scan, folder: str, progress: Callable[[int], None] | None) -> Listing:
        """Lists a folder below the root, or an archive in its place, whose members have the paths that unpacking would give them: below the
        root if `folder` leads into the archive, else below a folder with the archive's name."""
        archive = _archive_at(os.path.join(scan.root, folder)) if scan.archive is None else None
        if archive is not None:
            inner = self._walk(archive, progress)
            listing = self._list_below(inner, "")
            known = archive.inner or os.path.splitext(folder)[0]
            location = replace(listing.location, keys=listing.keys.below(f"{known}/"))
            return replace(listing, location=location, notes=(*inner.notes, *listing.notes))
        if scan.archive is None:
            find_root(scan.root, folder)
        elif not scan.has_folder(folder):
            raise OpError("PG401", f"the folder {folder!r} is missing in {scan.root!r}", help=f"it holds {quoted(scan.level('')[0])}")
        return self._list_below(self._walk(scan.archive or scan.root, progress), folder)

    def _list_below(self, scan: Scan, within: str) -> Listing:
        if self.labels == "none":
            found = scan.tree(within)
            if not found:
                raise nothing_found(scan, within, pattern=self.pattern)
            location, reader = scan.listed(found.paths, found.sizes)
            return Listing(scan.root, location, tuple(tally_notes(scan)), readers={"": reader})
        prefix = f"{within}/" if within else ""
        folders, links, loose = scan.level(within)
        present = [folder[len(prefix) :] for folder in sorted((*folders, *links))]
        names = self.classes if self.classes is not None else tuple(present)
        trees = [scan.tree(prefix + name) if name in present or scan.has_folder(prefix + name) else None for name in names]
        if not any(trees):
            raise nothing_found(scan, within, pattern=self.pattern, loose=len(loose), folders=present, classes=self.classes)
        notes = [*folder_notes(scan, names, trees, present, listed=self.classes is not None)]
        notes += loose_notes(scan, len(loose), within)
        notes += tally_notes(scan)
        if self.classes is None:
            names = tuple(name for name, tree in zip(names, trees, strict=True) if tree)
            trees = [tree for tree in trees if tree]
            notes += class_notes(names, "classes", folders=True)
        labels: Ints = np.repeat(np.arange(len(trees), dtype=np.int32), [len(tree or ()) for tree in trees])
        filled = [tree for tree in trees if tree]
        location, reader = scan.listed(Strings.join([tree.paths for tree in filled]), np.concatenate([tree.sizes for tree in filled]))
        return Listing.labelled(scan.root, location, labels, names, notes=tuple(notes), readers={"": reader})


class ImageFolder(ClassFolder):
    """A folder of images: JPEG, PNG, GIF, BMP, WebP, TIFF, PPM, PGM and PBM, recognised by content.

    Each sub-folder that holds an image is a class, ordered by name; deeper folders belong to the class above them. Hidden files and folders
    are ignored. Records are ordered by class, then by relative path.

    A ZIP or tar archive is read in place: it is mapped into memory, and the graph cuts out and inflates its members.
    """

    op: ClassVar[str] = "image_folder"

    def wanted(self) -> Wanted:
        return IMAGES

    def file_type(self) -> FeatureType:
        return FeatureType("image", "string", ())


class AudioFolder(SoundFiles, ClassFolder):
    """A folder of sounds: WAV, and with `pip install 'pipegen[audio]'` also FLAC, Ogg Vorbis, Opus, MP3, AIFF, AU, RF64, W64 and SPHERE,
    recognised by content.

    Each sub-folder that holds a sound is a class, ordered by name; deeper folders belong to the class above them. Hidden files and folders
    are ignored. Records are ordered by class, then by relative path. The feature is `audio`: float32 `(frames, channels)` of one `rate`,
    to which a file of another is resampled; integers become values in [-1, 1).

    WAV is read in the graph, with the bits of libsndfile, and of a part of a file only its bytes are converted. Other formats are read by
    soundfile, in Python, one file at a time.

    A ZIP or tar archive is read in place: it is mapped into memory, and the graph cuts out and inflates its members.
    """

    op: ClassVar[str] = "audio_folder"
    assumed: ClassVar[Mapping[str, Any]] = {"rate": 16000}

    def wanted(self) -> Wanted:
        return sounds()

    def file_type(self) -> FeatureType:
        return self.sound_type()

    def decoders(self) -> Mapping[str, Transform]:
        return {self.sound_type().kind: self.sound_decoder()}


def _archive_at(path: str) -> Archive | None:
    """Opens the archive that an absolute path leads to or into, if any. Its code is not imported for folders."""
    if os.path.isdir(path):
        return None
    from pipegen.ops.sources.records.archives import open_archive

    return open_archive(path)
