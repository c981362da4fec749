"""Reports on a folder of images: missing images, empty classes, ignored files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.ops.fields.notes import LeftOut, Note, count, is_are, quoted
from pipegen.ops.lowering.library import PLUGINS, missing_plugin
from pipegen.ops.sources.listing.paths import close_names

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence

    from pipegen.ops.sources.folders.scan import Scan, Tally, Tree


def nothing_found(
    scan: Scan,
    within: str = "",
    *,
    pattern: str | None = None,
    loose: int = 0,
    folders: Sequence[str] = (),
    classes: Sequence[str] | None = None,
) -> OpError:
    """Returns `PG402` with what was found instead of images below a folder of a walk: `loose` images directly in it, and sub-`folders`."""
    tally = scan.tally
    folder = f"{scan.root}/{within}" if within else scan.root
    if loose and classes is None:
        below = f"but none in its {count(len(folders), 'sub-folder')}" if folders else "but no sub-folders"
        message = f"{count(loose, 'image')} directly in {folder!r} {below}"
        return OpError("PG402", message, field="path", help=write("labels: none", "arguments", "for images without classes, write {}"))
    if tally.unmatched:
        message = f"none of the {count(tally.unmatched, 'file')} below {folder!r} is an image that matches `pattern: {pattern}`"
        return OpError("PG402", message, field="pattern", help=_GLOB)
    if classes is not None:
        have = f"it holds the folders {quoted(folders)}" if folders else "it holds no folders"
        return OpError("PG402", f"no class in `classes` has an image below {folder!r}", field="classes", help=have)
    if tally.links:
        message = f"no image below {folder!r}; linked folders such as {tally.links[0]!r} were not entered"
        return OpError("PG402", message, field="path", help="enter them with `follow_links: true`")
    return OpError("PG402", f"no image below {folder!r}: {_what_is_there(tally, folders)}", field="path", help=_FORMATS)


_SHOWN = 5
_GLOB = "the pattern is matched against the path below the folder; `**/` matches any folders"
_FORMATS = "JPEG, PNG, GIF, BMP, WebP, TIFF, PPM, PGM and PBM are recognised by content; see `pipegen ops decode` for others"


def _what_is_there(tally: Tally, folders: Sequence[str]) -> str:
    parts = []
    unsupported = sum(len(files) for files in tally.unsupported.values())
    if unsupported:
        parts.append(f"{count(unsupported, 'image')} of unsupported formats ({', '.join(sorted(tally.unsupported))})")
    if tally.foreign:
        parts.append(f"{count(tally.foreign.total(), 'file')}, none of them an image ({_kinds(tally.foreign)})")
    if tally.broken:
        parts.append(f"{count(len(tally.broken), 'file')} that cannot be opened")
    if tally.hidden:
        parts.append(f"{count(len(tally.hidden), 'hidden entry', 'hidden entries')}")
    if not parts and folders:
        parts.append(f"{count(len(folders), 'folder')} without files")
    return ", ".join(parts) or "it is empty"


def _kinds(kinds: Counter[str]) -> str:
    return ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items(), key=lambda item: (-item[1], item[0]))[:_SHOWN])


def class_notes(scan: Scan, names: Sequence[str], trees: Sequence[Tree | None], folders: Sequence[str], *, listed: bool) -> Iterator[Note]:
    """Reports empty and missing classes, folders that are not classes, and images outside of classes. `trees` has the images of each class,
    `None` without a folder; `folders` are the existing sub-folders; `listed` tells whether the spec lists the classes."""
    empty = [name for name, tree in zip(names, trees, strict=True) if tree is not None and not tree]
    if empty and listed:
        message = f"no image in the class {quoted(empty)}, which `classes` lists"
        yield Note("PG403", message, "remove it from the list, or add images", "classes", "error")
    elif empty:
        message = f"{count(len(empty), 'folder')} without images {is_are(len(empty))} ignored as classes: {quoted(empty)}"
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
    """Reports images directly in a folder of class folders."""
    if loose:
        folder = f"{scan.root}/{within}" if within else scan.root
        message = f"{count(loose, 'image')} directly in {folder!r} {is_are(loose)} ignored, without a class"
        gone = LeftOut(loose, "image outside every class folder", "images outside every class folder")
        yield Note("PG411", message, "move such images into a class folder", "path", left_out=(gone,))


def tally_notes(tally: Tally) -> Iterator[Note]:
    """Reports ignored files: a note for each reason to act, and one for the rest."""
    for kind, files in sorted(tally.unsupported.items()):
        message = f"{kind} cannot be decoded; {count(len(files), 'file')} of that format: {quoted(files)}"
        help_: tuple[str, ...] = ("convert the files, or leave them out with `pattern`, such as `pattern: '*.jpg'`",)
        yield Note("PG414", message, (missing_plugin(kind), *help_) if kind in PLUGINS else help_[0], "path")
    if tally.broken:
        message = f"{count(len(tally.broken), 'file')} could not be opened and {is_are(len(tally.broken))} ignored: {quoted(tally.broken)}"
        gone = LeftOut(len(tally.broken), "file that could not be opened", "files that could not be opened")
        yield Note("PG411", message, "check for broken links and missing read permissions", "path", "warning", (gone,))
    passed, left_out = [], []
    if tally.hidden:
        left_out.append(LeftOut(len(tally.hidden), "hidden entry", "hidden entries"))
        passed.append(f"{left_out[-1]} ({quoted(tally.hidden)})")
    if tally.foreign:
        left_out.append(LeftOut(tally.foreign.total(), "file that is not an image", "files that are not images"))
        passed.append(f"{count(tally.foreign.total(), 'file')} that {is_are(tally.foreign.total())} not an image ({_kinds(tally.foreign)})")
    if tally.links:
        left_out.append(LeftOut(len(tally.links), "linked folder", "linked folders"))
        passed.append(f"{left_out[-1]} ({quoted(tally.links)}; `follow_links: true` enters them)")
    if tally.loops:
        passed.append(f"{count(len(tally.loops), 'link')} back to folders already listed ({quoted(tally.loops)})")
    if passed:
        yield Note("PG411", f"ignored: {', '.join(passed)}", field="path", left_out=tuple(left_out))
