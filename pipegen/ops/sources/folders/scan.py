"""Walks a folder of images or of sounds, recognised by content and, for speed, by ending (only other files are opened), and reports what
is missing and what was ignored; glob patterns of relative POSIX paths, the same on every Python version and system, matched in linear time.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import Any, TypeAlias

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.mounts import content_of
from pipegen.ops.fields.notes import LeftOut, Note, count, is_are, quoted
from pipegen.ops.fields.strings import Collector, Ints, Strings, as_sizes
from pipegen.ops.lowering.library import PLUGINS, is_readable, missing_plugin, plugin_format
from pipegen.ops.sources.listing.base import Location
from pipegen.ops.sources.listing.paths import close_names
from pipegen.ops.sources.listing.reader import FileReader, Reader
from pipegen.patterns import MOST, Pattern, compile_pattern

HEAD_BYTES = 16  # bytes that `sniff` needs

IMAGE_EXTENSIONS = frozenset({"jpg", "jpeg", "jpe", "jfif", "png", "gif", "bmp", "webp", "tif", "tiff", "ppm", "pgm", "pbm", "pnm"})
"""Extensions, in lower case, of images that are listed without opening them."""

UNSUPPORTED_EXTENSIONS = {
    "heic": "HEIC", "heif": "HEIC", "avif": "AVIF", "jp2": "JPEG 2000", "jxl": "JPEG XL",
}  # fmt: skip
"""Extensions of image formats that cannot always be decoded, with the format's name."""

SOUND_EXTENSIONS = frozenset({
    "wav", "wave", "flac", "ogg", "oga", "opus", "mp3", "aif", "aiff", "aifc", "au", "snd", "rf64", "w64", "sph", "nist",
})  # fmt: skip
"""Extensions, in lower case, of sound files."""
_WAV = frozenset({"wav", "wave"})  # those of files that need no library

OTHER_EXTENSIONS = frozenset({
    "txt", "csv", "tsv", "json", "jsonl", "xml", "yaml", "yml", "toml", "ini", "log", "md", "html", "pdf", "doc", "docx", "xls", "xlsx",
    "npy", "npz", "pkl", "mat", "h5", "hdf5", "pt", "parquet", "tfrecord", "db", "py", "ipynb", "pyc", "sh", "bat", "lock", "svg",
    "zip", "tar", "gz", "tgz", "bz2", "xz", "7z", "rar", "mp4", "avi", "mov", "mkv",
})  # fmt: skip
"""Extensions of other files that are not opened either: labels often lie beside images."""

BY_PLUGIN = frozenset(PLUGINS)  # formats that `sniff` recognises but only some installations decode


_FORMATS = re.compile(
    rb"(?P<JPEG>\xff\xd8\xff)|(?P<PNG>\x89PNG\r\n\x1a\n)|(?P<GIF>GIF8[79]a)|(?P<WebP>RIFF.{4}WEBP)"
    rb"|(?P<BMP>BM.{12}[\x0c(48@l|]\0)"  # byte 14 has the size of the second header: "BM" alone would also match text
    rb"|(?P<TIFF>II[*+]\0|MM\0[*+])"
    rb"|(?P<PPM>P[1-6]\s[\d#])",  # a size or a comment follows
    re.DOTALL,
)


def sniff(head: bytes) -> str | None:
    """Recognises the format of a file that begins with `head`.

    Args:
        head: The first `HEAD_BYTES` bytes, or all of a shorter file.

    Returns:
        `JPEG`, `PNG`, `GIF`, `BMP`, `WebP`, `TIFF` or `PPM` (also for PGM and PBM); one of `BY_PLUGIN`; `None` for other files.
    """
    found = _FORMATS.match(head)
    return plugin_format(head) if found is None else found.lastgroup


@dataclass(frozen=True)
class Wanted:
    """The files that a walk lists, all of one kind."""

    one: str  # a word for one, and with an article
    a: str
    extensions: frozenset[str]  # of those that are listed without opening them
    others: frozenset[str]  # extensions of files that are not opened either
    unsupported: Mapping[str, str]  # formats of files of other extensions that cannot be read
    head: int  # bytes that `sniff` needs
    sniff: Callable[[bytes], str | None]  # recognises a format by the first bytes; `None` for other files
    install: Callable[[str], str]  # the command that installs what reads a format; "" if nothing does
    is_readable: Callable[[str], bool]  # whether a format can be read in this environment
    formats: str  # those that are recognised, in a help

    @property
    def many(self) -> str:
        return f"{self.one}s"


IMAGES = Wanted(
    "image",
    "an image",
    IMAGE_EXTENSIONS,
    OTHER_EXTENSIONS | SOUND_EXTENSIONS,
    UNSUPPORTED_EXTENSIONS,
    HEAD_BYTES,
    sniff,
    lambda kind: missing_plugin(kind) if kind in PLUGINS else "",
    lambda kind: kind not in BY_PLUGIN or is_readable(kind),
    "JPEG, PNG, GIF, BMP, WebP, TIFF, PPM, PGM and PBM are recognised by content; see `pipegen ops decode` for others",
)


@cache
def sounds() -> Wanted:
    """Sound files, as far as they can be read: without soundfile, WAV alone."""
    from pipegen.ops.lowering.sounds import HEAD, READ, UNREAD, is_readable, missing_library, sound_format

    known = SOUND_EXTENSIONS if is_readable("") else _WAV
    others = OTHER_EXTENSIONS | IMAGE_EXTENSIONS
    formats = f"{READ} are recognised by content"
    return Wanted("sound", "a sound", known, others, UNREAD, HEAD, sound_format, missing_library, is_readable, formats)


JUNK = frozenset({
    "__macosx", "thumbs.db", "ehthumbs.db", "desktop.ini", "$recycle.bin", "system volume information", "found.000", "lost+found",
    "network trash folder", "temporary items", "@eadir", "@tmp", "@sharebin", "#recycle", "#snapshot", "@recycle", "@recently-snapshot",
    "~snapshot",
})  # fmt: skip
"""Files and folders, in lower case, that macOS, Windows, Linux, and storage devices of Synology, QNAP and NetApp create, besides names with
a leading dot."""
_PROGRESS_EVERY = 1000

Found: TypeAlias = tuple[str, int]  # a path relative to the root, and a size in bytes


_QUICK = 2  # number of wildcards up to which Python's `re` is used, at most quadratic in a path's length; beyond, RE2, which is linear
Glob: TypeAlias = re.Pattern[str] | Pattern  # a pattern that `match` compares with whole relative paths


def compile_glob(pattern: str) -> Glob:
    """Compiles a glob that matches whole relative paths.

    `*` and `?` stay within one folder, `**/` matches any number of folders, also none, `[abc]` and `[!abc]` one character. A pattern
    without a slash matches the file's name in any folder. Case matters. Raises `ValueError` if a bracket is not closed, or the pattern is
    longer than any path."""
    if len(pattern) > MOST:
        raise ValueError(f"the pattern is longer than {MOST:,} characters")
    text = pattern if "/" in pattern else f"**/{pattern}"
    out: list[str] = []
    i = wild = 0
    while i < len(text):
        if text.startswith("**/", i) and (i == 0 or text[i - 1] == "/"):
            out.append("(?:.+/)?")
            i, wild = i + 3, wild + 1
        elif text.startswith("**", i):
            out.append(".*")
            i, wild = i + 2, wild + 1
        elif text[i] == "[":
            group, i = _bracket(text, i)
            out.append(group)
        else:
            wild += text[i] == "*"
            out.append({"*": "[^/]*", "?": "[^/]"}.get(text[i]) or _literal(text[i]))
            i += 1
    expression = f"(?s:{''.join(out)})"
    return re.compile(rf"{expression}\Z") if wild <= _QUICK else compile_pattern(rf"\A{expression}\z")


def _bracket(text: str, start: int) -> tuple[str, int]:
    """Returns the regular expression of the bracket at `start`, and the place after it. No set matches a slash."""
    negated = text[start + 1 : start + 2] == "!"
    first = start + 2 if negated else start + 1
    end = text.find("]", first + 1)
    if end < 0:
        raise ValueError(f"`[` is not closed in the pattern {text!r}")
    inside, members, i = text[first:end], list[tuple[str, str]](), 0
    while i < len(inside):
        low, high = inside[i], inside[i]
        if inside[i + 1 : i + 2] == "-" and i + 2 < len(inside):
            high = inside[i + 2]
            if high < low:
                raise ValueError(f"the range `{low}-{high}` in the pattern {text!r} runs backwards")
            i += 2
        around = [(low, "."), ("0", high)] if low <= "/" <= high and not negated else [(low, high)]
        members += [(a, b) for a, b in around if a <= b]
        i += 1
    if not members:
        return r"\b\B", end + 1  # nothing
    listed = "".join(f"{_literal(a)}-{_literal(b)}" for a, b in members)
    return f"[{'^/' if negated else ''}{listed}]", end + 1


def _literal(char: str) -> str:
    """Escapes one character, in and out of brackets, for `re` and RE2 alike."""
    return char if char.isalnum() or char in "_/ " or char > "\x7f" else "\\" + char


@dataclass(frozen=True, eq=False)
class Tree:
    """The files of a walk, sorted by path: paths relative to the root, and sizes in bytes."""

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

    archive: Any = None  # what it walks, if that is no folder
    notes: Sequence[Note] = ()  # findings about that

    def __init__(
        self,
        root: str,
        *,
        match: Glob | None = None,
        follow_links: bool = False,
        progress: Callable[[int], None] | None = None,
        every_file: bool = False,
        wanted: Wanted = IMAGES,
    ) -> None:
        """Starts a walk; `progress` gets the number of files so far, now and then. Only files that are `wanted` are listed, unless
        `every_file` is set."""
        self.root, self.match, self.tally, self.wanted = root, match, Tally(), wanted
        self._follow_links, self._progress, self._every_file = follow_links, progress, every_file

    def tree(self, below: str = "") -> Tree:
        """Lists the files at any depth below a relative folder, sorted by path.

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
            inner, inner_links, files = self.level(folder)
            folders.extend(reversed(inner))
            links.extend(inner_links)
            found.add([path for path, _ in files])
            all_sizes.append(np.array([size for _, size in files], np.int64))
        paths, sizes = found.strings(), as_sizes(np.concatenate(all_sizes))
        order = paths.order()
        return Tree(paths, sizes) if order is None else Tree(paths.take(order).packed(), sizes[order])

    def level(self, folder: str) -> tuple[list[str], list[str], list[Found]]:
        """Lists the direct entries of a relative folder: the folders, the linked folders (if links are followed) and the files, as sorted
        relative paths; `PG406` if it cannot be read."""
        try:
            with os.scandir(self._absolute(folder)) as entries:
                return self._sorted_out(entries, folder)
        except OSError as error:
            raise _unreadable(self._absolute(folder), error, "path") from error

    def _sorted_out(self, entries: Iterable[Any], folder: str) -> tuple[list[str], list[str], list[Found]]:
        """Sorts entries, each as `os.DirEntry`; see `level`."""
        folders, links, files = list[str](), list[str](), list[Found]()
        prefix = f"{folder}/" if folder else ""
        for entry in entries:
            path = prefix + entry.name
            if is_hidden(entry.name):
                self.tally.hidden.append(path)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(path)
            elif entry.is_symlink() and os.path.isdir(entry.path):  # not a link that leads to itself
                (links if self._follow_links else self.tally.links).append(path)
            else:
                size = self._size_of_wanted(entry, path)
                if size is not None:
                    files.append((path, size))
        return sorted(folders), sorted(links), sorted(files)

    def has_folder(self, folder: str) -> bool:
        """Tells whether the folder exists and may be entered."""
        parts = folder.split("/")
        linked = any(os.path.islink(self._absolute("/".join(parts[: i + 1]))) for i in range(len(parts)))
        return os.path.isdir(self._absolute(folder)) and (self._follow_links or not linked)

    def listed(self, paths: Strings, sizes: Ints) -> tuple[Location, Reader]:
        """Returns where files are, and what reads them."""
        return Location.below(self.root, paths, sizes), FileReader()

    def head(self, entry: Any, count: int) -> bytes:
        return content_of(entry.path, count)

    def _absolute(self, folder: str) -> str:
        return f"{self.root}/{folder}" if folder else self.root

    def _count(self, files: int) -> None:
        before = self.tally.files
        self.tally.files += files
        if self._progress is not None and before // _PROGRESS_EVERY < self.tally.files // _PROGRESS_EVERY:
            self._progress(self.tally.files)

    def _size_of_wanted(self, entry: Any, path: str) -> int | None:
        """Returns the size of a wanted file in bytes, or counts another one and returns `None`."""
        tally = self.tally
        self._count(1)
        if self.match is not None and self.match.match(path) is None:
            tally.unmatched += 1
            return None
        extension = entry.name.rpartition(".")[2].lower() if "." in entry.name else ""
        if extension in self.wanted.others and not self._every_file:
            tally.foreign[f".{extension}"] += 1
            return None
        try:
            info = entry.stat()
            if not stat.S_ISREG(info.st_mode):  # opening a pipe would block
                tally.foreign["special"] += 1
                return None
            if not self._every_file and extension not in self.wanted.extensions and not self._is_wanted(entry, path, extension):
                return None
        except OSError:
            tally.broken.append(path)
            return None
        return info.st_size

    def _is_wanted(self, entry: Any, path: str, extension: str) -> bool:
        kind = self.wanted.sniff(self.head(entry, self.wanted.head))
        unsupported = self.wanted.unsupported.get(extension) if kind is None else None if self.wanted.is_readable(kind) else kind
        if unsupported is not None:
            self.tally.unsupported.setdefault(unsupported, []).append(path)
            return False
        if kind is None:
            self.tally.foreign[f".{extension}" if extension else "no extension"] += 1
        return kind is not None


def _unreadable(folder: str, error: OSError, field: str) -> OpError:
    message = f"the folder {folder!r} cannot be read: {error.strerror or error}"
    return OpError("PG406", message, field=field, help="give this process read permission")


def walk(folder: str, field: str = "path") -> Iterator[tuple[str, list[str], list[str]]]:
    """Walks like `os.walk`; `PG406` for an unreadable folder, with the argument that names it."""

    def unread(error: OSError) -> None:
        raise _unreadable(error.filename, error, field) from error

    return os.walk(folder, onerror=unread)


def nothing_found(
    scan: Scan,
    within: str = "",
    *,
    pattern: str | None = None,
    loose: int = 0,
    folders: Sequence[str] = (),
    classes: Sequence[str] | None = None,
) -> OpError:
    """Returns `PG402` with what was found instead of files of the wanted kind below a folder of a walk: `loose` ones directly in it, and
    sub-`folders`."""
    tally, wanted = scan.tally, scan.wanted
    folder = f"{scan.root}/{within}" if within else scan.root
    if loose and classes is None:
        below = f"but none in its {count(len(folders), 'sub-folder')}" if folders else "but no sub-folders"
        message = f"{count(loose, wanted.one)} directly in {folder!r} {below}"
        return OpError(
            "PG402", message, field="path", help=write("labels: none", "arguments", f"for {wanted.many} without classes, write {{}}")
        )
    if tally.unmatched:
        message = f"none of the {count(tally.unmatched, 'file')} below {folder!r} is {wanted.a} that matches `pattern: {pattern}`"
        return OpError("PG402", message, field="pattern", help=_GLOB)
    if classes is not None:
        have = f"it holds the folders {quoted(folders)}" if folders else "it holds no folders"
        return OpError("PG402", f"no class in `classes` has {wanted.a} below {folder!r}", field="classes", help=have)
    if tally.links:
        message = f"no {wanted.one} below {folder!r}; linked folders such as {tally.links[0]!r} were not entered"
        return OpError("PG402", message, field="path", help="enter them with `follow_links: true`")
    return OpError("PG402", f"no {wanted.one} below {folder!r}: {_what_is_there(scan, folders)}", field="path", help=wanted.formats)


_SHOWN = 5
_GLOB = "the pattern is matched against the path below the folder; `**/` matches any folders"


def _what_is_there(scan: Scan, folders: Sequence[str]) -> str:
    tally, wanted, parts = scan.tally, scan.wanted, []
    unsupported = sum(len(files) for files in tally.unsupported.values())
    if unsupported:
        parts.append(f"{count(unsupported, wanted.one)} of unsupported formats ({', '.join(sorted(tally.unsupported))})")
    if tally.foreign:
        parts.append(f"{count(tally.foreign.total(), 'file')}, none of them {wanted.a} ({_kinds(tally.foreign)})")
    if tally.broken:
        parts.append(f"{count(len(tally.broken), 'file')} that cannot be opened")
    if tally.hidden:
        parts.append(f"{count(len(tally.hidden), 'hidden entry', 'hidden entries')}")
    if not parts and folders:
        parts.append(f"{count(len(folders), 'folder')} without files")
    return ", ".join(parts) or "it is empty"


def _kinds(kinds: Counter[str]) -> str:
    return ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items(), key=lambda item: (-item[1], item[0]))[:_SHOWN])


def folder_notes(scan: Scan, names: Sequence[str], trees: Sequence[Tree | None], folders: Sequence[str], *, listed: bool) -> Iterator[Note]:
    """Reports empty and missing classes, folders that are not classes, and files outside of classes. `trees` has the files of each class,
    `None` without a folder; `folders` are the existing sub-folders; `listed` tells whether the spec lists the classes."""
    wanted = scan.wanted
    empty = [name for name, tree in zip(names, trees, strict=True) if tree is not None and not tree]
    if empty and listed:
        message = f"no {wanted.one} in the class {quoted(empty)}, which `classes` lists"
        yield Note("PG403", message, f"remove it from the list, or add {wanted.many}", "classes", "error")
    elif empty:
        message = f"{count(len(empty), 'folder')} without {wanted.many} {is_are(len(empty))} ignored as classes: {quoted(empty)}"
        yield Note("PG403", message, "remove the folder, or list `classes` to fix the set of labels", "path")
    filled = [name for name, tree in zip(names, trees, strict=True) if tree]
    if not listed and len(filled) > 1 and {name.casefold() for name in filled} <= _SPLITS:
        message = f"every class has the name of a split ({quoted(filled)}), so the classes are probably one level deeper"
        parts = ", ".join(f"{split}: {name}" for split, name in {_meant(name): name for name in filled}.items())
        lines = f"splits: {{method: folder, parts: {{{parts}}}}}"
        yield Note("PG415", message, write(lines, "sections", "to use these folders as splits, write {}"), "path")
    for name in (name for name, tree in zip(names, trees, strict=True) if tree is None):
        close = close_names(name, [f for f in folders if f not in names])
        note = f"is {close[0]!r} meant?" if close else f"the folder holds {quoted(folders)}"
        if name in scan.tally.links:
            note = "it is a linked folder; enter it with `follow_links: true`"
        yield Note("PG403", f"`classes` lists {name!r}, which {scan.root!r} lacks", note, "classes", "error")
    if listed:
        tops = {name.split("/")[0] for name in names}
        unlisted = [folder for folder in folders if folder not in tops]
        if unlisted:
            gone = LeftOut(len(unlisted), "folder not in `classes`", "folders not in `classes`")
            yield Note("PG411", f"{gone} and ignored: {quoted(unlisted)}", field="classes", left_out=(gone,))


_VALIDATION = frozenset({"val", "valid", "validation", "dev", "eval"})
_SPLITS = _VALIDATION | {"train", "training", "test", "testing", "holdout", "predict"}


def _meant(folder: str) -> str:
    """Returns the split that a folder of this name holds."""
    name = folder.casefold()
    return "validation" if name in _VALIDATION else name.removesuffix("ing")


def loose_notes(scan: Scan, loose: int, within: str = "") -> Iterator[Note]:
    """Reports files directly in a folder of class folders."""
    if loose:
        folder, wanted = f"{scan.root}/{within}" if within else scan.root, scan.wanted
        message = f"{count(loose, wanted.one)} directly in {folder!r} {is_are(loose)} ignored, without a class"
        gone = LeftOut(loose, f"{wanted.one} outside every class folder", f"{wanted.many} outside every class folder")
        yield Note("PG411", message, f"move such {wanted.many} into a class folder", "path", left_out=(gone,))


def tally_notes(scan: Scan) -> Iterator[Note]:
    """Reports ignored files: a note for each reason to act, and one for the rest."""
    tally, wanted = scan.tally, scan.wanted
    for kind, files in sorted(tally.unsupported.items()):
        message = f"{kind} cannot be decoded; {count(len(files), 'file')} of that format: {quoted(files)}"
        help_: tuple[str, ...] = ("convert the files, or leave them out with `pattern`, such as `pattern: '*.jpg'`",)
        install = wanted.install(kind)
        yield Note("PG414", message, (install, *help_) if install else help_[0], "path")
    if tally.broken:
        message = f"{count(len(tally.broken), 'file')} could not be opened and {is_are(len(tally.broken))} ignored: {quoted(tally.broken)}"
        gone = LeftOut(len(tally.broken), "file that could not be opened", "files that could not be opened")
        yield Note("PG411", message, "check for broken links and missing read permissions", "path", "warning", (gone,))
    passed, left_out = [], []
    if tally.hidden:
        left_out.append(LeftOut(len(tally.hidden), "hidden entry", "hidden entries"))
        passed.append(f"{left_out[-1]} ({quoted(tally.hidden)})")
    if tally.foreign:
        left_out.append(LeftOut(tally.foreign.total(), f"file that is not {wanted.a}", f"files that are not {wanted.many}"))
        passed.append(
            f"{count(tally.foreign.total(), 'file')} that {is_are(tally.foreign.total())} not {wanted.a} ({_kinds(tally.foreign)})"
        )
    if tally.links:
        left_out.append(LeftOut(len(tally.links), "linked folder", "linked folders"))
        passed.append(f"{left_out[-1]} ({quoted(tally.links)}; `follow_links: true` enters them)")
    if tally.loops:
        passed.append(f"{count(len(tally.loops), 'link')} back to folders already listed ({quoted(tally.loops)})")
    if passed:
        yield Note("PG411", f"ignored: {', '.join(passed)}", field="path", left_out=tuple(left_out))
