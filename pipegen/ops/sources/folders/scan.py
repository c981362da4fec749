"""Walks a folder of images, recognised by content and, for speed, by ending: only other files are opened."""

from __future__ import annotations

import os
import stat
from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.mounts import content_of
from pipegen.ops.fields.strings import Collector, as_sizes
from pipegen.ops.lowering.library import PLUGINS, is_readable, plugin_format
from pipegen.ops.sources.listing.reader import FileReader, Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pipegen.ops.fields.strings import Ints, Strings
    from pipegen.ops.sources.folders.glob import Glob


HEAD_BYTES = 16  # bytes that `sniff` needs

IMAGE_EXTENSIONS = frozenset({"jpg", "jpeg", "jpe", "jfif", "png", "gif", "bmp", "webp", "tif", "tiff", "ppm", "pgm", "pbm", "pnm"})
"""Extensions, in lower case, of images that are listed without opening them."""

UNSUPPORTED_EXTENSIONS = {
    "heic": "HEIC", "heif": "HEIC", "avif": "AVIF", "jp2": "JPEG 2000", "jxl": "JPEG XL",
}  # fmt: skip
"""Extensions of image formats that cannot always be decoded, with the format's name."""

OTHER_EXTENSIONS = frozenset({
    "txt", "csv", "tsv", "json", "jsonl", "xml", "yaml", "yml", "toml", "ini", "log", "md", "html", "pdf", "doc", "docx", "xls", "xlsx",
    "npy", "npz", "pkl", "mat", "h5", "hdf5", "pt", "parquet", "tfrecord", "db", "py", "ipynb", "pyc", "sh", "bat", "lock", "svg",
    "zip", "tar", "gz", "tgz", "bz2", "xz", "7z", "rar", "mp3", "wav", "mp4", "avi", "mov", "mkv",
})  # fmt: skip
"""Extensions of other files that are not opened either: labels often lie beside images."""

BY_PLUGIN = frozenset(PLUGINS)  # formats that `sniff` recognises but only some installations decode


def sniff(head: bytes) -> str | None:
    """Recognises the format of a file that begins with `head`.

    Args:
        head: The first `HEAD_BYTES` bytes, or all of a shorter file.

    Returns:
        `JPEG`, `PNG`, `GIF`, `BMP`, `WebP`, `TIFF` or `PPM` (also for PGM and PBM); one of `BY_PLUGIN`; `None` for other files.
    """
    if head.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WebP"
    # "BM" alone would also match text; byte 14 has the size of the second header.
    if head[:2] == b"BM" and len(head) >= 16 and int.from_bytes(head[14:16], "little") in (12, 40, 52, 56, 64, 108, 124):
        return "BMP"
    if head.startswith((b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+")):
        return "TIFF"
    # "P5" alone would also match text; a size or a comment follows.
    if head[:1] == b"P" and head[1:2] in b"123456" and head[2:3].isspace() and (head[3:4].isdigit() or head[3:4] == b"#"):
        return "PPM"
    return plugin_format(head)


JUNK = frozenset({
    "__macosx", "thumbs.db", "ehthumbs.db", "desktop.ini", "$recycle.bin", "system volume information", "found.000", "lost+found",
    "network trash folder", "temporary items", "@eadir", "@tmp", "@sharebin", "#recycle", "#snapshot", "@recycle", "@recently-snapshot",
    "~snapshot",
})  # fmt: skip
"""Files and folders, in lower case, that macOS, Windows, Linux, and storage devices of Synology, QNAP and NetApp create, besides names with
a leading dot."""
_PROGRESS_EVERY = 1000

Found: TypeAlias = tuple[str, int]  # a path relative to the root, and a size in bytes


@dataclass(frozen=True, eq=False)
class Tree:
    """The images of a walk, sorted by path: paths relative to the root, and sizes in bytes."""

    paths: Strings
    sizes: Ints

    def __len__(self) -> int:
        return len(self.sizes)


def is_hidden(name: str) -> bool:
    """Tells whether files or folders of this name are hidden or belong to the system."""
    return name.startswith(".") or is_junk(name)


def is_junk(name: str) -> bool:
    """Tells whether files or folders of this name belong to the system or a storage device."""
    return name.lower() in JUNK


@dataclass
class Tally:
    """Entries that a walk ignored, as relative paths or counts by kind."""

    files: int = 0
    unmatched: int = 0
    hidden: list[str] = field(default_factory=list)
    foreign: Counter[str] = field(default_factory=Counter)
    unsupported: dict[str, list[str]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    loops: list[str] = field(default_factory=list)


class Scan:
    """One walk below a root, the absolute folder that paths are relative to; `match` is a pattern of these, if any, and `tally` has the
    ignored entries so far."""

    def __init__(
        self,
        root: str,
        *,
        match: Glob | None = None,
        follow_links: bool = False,
        progress: Callable[[int], None] | None = None,
        every_file: bool = False,
    ) -> None:
        """Starts a walk; `progress` gets the number of files so far, now and then. Only images are listed, unless `every_file` is set."""
        self.root, self.match, self.tally = root, match, Tally()
        self._follow_links, self._progress, self._every_file = follow_links, progress, every_file

    def tree(self, below: str = "") -> Tree:
        """Lists the images at any depth below a relative folder, sorted by path.

        Linked folders are entered after real ones, and only if their target is new. So loops end, and no folder is listed twice.
        """
        found = Collector()
        all_sizes: list[Ints] = [np.zeros(0, np.int64)]
        folders, links, seen = [below], list[str](), set[str]()
        top = os.path.realpath(self._absolute(below)) if self._follow_links else ""
        while folders or links:
            linked = not folders
            folder = links.pop(0) if linked else folders.pop()
            if self._follow_links:
                real = os.path.realpath(self._absolute(folder))
                if real in seen or (linked and f"{top}/".startswith(f"{real.rstrip(os.sep)}/")):
                    self.tally.loops.append(folder)
                    continue
                seen.add(real)
            inner, inner_links, images = self.level(folder)
            folders.extend(reversed(inner))
            links.extend(inner_links)
            found.add([path for path, _ in images])
            all_sizes.append(np.array([size for _, size in images], np.int64))
        paths, sizes = found.strings(), as_sizes(np.concatenate(all_sizes))
        order = paths.order()
        return Tree(paths, sizes) if order is None else Tree(paths.take(order).packed(), sizes[order])

    def level(self, folder: str) -> tuple[list[str], list[str], list[Found]]:
        """Lists the direct entries of a relative folder: the folders, the linked folders (if links are followed) and the images, as sorted
        relative paths; `PG406` if it cannot be read."""
        try:
            with os.scandir(self._absolute(folder)) as entries:
                return self._sorted_out(entries, folder)
        except OSError as error:
            raise _unreadable(self._absolute(folder), error, "path") from error

    def _sorted_out(self, entries: Iterable[Any], folder: str) -> tuple[list[str], list[str], list[Found]]:
        """Sorts entries, each as `os.DirEntry`; see `level`."""
        folders, links, images = list[str](), list[str](), list[Found]()
        prefix = f"{folder}/" if folder else ""
        for entry in entries:
            path = prefix + entry.name
            if is_hidden(entry.name):
                self.tally.hidden.append(path)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(path)
            elif entry.is_symlink() and _leads_to_folder(entry):
                (links if self._follow_links else self.tally.links).append(path)
            else:
                size = self._size_of_image(entry, path)
                if size is not None:
                    images.append((path, size))
        return sorted(folders), sorted(links), sorted(images)

    def has_folder(self, folder: str) -> bool:
        """Tells whether the folder exists and may be entered."""
        parts = folder.split("/")
        linked = any(os.path.islink(self._absolute("/".join(parts[: i + 1]))) for i in range(len(parts)))
        return os.path.isdir(self._absolute(folder)) and (self._follow_links or not linked)

    def reader(self, paths: Strings) -> Reader:
        return FileReader()

    def head(self, entry: Any, count: int) -> bytes:
        return content_of(entry.path, count)

    def _absolute(self, folder: str) -> str:
        return f"{self.root}/{folder}" if folder else self.root

    def _count(self, files: int) -> None:
        before = self.tally.files
        self.tally.files += files
        if self._progress is not None and before // _PROGRESS_EVERY < self.tally.files // _PROGRESS_EVERY:
            self._progress(self.tally.files)

    def _size_of_image(self, entry: Any, path: str) -> int | None:
        """Returns the size of an image in bytes, or counts another file and returns `None`."""
        tally = self.tally
        self._count(1)
        if self.match is not None and self.match.match(path) is None:
            tally.unmatched += 1
            return None
        extension = entry.name.rpartition(".")[2].lower() if "." in entry.name else ""
        if extension in OTHER_EXTENSIONS and not self._every_file:
            tally.foreign[f".{extension}"] += 1
            return None
        try:
            info = entry.stat()
            if not stat.S_ISREG(info.st_mode):  # opening a pipe would block
                tally.foreign["special"] += 1
                return None
            if not self._every_file and extension not in IMAGE_EXTENSIONS and not self._is_image(entry, path, extension):
                return None
        except OSError:
            tally.broken.append(path)
            return None
        return info.st_size

    def _is_image(self, entry: Any, path: str, extension: str) -> bool:
        kind = sniff(self.head(entry, HEAD_BYTES))
        if kind in BY_PLUGIN:
            unsupported = None if is_readable(kind) else kind
        else:
            unsupported = UNSUPPORTED_EXTENSIONS.get(extension) if kind is None else None
        if unsupported is not None:
            self.tally.unsupported.setdefault(unsupported, []).append(path)
            return False
        if kind is None:
            self.tally.foreign[f".{extension}" if extension else "no extension"] += 1
        return kind is not None


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _unreadable(folder: str, error: OSError, field: str) -> OpError:
    message = f"the folder {folder!r} cannot be read: {error.strerror or error}"
    return OpError("PG406", message, field=field, help="give this process read permission")


def walk(folder: str, field: str = "path") -> Iterator[tuple[str, list[str], list[str]]]:
    """Walks like `os.walk`; `PG406` for an unreadable folder, with the argument that names it."""

    def unread(error: OSError) -> None:
        raise _unreadable(error.filename, error, field) from error

    return os.walk(folder, onerror=unread)
