"""Follows advice: puts the lines of a help into a spec as its reader would."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

from pipegen.diagnostics.diagnostic import Diagnostics
from pipegen.ops.families.combining import CombiningTransform
from pipegen.ops.registry import transforms
from pipegen.spec.compose import compose

if TYPE_CHECKING:
    from pipegen.diagnostics.diagnostic import Advice, Diagnostic

Path = tuple[str | int, ...]


def parsed(lines: str) -> Any:
    """The lines as pipegen's own reader reads them."""
    out = Diagnostics()
    tree = compose("lines:\n" + "\n".join(f"  {line}" for line in lines.splitlines()), "x", out)
    assert tree is not None, (lines, [d.message for d in out])
    return tree.value["lines"]


def followed(spec: dict[str, Any], finding: Diagnostic, advice: Advice) -> dict[str, Any]:
    """The spec after a reader has followed the advice."""
    spec = copy.deepcopy(spec)
    path = within(spec, path_of(finding))
    item = next((path[: n + 1] for n in range(len(path) - 1, -1, -1) if isinstance(path[n], int)), None)
    if advice.into == "nothing" or advice.instead:
        # A step goes as a whole where the finding is about its name.
        remove(spec, item if item is not None and len(path) == len(item) + 1 else path)
    if advice.into == "value":
        put(spec, path, parsed(advice.lines))
    elif advice.into == "key":
        rename(spec, str(path[-1]), advice.lines)
    elif advice.into == "sections":
        spec |= parsed(advice.lines)
    elif advice.into == "source":
        slots = (path[:n] for n in range(len(path), 0, -1))
        put(spec, next(p for p in slots if p == ("source",) or p[-2:-1] == ("by_split",)), parsed(advice.lines))
    elif advice.into == "entry":
        remove(spec, path)
        merge(at(spec, path[:-1]), parsed("{" + advice.lines + "}"))
    elif advice.into in ("step", "before", "after"):
        assert item is not None, finding
        steps = parsed(advice.lines)
        here, n = at(spec, item[:-1]), int(item[-1])
        start, end = {"step": (n, n + 1), "before": (n, n), "after": (n + 1, n + 1)}[advice.into]
        here[start:end] = steps if isinstance(steps, list) else [steps]
    elif advice.into == "arguments":
        merge(arguments(spec, path), parsed("{" + advice.lines + "}"))
    elif advice.into == "spec":
        merge(spec, parsed(advice.lines))
    elif advice.into == "transforms":
        spec["transforms"] = sorted([*spec.get("transforms", []), *parsed(advice.lines)], key=rank)
    return spec


def rank(step: Any) -> int:
    """Where a step that is added to a list comes: a decoder first, what combines examples last."""
    name = step if isinstance(step, str) else next(iter(step))
    cls = transforms().get(name)
    return -1 if name == "decode" else int(cls is not None and issubclass(cls, CombiningTransform))


def path_of(finding: Diagnostic) -> Path:
    """The key path of the first label."""
    parts = re.findall(r"([^.\[\]]+)|\[(\d+)\]", finding.labels[0].path)
    return tuple(int(number) if number else name for name, number in parts)


def within(spec: Any, path: Path) -> Path:
    """The same path with names that stand in the spec with dots in them, such as `albumentations.Crop`, in one piece."""
    found: list[str | int] = []
    while path:
        names = [".".join(map(str, path[:n])) for n in range(len(path), 1, -1)] if isinstance(spec, dict) else []
        own = next((name for name in names if name in spec), path[0])
        path = path[str(own).count(".") + 1 if own in names else 1 :]
        spec = at(spec, (own,)) if has(spec, (own,)) else None
        found.append(own)
    return tuple(found)


def arguments(spec: Any, path: Path) -> dict[str, Any]:
    """The arguments that a place belongs to, those of a bare word among them."""
    if has(spec, path) and isinstance(at(spec, path), dict):
        inner: dict[str, Any] = at(spec, path)
        return inner
    for n in range(len(path), 0, -1):
        if isinstance(path[n - 1], int):
            step = at(spec, path[:n])
            if isinstance(step, str):
                put(spec, path[:n], {step: {}})
            ((op, given),) = at(spec, path[:n]).items()
            at(spec, path[:n])[op] = given or {}
            return arguments(spec, (*path[:n], op))
    return arguments(spec, path[:-1])


def rename(node: Any, old: str, new: str) -> None:
    """Renames a key everywhere, and where it is listed."""
    for key, inner in list(node.items() if isinstance(node, dict) else enumerate(node)):
        if isinstance(inner, (dict, list)):
            rename(inner, old, new)
        if isinstance(node, list) and inner == old:
            node[key] = new
    if isinstance(node, dict) and old in node:
        entries = {new if key == old else key: inner for key, inner in node.items()}
        node.clear()
        node.update(entries)


def at(spec: Any, path: Path) -> Any:
    for part in path:
        spec = spec[part]
    return spec


def has(spec: Any, path: Path) -> bool:
    try:
        at(spec, path)
    except (KeyError, IndexError, TypeError):
        return False
    return True


def put(spec: Any, path: Path, value: Any) -> None:
    if has(spec, path[:-1]) and not isinstance(at(spec, path[:-1]), (dict, list)):
        put(spec, path[:-1], value)  # a choice written as a word
    else:
        at(spec, path[:-1])[path[-1]] = value


def remove(spec: Any, path: Path) -> None:
    del at(spec, path[:-1])[path[-1]]


def merge(base: dict[str, Any], over: dict[str, Any]) -> None:
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict) and not _replaces(key, value, base[key]):
            merge(base[key], value)
        else:
            base[key] = value


def _replaces(key: str, value: dict[str, Any], base: dict[str, Any]) -> bool:
    """Whether a map takes another's place: a source of another kind, and sizes of splits, which have to add up."""
    return key == "parts" or (key == "source" and set(value) != set(base))
