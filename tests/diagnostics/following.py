"""Follows advice: puts the lines of a help into a spec as its reader would."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

from pipegen.diagnostics.diagnostic import Diagnostics
from pipegen.spec.compose import compose

if TYPE_CHECKING:
    from pipegen.diagnostics.advice import Advice
    from pipegen.diagnostics.diagnostic import Diagnostic

Path = tuple[str | int, ...]


def parsed(lines: str) -> Any:
    """The lines as pipegen's own reader reads them."""
    out = Diagnostics()
    tree = compose(
        f"lines:\n  {lines.strip()}" if "\n" not in lines else "lines:\n" + "\n".join(f"  {x}" for x in lines.splitlines()), "x", out
    )
    assert tree is not None, (lines, [d.message for d in out])
    return tree.value["lines"]


def path_of(finding: Diagnostic, spec: Any) -> Path:
    """The key path of the first label, along keys that may hold dots."""
    parts: list[str | int] = []
    for name, number in re.findall(r"([^.\[\]]+)|\[(\d+)\]", finding.labels[0].path):
        parts.append(int(number) if number else name)
    return tuple(parts)


def followed(spec: dict[str, Any], finding: Diagnostic, advice: Advice) -> dict[str, Any]:
    """The spec after a reader has followed the advice."""
    spec = copy.deepcopy(spec)
    path = path_of(finding, spec)
    item = next((path[: n + 1] for n in range(len(path) - 1, -1, -1) if isinstance(path[n], int)), None)
    into = advice.into
    if into == "nothing" or advice.instead:
        remove(
            spec,
            item if item is not None and len(path) == len(item) + 1 and not isinstance(at(spec, item), dict) else gone(spec, path, item),
        )
    if into == "value":
        put(spec, path, parsed(advice.lines))
    elif into == "source":
        slot = next(path[:n] for n in range(len(path), 0, -1) if path[:n] == ("source",) or path[max(n - 2, 0) : n - 1] == ("by_split",))
        put(spec, slot, parsed(advice.lines))
    elif into == "entry":
        remove(spec, path)
        merge(at(spec, path[:-1]), parsed("{" + advice.lines + "}"))
    elif into in ("step", "before", "after"):
        assert item is not None, finding
        steps = parsed(advice.lines)
        steps = steps if isinstance(steps, list) else [steps]
        here = at(spec, item[:-1])
        n = int(item[-1])
        here[n + (into == "after") : n + (into != "before")] = steps
    elif into == "arguments":
        merge(arguments(spec, path), parsed("{" + advice.lines + "}"))
    elif into == "spec":
        merge(spec, parsed(advice.lines))
    elif into == "transforms":
        steps = parsed(advice.lines)
        first = [s for s in steps if "decode" in s]
        here = spec.setdefault("transforms", [])
        here[:] = [*first, *here, *(s for s in steps if s not in first)]
    return spec


def gone(spec: Any, path: Path, item: Path | None) -> Path:
    """What goes: the step as a whole where the finding is about its name, else the entry."""
    return item if item is not None and len(path) == len(item) + 1 else path


def arguments(spec: Any, path: Path) -> dict[str, Any]:
    """The arguments that a place belongs to, those of a bare word among them."""
    if isinstance(path[-1], str) and has(spec, path) and isinstance(at(spec, path), dict):
        return at(spec, path)
    for n in range(len(path), 0, -1):
        if isinstance(path[n - 1], int):
            step = at(spec, path[:n])
            if isinstance(step, str):
                put(spec, path[:n], {step: {}})
            (op,) = at(spec, path[:n])
            if at(spec, path[:n])[op] is None:
                at(spec, path[:n])[op] = {}
            return at(spec, path[:n])[op]
    return at(spec, path[:-1])


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
        if isinstance(value, dict) and isinstance(base.get(key), dict) and not (key == "source" and set(value) != set(base[key])):
            merge(base[key], value)
        else:
            base[key] = value
