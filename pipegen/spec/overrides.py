"""Overrides of a spec by path: `--set batch.size=64` and `overrides={"transforms.random_flip.axis": "both"}`.

A path joins keys with dots; list entries have numbers, `[2]`, and steps their ids, such as `random_flip#2`. The keys of a map of
edits come below `transforms`: `--set 'transforms.remove=[random_flip]'`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostics, Label
from pipegen.diagnostics.suggest import hints
from pipegen.frozen import dataclass
from pipegen.spec.compose import MAX_DEPTH, compose, resolve
from pipegen.spec.expect import one_of, show
from pipegen.spec.extends import CHOICES
from pipegen.spec.locate import Locator
from pipegen.spec.source_map import KeyPath, Tree, format_path
from pipegen.spec.step_list import FORMS, INNER, STEPS, arguments_of, edit_steps, is_edit, raw_ids, step_name
from pipegen.terminal import masked_values


def plain(value: Any, tree: Tree, out: Diagnostics, path: KeyPath = ()) -> Any:
    """Copies `value` as maps, lists and scalars; tuples become lists, paths text, array scalars numbers."""
    if len(path) > MAX_DEPTH:
        out.add(make("PG003", f"the spec is nested more than {MAX_DEPTH} levels deep", Label(None, path=format_path(path[:3]))))
        return None
    if isinstance(value, Mapping):
        result: dict[str, Any] = {}
        for key, inner in value.items():
            name = str(list(key)) if isinstance(key, tuple) else str(key)
            at = (*path, name)
            if not isinstance(key, str):
                tree.odd_keys[at] = f"a Python {type(key).__name__}"
            result[name] = plain(inner, tree, out, at)
        return result
    if isinstance(value, (list, tuple)):
        return [plain(inner, tree, out, (*path, i)) for i, inner in enumerate(value)]
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    here = Label(None, path=format_path(path))
    if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
        out.add(make("PG001", "the text has half of a surrogate pair, which is not a character", here))
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return str(value) if isinstance(value, str) else value
    help_ = "use maps, lists, text, numbers, booleans and `None`"
    out.add(make("PG104", f"`{here.path}` is a Python {type(value).__name__}, which a spec cannot hold", here, help=help_))
    return None


_TOKEN = re.compile(r"""(\.?)(?:"([^"]+)"|'([^']+)'|\[(\d{1,6})\]|([^.\[\]"']+))""")
_STEPS = (STEPS, INNER)  # keys of lists of steps


@dataclass(frozen=True, slots=True)
class Outside:
    """Values from outside by name or path, and their name in findings: `--set`, `overrides=` or `params=`."""

    values: Mapping[str, Any]
    by: str

    def origin(self, name: str) -> str:
        """One of them as given: `--set batch.size=64`."""
        value = masked_values(self.values[name])
        return f"--set {name}={value}" if self.by == "--set" else f"{self.by.rstrip('=')}={{{name!r}: {value!r}}}"


class _WrongPathError(Exception):
    """An invalid path; the arguments are the message and its help."""


def lay_over(tree: Tree, outside: Outside, locate: Locator, out: Diagnostics) -> None:
    """Sets each value at its path, in the order given; an invalid path is a finding."""
    # Edits of the list of steps come first, as they move the targets of other paths.
    for name in sorted(outside.values, key=lambda name: name.removeprefix(f"{STEPS}.") not in (STEPS, *FORMS)):
        origin = outside.origin(name)
        try:
            value = _value(outside.values[name], outside.by, tree, out)
            parts = _parts(name)
            if (map_ := _edit(parts, value, tree)) is not None:
                for step in edit_steps(tree, Tree({STEPS: map_}), out, f"{origin}: ", locate.outside):
                    locate.lay_over(step, origin)
                continue
            path = _put(tree.value, parts, value)
        except _WrongPathError as wrong:
            if not tree.partial:
                message, *help_ = wrong.args
                out.add(make("PG102", f"{origin}: {message}", Label(None, path=name), help=tuple(help_)))
            continue
        for known in [p for p in tree.odd_keys if p[: len(path)] == path]:
            del tree.odd_keys[known]
        # A new map around the value is from outside, too; a step keeps its place in the file.
        new = (path[:n] for n in range(1, len(path)) if path[:n] not in locate.spans.values)
        within_step = any(isinstance(part, int) for part in path)
        locate.lay_over(path if within_step or not locate.spans.values else next(new, path), origin)


def _edit(parts: list[str | int], value: Any, tree: Tree) -> dict[str, Any] | None:
    """The edits of the list of steps in a path and its value, such as `transforms.remove=[random_flip]`, if any."""
    if parts[:1] != [STEPS] or not isinstance(tree.value.get(STEPS), list):
        return None
    if len(parts) == 1:
        return value if is_edit(value) else None
    return {str(parts[1]): value} if len(parts) == 2 and parts[1] in FORMS else None


def _parts(name: str) -> list[str | int]:
    parts: list[str | int] = []
    at = 0
    while at < len(name):
        match = _TOKEN.match(name, at)
        if match is None or bool(match[1]) != (bool(parts) and match[4] is None):
            raise _WrongPathError(f"invalid path `{name}`", "join keys with dots: `batch.size`, `transforms.random_flip.axis`")
        parts.append(int(match[4]) if match[4] is not None else next(t for t in (match[2], match[3], match[5]) if t is not None))
        at = match.end()
    return parts


def _value(given: Any, by: str, tree: Tree, out: Diagnostics) -> Any:
    """Converts a value to plain values; text from the command line is read as YAML."""
    if by != "--set":
        return plain(given, tree, out)
    text = str(given).strip()
    if text[:1] not in ("[", "{", "'", '"'):
        return resolve(text)
    found = Diagnostics()
    read = compose(f"value: {text}\n", by, found)
    if read is None or set(read.value) != {"value"} or found.has_errors:
        why = found.items[0].message if found.items else "it is more than one value"
        raise _WrongPathError(f"the value is not valid YAML: {why}", "text that begins with a bracket or a quote needs quotes of its own")
    return read.value["value"]


def _put(at: Any, parts: list[str | int], value: Any, path: KeyPath = ()) -> KeyPath:
    """Sets the value at a path in place, and adds missing maps on the way; returns its key path."""
    if isinstance(at, list):
        return _put_entry(at, parts, value, path)
    part, *rest = parts
    if isinstance(part, int):
        raise _no_list(path, part)
    if part in ("pipegen", "extends") and not path:  # which are read before
        raise _WrongPathError(f"`{part}` cannot be set from outside", "change it in the file")
    here = (*path, part)
    if rest:
        return _put(_inside(at, part, here, rest[0]), rest, value, here)
    at[part] = value
    return here


def _put_entry(entries: list[Any], parts: list[str | int], value: Any, path: KeyPath) -> KeyPath:
    """Sets the value in a list, of steps or of anything else."""
    part, *rest = parts
    index = _index(entries, part, path)
    here, name = (*path, index), step_name(entries[index]) if path != ("stages",) else None  # stages are maps of any number of keys
    numbered = isinstance(part, int) or part.isdigit()
    if numbered and not rest:
        entries[index] = value
        return here
    if name is None:
        return _put(_inside(entries, index, here, rest[0]), rest, value, here)
    if numbered and rest[0] == name:
        rest = rest[1:]
    here = (*here, name)
    arguments = arguments_of(entries, index, name)
    if rest:
        return _put(arguments, rest, value, here)
    if value is not None and not isinstance(value, dict):
        raise _WrongPathError(f"a step takes a map of arguments, got {show(value)}", "name the argument, too: `STEP.ARGUMENT=VALUE`")
    entries[index] = {name: value or {}}
    return here


def _inside(at: Any, key: str | int, path: KeyPath, following: str | int) -> Any:
    """The map or list at a key; replaces another value by an empty one."""
    inner = at.get(key) if isinstance(at, dict) else at[key]
    other_word = path in CHOICES and isinstance(inner, dict) and following not in inner
    if isinstance(inner, (dict, list)) and not other_word:
        return inner
    if isinstance(following, int):
        raise _no_list(path, following)
    at[key] = [] if key in _STEPS else {}
    return at[key]


def _no_list(path: KeyPath, entry: int) -> _WrongPathError:
    return _WrongPathError(f"`{format_path(path)}` is not a list, so it has no entry {entry}" if path else "a path begins with a section")


def _index(entries: list[Any], part: str | int, path: KeyPath) -> int:
    """The index of an entry, from its number or the id of a step."""
    where = f"`{format_path(path)}`"
    if isinstance(part, int) or part.isdigit():
        if int(part) >= len(entries):
            raise _WrongPathError(f"entry {part} of {where} is out of range: it has {len(entries)} entries, counted from 0")
        return int(part)
    ids = raw_ids(entries)
    if part in ids:
        return ids.index(part)
    listed = one_of(ids, "and") if any(ids) else "no steps"
    raise _WrongPathError(f"{where} has no `{part}`", *hints(part, ids, f"{where} has {listed}"))
