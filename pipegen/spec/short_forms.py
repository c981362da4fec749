"""Short forms of sources, written out before the spec is checked: the common part of `by_split`, and classes that a file lists."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostics, Span
from pipegen.diagnostics.suggest import closest
from pipegen.files import read_regular
from pipegen.ops.sampling_sections import listed_values
from pipegen.spec.compose import MAX_BYTES
from pipegen.spec.expect import one_of, show
from pipegen.spec.extends import overlay
from pipegen.spec.locate import Locator, Place
from pipegen.spec.places import NAMES, absolute, homeless
from pipegen.spec.source_map import KeyPath, Tree, format_path, lookup, scalars
from pipegen.spec.step_list import step_name

COMMON = "common"  # the key of `by_split` with the arguments that its splits share
LISTS = (".txt", ".names", ".lst")
"""Endings of files that may list classes: findings show their lines, and a spec may name any file of this machine."""


def share_common(tree: Tree, locate: Locator, place: Place) -> list[Span]:
    """Writes the arguments in `common` into each split of a `by_split` with that source, in place; those of the split win. Returns the
    places of the common parts."""
    spans: list[Span] = []
    parts = lookup(tree.value, ("source", "mix", "parts"))
    each: list[KeyPath] = [("source", "mix", "parts", name, "source") for name in parts] if isinstance(parts, dict) else []
    for at in ((*source, "by_split") for source in (("source",), *each)):
        splits = lookup(tree.value, at)
        if isinstance(splits, dict) and COMMON in splits:
            spans += [span] if (span := tree.spans.values.get((*at, COMMON))) is not None else []
            _share(splits, splits.pop(COMMON), tree, locate, place.at(*at))

    return spans


def told_once(found: Diagnostics, common: Sequence[Span]) -> None:
    """Drops findings about common parts that each split repeats."""
    seen: set[tuple[str, Span]] = set()
    for finding in [*found.items]:
        at = finding.span
        if at is not None and any(at.is_within(span) for span in common):
            if (finding.code, at) in seen:
                found.items.remove(finding)
            seen.add((finding.code, at))


def _share(splits: dict[str, Any], common: Any, tree: Tree, locate: Locator, place: Place) -> None:
    here = place.at(COMMON)
    for wrong in [here, *(here.at(name) for name in common)] if isinstance(common, dict) else [here]:
        given = common if wrong is here else common[wrong.path[-1]]
        if not isinstance(given, dict):
            message = f"`{format_path(wrong.path)}` is a map of {'sources to their ' if wrong is here else ''}arguments, got {show(given)}"
            wrong.add(make("PG104", message, wrong.label(), help="such as `common: {csv: {header: false}}`"))
            return
    names = {split: step_name(source) for split, source in splits.items()}
    known = [name for name in dict.fromkeys(names.values()) if name]
    for unused in (name for name in common if name not in known):
        message = f"`common` has arguments of `{unused}`, but no split has this source"
        instead = (
            f"the splits have {one_of(known, 'and')}" if known else "name the splits beside it, such as `train: {csv: {path: train.csv}}`"
        )
        here.at(unused).add(make("PG102", message, here.at(unused).label(key=True), help=instead))
    for split, name in names.items():
        if name is not None and name in common:
            own = splits[split][name] if isinstance(splits[split], dict) else None
            at, taken = (*place.path, split, name), set[KeyPath]()
            splits[split] = {name: overlay(common[name], {} if own is None else own, at, taken)}
            known_of: dict[KeyPath, Any]
            for known_of in (tree.spans.values, tree.spans.keys, tree.odd_keys, locate.outside):
                _copy(known_of, (*here.path, name), at, taken)


def _copy(known: dict[KeyPath, Any], old: KeyPath, new: KeyPath, taken: set[KeyPath]) -> None:
    """Copies what is known of paths below `old` to those below `new`, unless these have their own, or lie in a value that is taken."""
    for path in [path for path in known if path[: len(old)] == old]:
        moved = (*new, *path[len(old) :])
        if not any(moved[:n] in taken for n in range(len(moved) + 1)):
            known.setdefault(moved, known[path])


def read_classes(spec: dict[str, Any], place: Place) -> None:
    """Replaces each `classes: {file: FILE}` of a source by the names that the file lists, in place."""
    for path, value in [*scalars(spec.get("source"), ("source",))]:
        at = next((path[: i + 1] for i, key in enumerate(path) if key == "classes" and path[i - 1] not in NAMES), ())
        given = lookup(spec, at) if at and at not in place.spoiled else None
        if not isinstance(given, dict) and not (isinstance(given, str) and given.endswith(LISTS)):
            continue
        if isinstance(given, str) or [*given] != ["file"] or not isinstance(value, str) or path != (*at, "file"):
            message = f"`{format_path(at[1:])}` is a list of names, or a file of some, got {show(given)}"
            file = given if isinstance(given, str) else "classes.txt"
            place.at(*at).add(make("PG104", message, place.locate.label(at), help=f"such as `classes: {{file: {file}}}`"))
            place.spoiled.add(at)
        elif (names := _names(value, path, place)) is None:
            place.spoiled.add(at)
        else:
            lookup(spec, at[:-1])["classes"] = names


def _names(file: str, path: KeyPath, place: Place) -> list[str] | None:
    """The names in a file; `None`, with a finding, if it cannot be read or lists none."""
    locate, problem, help_ = place.locate, "", "write a text file with one class in each line, in index order"
    if (finding := homeless(file, path, locate)) is not None:
        place.at(*path).add(finding)
        return None
    full = absolute(file, locate.folder(path))
    try:
        if not os.path.realpath(full).endswith(LISTS):
            problem, help_ = f"its name does not end in {one_of(LISTS)}", f"rename it, such as `{os.path.splitext(file)[0]}.txt`"
        else:
            data = read_regular(full, MAX_BYTES + 1)
            names = listed_values(data.decode("utf-8-sig").replace("\r\n", "\n").split("\n"))
            if names and len(data) <= MAX_BYTES:
                return [*names]
            problem = f"it is larger than {MAX_BYTES // 2**20} MiB" if names else "it lists no class"
    except FileNotFoundError:
        near = closest(os.path.basename(full), os.listdir(os.path.dirname(full)) if os.path.isdir(os.path.dirname(full)) else ())
        problem = "it does not exist"
        help_ = f"is `{near}` meant?" if near else "a path is relative to the file of the spec that it is written in"
    except UnicodeDecodeError:
        problem = "it is not UTF-8 text"
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
    place.at(*path).add(make("PG123", f"the classes in {file!r} cannot be read: {problem}", locate.label(path), help=help_))
    return None
