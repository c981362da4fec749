"""`pipegen cache`: lists, deletes and verifies caches on disk."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from pipegen.cache.folder import Held, Kept, Verdict
from pipegen.cli.common import NOTHING, SUFFIX, Given, WithSets, as_group, spec_files
from pipegen.cli.failures import FOUND, CannotRun, refused
from pipegen.spec.units import format_bytes
from pipegen.terminal import aligned, is_terminal, json_text, progress, say

Where = Annotated[
    list[str] | None,
    typer.Argument(metavar="FOLDER|SPEC", help="Folders of caches, or specs with a cache on disk; by default the specs found here."),
]
Format = Annotated[Literal["text", "json"], typer.Option("--format", help="How to print it.")]
Only = Annotated[str | None, typer.Option("--only", metavar="KEY", help="Only the caches whose key starts with KEY.")]


def ls(where: Where = None, output_format: Format = "text", given: WithSets = NOTHING) -> None:
    """List the caches on disk, with their contents.

    A cache contains the results of the steps that are equal in every epoch. Its key identifies these steps and the
    data: a changed size or file needs a new cache; a changed batch, seed or later step uses the same one.
    The size is that on disk; it grows while the cache fills.
    The folder also contains what steps have learned from the training split. For very large data, it contains files that assign records
    to splits, or that store a column of all records.

    Examples:
      pipegen cache ls                           of every spec in or below this folder
      pipegen cache ls flowers.pipegen.yaml
      pipegen cache ls /ssd/cache --format json
    """
    found = _kept(where, given)
    if output_format == "json":
        say(json_text(as_json(found)))
        return
    for folder, several in found.items():
        say(table(folder, several))


def clear(
    where: Where = None,
    only: Only = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    given: WithSets = NOTHING,
) -> None:
    """Delete caches, and all else that pipegen keeps with them.

    That is the assignment of records to splits, columns of all records, and statistics; other files stay. All are made again when a run
    needs them. A run that uses one continues with its open files; the space is free
    when that run ends.

    Examples:
      pipegen cache clear flowers.pipegen.yaml
      pipegen cache clear /ssd/cache --only 3f2a --yes
    """
    from pipegen.cache.folder import remove

    found = _chosen(_kept(where, given), only)
    every = [kept for several in found.values() for kept in several]
    if not every:
        say("nothing to delete")
        return
    size = format_bytes(sum(kept.bytes for kept in every))
    if not yes:
        if not is_terminal(sys.stdin):
            raise CannotRun("refusing to delete: no terminal to confirm on", "use --yes")
        for folder, several in found.items():
            say(table(folder, several))
        typer.confirm(f"delete {counted(every)}, {size}?", abort=True)
    for kept in every:
        remove(kept)
    say(f"deleted {counted(every)}, {size}")


def verify(
    where: Where = None,
    only: Only = None,
    output_format: Format = "text",
    given: WithSets = NOTHING,
) -> None:
    """Compare the records in caches with their checksums.

    It decodes nothing, and exits with 1 if a record is damaged. A run checks each record before it uses it, and
    recomputes damaged ones; this command finds a failing disk early.

    Examples:
      pipegen cache verify flowers.pipegen.yaml
      pipegen cache verify /ssd/cache --format json
    """
    from pipegen.cache import folder as caches

    found = _chosen(_kept(where, given), only)
    verdicts = {}
    for held in (h for several in found.values() for h in several if isinstance(h, caches.Held)):
        with progress(held.key[:8], held.filled) as tick:
            verdicts[held.key] = caches.verify(held, tick)
        if output_format == "text":
            say(verdict_line(held, verdicts[held.key]))
    if output_format == "json":
        say(json_text(as_json(found, verdicts)))
    elif not verdicts:
        say("no caches found")
    if any(v.damaged or v.problem for v in verdicts.values()):
        raise typer.Exit(FOUND)


def _kept(where: Iterable[str] | None, given: Given) -> dict[Path, list[Kept]]:
    """Lists the caches and then the other files of each folder."""
    from pipegen.cache.folder import caches_in, files_in
    from pipegen.spec.models import DiskCache

    named = list(where or ())
    folders: dict[Path, None] = {}
    for name in named or spec_files([]):
        if os.path.isdir(name):
            folders[Path(name)] = None
            continue
        if not os.path.exists(name) and name != "-":
            raise CannotRun(f"{name} does not exist", "name a folder of caches, or a spec with `runtime: {cache: {disk: FOLDER}}`")
        wanted = given.load(name).model.runtime.cache
        folder = Path(wanted.disk) if isinstance(wanted, DiskCache) else None
        if folder is not None and folder.is_dir():
            folders[folder] = None
        elif named and folder is None:
            raise CannotRun(f"{name} has no cache on disk", "write `runtime: {cache: {disk: FOLDER}}`, or name the folder itself")
    found: dict[Path, list[Kept]] = {}
    for folder in folders:
        with refused("read", folder):
            found[folder] = [*caches_in(folder), *files_in(folder)]
    return found


def _chosen(found: dict[Path, list[Kept]], only: str | None) -> dict[Path, list[Kept]]:
    """Selects the items whose key starts with `only`."""
    if only is None:
        return found
    chosen = {folder: [h for h in several if h.key.startswith(only)] for folder, several in found.items()}
    if not any(chosen.values()):
        raise CannotRun(f"no cache has a key that starts with {only}", "`pipegen cache ls` shows them")
    return {folder: several for folder, several in chosen.items() if several}


_ABOUT = f"List, delete and verify caches on disk.\n\nSpecs (*{SUFFIX}) enable them with `runtime: {{cache: {{disk: FOLDER}}}}`."
app = as_group(_ABOUT, ls, clear, verify)


_KEY = 8  # digits of a key that tell caches apart in practice
_SPANS = (("day", 86400.0), ("hour", 3600.0), ("minute", 60.0))
_SHOWN = 10
_FILES = {
    "splits": ("split assignment", "the split of each record"),
    "index": ("record index", "the offset of each record in its file, or all labels"),
    "columns": ("column", "a column of all records, for datasets that run anywhere"),
    "looks": ("picture survey", "measurements of each image by `pipegen report`"),
    "statistics": ("fitted step", "what a step has learned from the training split"),
}
"""Other files by their kind: what they are called, and what they contain."""


def table(folder: Path, found: list[Kept]) -> str:
    """Lists the contents of a folder, one a line."""
    if not found:
        return f"{folder}: no caches"
    head = ("KEY", "SPEC", "RECORDS", "SIZE", "LAST WRITTEN", "STEPS")
    lines = aligned([head, *map(_row, found)])
    return "\n".join([f"{folder}: {format_bytes(sum(kept.bytes for kept in found))}", *(f"  {line}" for line in lines)])


def counted(found: Sequence[Kept]) -> str:
    """Counts items by kind: `2 caches and 1 split assignment`."""
    counts = Counter(kept.kind for kept in found)
    nouns = {"cache": "cache", **{kind: noun for kind, (noun, _) in _FILES.items()}}
    parts = [f"{n} {noun}{('es' if noun.endswith('x') else 's') if n != 1 else ''}" for kind, noun in nouns.items() if (n := counts[kind])]
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


def _row(held: Kept) -> tuple[str, ...]:
    size, written = format_bytes(held.bytes), age(time.time() - held.used)
    if not isinstance(held, Held):
        return held.key[:_KEY], "", "", size, written, _FILES[held.kind][1]
    about = held.about
    filled = "a file is missing" if held.filled is None else f"{held.filled:,} of {about.records:,}"
    shapes = ", ".join(f"{c.name} {c.dtype}[{'×'.join(map(str, c.shape))}]" for c in about.columns)
    return held.key[:_KEY], about.spec or "unnamed", filled, size, written, f"{about.steps}: {shapes}"


def age(seconds: float) -> str:
    """Describes a time ago in the largest unit that fits."""
    counts = ((int(seconds // length), unit) for unit, length in _SPANS)
    return next((f"{n} {unit}{'s' if n > 1 else ''} ago" for n, unit in counts if n >= 1), "just now")


def verdict_line(held: Held, verdict: Verdict) -> str:
    """Describes the result of verifying one cache in a line."""
    name = f"{held.key[:_KEY]}  {held.about.spec or 'unnamed'}"
    if verdict.problem:
        return f"{name}: cannot be checked: {verdict.problem}"
    if not verdict.damaged:
        return f"{name}: {verdict.checked:,} records are intact"
    more = ", …" if len(verdict.damaged) > _SHOWN else ""
    which = ", ".join(str(row) for row in verdict.damaged[:_SHOWN])
    return f"{name}: {len(verdict.damaged):,} of {verdict.checked:,} records are damaged and will be recomputed: rows {which}{more}"


def as_json(found: Mapping[Path, list[Kept]], verdicts: Mapping[str, Verdict] | None = None) -> dict[str, Any]:
    """Lists the caches and other files as plain values, with the verdicts of `verify`."""
    folders = []
    for folder, several in found.items():
        shown: list[dict[str, Any]] = []
        files: dict[str, list[dict[str, Any]]] = {kind: [] for kind in _FILES}
        for held in several:
            if not isinstance(held, Held):
                files[held.kind].append({"key": held.key, "bytes": held.bytes, "last_written": held.used})
                continue
            about = held.about
            entry: dict[str, Any] = {name: getattr(about, name) for name in ("key", "spec", "steps", "records")}
            entry |= {"filled": held.filled, "bytes": held.bytes, "created": about.created, "last_written": held.used}
            entry["features"] = [{"name": c.name, "dtype": c.dtype, "shape": list(c.shape)} for c in about.columns]
            if verdicts is not None:
                verdict = verdicts[about.key]
                entry |= {"checked": verdict.checked, "damaged": list(verdict.damaged), "problem": verdict.problem or None}
            shown.append(entry)
        folders.append({"folder": str(folder), "caches": shown, **files})
    return {"version": 1, "folders": folders}
