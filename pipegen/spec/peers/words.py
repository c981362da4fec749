"""The equivalents of steps of other libraries, with their arguments by name or by position."""

from __future__ import annotations

import inspect
import pkgutil  # ten times faster to import than `importlib.resources`
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

import yaml

from pipegen.diagnostics.suggest import plain, rows
from pipegen.frozen import dataclass
from pipegen.spec.expect import is_long
from pipegen.spec.peers.converting import Steps, Unsuited, made, only, same, without
from pipegen.spec.templates import accepts

OF_IMAGES, OF_SERIES = ("keras", "torchvision", "albumentations"), ("tsaug",)
OF_SOUND = ("audiomentations", "torchaudio", "librosa", "keras_sound")
LIBRARIES = (*OF_IMAGES, *OF_SOUND, *OF_SERIES)
_PREFIXES = {
    "keras": ("layers",), "torchvision": ("transforms", "v2", "t"), "albumentations": ("a",), "audiomentations": (),
    "torchaudio": ("transforms", "t"), "librosa": ("feature", "effects"), "keras_sound": ("keras", "layers"), "tsaug": (),
}  # fmt: skip
"""Other prefixes of a library's steps in code."""


@dataclass(frozen=True)
class Meaning:
    """The equivalent of a step of one library."""

    library: str  # the library's name
    steps: tuple[dict[str, Any], ...] = ()  # the steps of a spec; none without an equivalent
    remark: str = ""  # a small or apparent difference
    differs: bool = False  # whether it is a difference
    why: str = ""  # the difference, without an equivalent
    about: str = ""  # the argument with the difference, if it is one
    value: Any = None  # the value of that argument
    nearest: dict[str, Any] | None = None  # the nearest step, without an equivalent
    lacking: tuple[str, ...] = ()  # missing arguments without a default; the steps are then an example
    strange: tuple[str, ...] = ()  # arguments that the library's step does not have
    arguments: tuple[str, ...] = ()  # the arguments of the library's step


def meanings(word: str, given: Any) -> list[Meaning]:
    """The meanings of a word with these arguments in each library; those whose arguments fit best, if they differ."""
    last = word.rpartition(".")[2]
    found = [_meaning(library, last, given) for library in _having(word)]
    fewest = min(((len(one.strange), bool(one.lacking)) for one in found), default=(0, False))
    return [one for one in found if (len(one.strange), bool(one.lacking)) == fewest]


def meaning_in(library: str, name: str, arguments: Mapping[str, Any]) -> Meaning | None:
    """The meaning of a library's step with these arguments by name; `None` for an unknown step."""
    return _meaning(library, name, dict(arguments)) if plain(name) in _functions(library) else None


def is_elsewhere(word: str) -> bool:
    """Tests if a word is a step of one of the libraries."""
    return bool(_having(word))


def with_argument(argument: str, value: Any) -> list[Meaning]:
    """The meanings of all steps of the libraries with an argument of this name, given that argument alone; those of sound and of series
    last."""
    letters = plain(argument)
    found = [_meaning(library, name, {argument: value}) for library in LIBRARIES for name in _taking(library).get(letters, ())]
    return sorted((one for one in found if one.steps), key=lambda one: (one.library not in OF_IMAGES, bool(one.lacking)))


def shown_arguments(library: str, name: str) -> dict[str, Any]:
    """The arguments shown on the pages for a step of a library."""
    return {own: value for (arguments,) in _rows(library, "shown", name) for own, value in yaml.safe_load(arguments).items()}


def _having(word: str) -> list[str]:
    """The libraries that have a word as a class; those of sound and of series only if no library of images has it. A lower-case word, such
    as `rotate`, is not a class."""
    before, _, last = word.rpartition(".")
    if not before and last.islower() and ("_" not in last or rows(last, "step")):
        return []
    parts = [plain(part) for part in before.split(".")]
    named = [library for library in LIBRARIES if not before or library in parts or parts[-1] in _PREFIXES[library]]
    found = [library for library in named if plain(last) in _functions(library)]
    return [library for library in found if library in OF_IMAGES] or found


def _module(library: str) -> Any:
    return import_module(f"pipegen.spec.peers.{library}")


@cache
def _table(library: str) -> Mapping[str, Mapping[str, list[list[str]]]]:
    """The rows of a library's table, by their kind and the letters of the step."""
    text = (pkgutil.get_data("pipegen.spec.peers", f"{library}.txt") or b"").decode()
    found: dict[str, dict[str, list[list[str]]]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            kind, name, *rest = line.split(" | ")
            found.setdefault(kind, {}).setdefault(plain(name), []).append(rest)
    return found


def _rows(library: str, kind: str, name: str) -> list[list[str]]:
    """The rows of one kind about a step."""
    return _table(library).get(kind, {}).get(plain(name), [])


@cache
def _functions(library: str) -> Mapping[str, Callable[..., Steps]]:
    """The conversion of each step of a library by its letters: of its table, and of its module."""
    module, table = _module(library), _table(library)
    kinds = (("same", same), ("made", made), ("without", without))
    rows = {name: make(*row) for kind, make in kinds for name, (row,) in table.get(kind, {}).items()}
    own = {name: value for name, value in vars(module).items() if inspect.isfunction(value) and value.__module__ == module.__name__}
    return rows | {plain(name): value for name, value in own.items() if not name.startswith("_")}


@cache
def _parameters(library: str, name: str) -> list[inspect.Parameter]:
    return list(inspect.signature(_functions(library)[name]).parameters.values())


@cache
def _taking(library: str) -> Mapping[str, list[str]]:
    """The names of a library's steps by the letters of each of their arguments."""
    found: dict[str, list[str]] = {}
    for name in _functions(library):
        for letters in dict.fromkeys(plain(p.name) for p in _parameters(library, name)):
            found.setdefault(letters, []).append(name)
    return found


def _meaning(library: str, name: str, given: Any) -> Meaning:
    """The meaning of a library's step; a list is the first argument if that has an equivalent, else all arguments in order."""
    parameters = [p for p in _parameters(library, plain(name)) if p.name != "about" and p.kind is p.POSITIONAL_OR_KEYWORD]
    names = [p.name for p in parameters]
    if isinstance(given, dict) or given is None or not names:
        return _named(library, name, parameters, given or {})
    first = _named(library, name, parameters, {names[0]: given})
    if not isinstance(given, list) or (first.steps and not first.lacking) or not 1 < len(given) <= len(names):
        return first
    several = _named(library, name, parameters, dict(zip(names, given, strict=False)))
    return several if several.steps or first.lacking else first


def _named(library: str, name: str, parameters: list[inspect.Parameter], given: Any) -> Meaning:
    module, function = _module(library), _functions(library)[plain(name)]
    remark = next((text for (text,) in _rows(library, "remark", name)), "")
    note = next((text for (text,) in _rows(library, "note", name)), "")
    known = {plain(p.name): p.name for p in parameters}
    named = {plain(str(key)): (str(key), value) for key, value in (given if isinstance(given, dict) else {}).items()}
    ignored = {plain(name) for name in module.IGNORED}
    strange = tuple(written for key, (written, _) in named.items() if known and key not in known and key not in ignored)
    own = {known[key]: value for key, (_, value) in named.items() if key in known}
    lacking = tuple(p.name for p in parameters if p.default is p.empty and p.name not in own)
    made = Meaning(
        module.TITLE, remark=remark or note, differs=bool(remark), lacking=lacking, strange=strange, arguments=tuple(known.values())
    )
    long = next((name for name, value in own.items() if is_long(value)), None)
    if long is not None:
        return replace(made, why="its value is too long to be said again", about=long)
    try:
        used = {**shown_arguments(library, name), **own} if lacking else own
        values = {p.name: p.default for p in parameters} | used
        for about, allowed, why in _rows(library, "only", name):
            only(about, values[about], *yaml.safe_load(allowed), why=why)
        steps = function(**used)
    except Unsuited as error:
        return replace(made, why=error.why, about=error.about, value=own.get(error.about), nearest=error.nearest)
    except (TypeError, ValueError, AttributeError, IndexError, KeyError, ArithmeticError):
        return replace(made, why="the library does not take these values", about=next(iter(own), ""), value=next(iter(own.values()), None))
    found = tuple(steps) if isinstance(steps, list) else (steps,)
    if not all(accepts(*next(iter(one.items()))) for one in found):
        ops = " and ".join(f"`{next(iter(one))}`" for one in found)
        return replace(made, why=f"{ops} would not take what they mean", about=next(iter(own), ""), value=next(iter(own.values()), None))
    return replace(made, steps=found)
