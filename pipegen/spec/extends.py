"""`extends`: a spec laid over a base spec. Maps merge by key; lists and scalars replace; a choice whose word changes replaces.

Every value keeps the place it came from, in whichever file that is.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Applicability, Diagnostic, Diagnostics, Edit, Fix, Label
from pipegen.diagnostics.lines import may_be_shown, says_so
from pipegen.diagnostics.suggest import closest
from pipegen.regular import read_regular
from pipegen.spec.compose import MAX_BYTES, compose, decode
from pipegen.spec.models import PipelineSpec
from pipegen.spec.scalars import needs_quotes, quoted
from pipegen.spec.source_map import KeyPath, Tree

CHOICES: frozenset[KeyPath] = frozenset(
    {
        ("source",),
        ("shuffle",),
        ("epoch",),
        ("splits", "method"),
        ("splits", "group"),
        ("errors", "decode"),
        ("runtime", "cache"),
        ("runtime", "shard"),
        ("runtime", "prefetch"),
    }
)
"""Where a map is a word with its arguments, so that two words never stand side by side."""
_ENDINGS = (".pipegen.yaml", ".pipegen.yml")
"""Names that only specs have."""
_LONGEST_CHAIN = 128
"""Files that a spec may be spread over."""


@dataclass(slots=True)
class Files:
    """The texts of the files that a spec is read from, by the names that findings show, and the absolute folders that relative paths in
    them are relative to."""

    texts: dict[str, str] = field(default_factory=dict)
    folders: dict[str, Path] = field(default_factory=dict)


def read_file(path: Path, file: str, files: Files, out: Diagnostics, at: Label | None = None) -> Tree | None:
    """Reads the tree of one file; `at` is the `extends` that asks for it.

    Whoever calls names the first spec, which may come from a pipe. What is reached from there, by `extends` or a link, was named by
    the author of a spec, who may be a stranger: only a regular file is read, and if it is no spec, nothing of it is shown.
    """
    try:
        if at is None:
            with path.open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
        else:
            data = read_regular(path, MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        out.add(_unreadable(path, file, error, at))
        return None
    folder = Path(os.path.abspath(path)).parent
    if (at is None and not path.is_symlink()) or os.path.realpath(path).endswith(_ENDINGS):
        return _read_bytes(data, file, folder, files, out)
    return _read_guarded(data, file, folder, files, out, at or Label(None, path=file))


def _read_bytes(data: bytes, file: str, folder: Path, files: Files, out: Diagnostics) -> Tree | None:
    text = decode(data, file)
    if not isinstance(text, str):
        out.add(text)
        return None
    return read_text(text, file, folder, files, out)


def _read_guarded(data: bytes, file: str, folder: Path, files: Files, out: Diagnostics, at: Label) -> Tree | None:
    """Reads the tree of a file that is a spec; of another, reports one finding that says nothing of what is in it."""
    found, own = Diagnostics(most=out.most), Files()
    tree = _read_bytes(data, file, folder, own, found)
    if says_so(data[:MAX_BYTES]) if tree is None else _is_spec(tree.value):
        files.texts |= own.texts
        files.folders |= own.folders
        out.extend(found.items)
        return tree
    span = next((d.span for d in found.items if d.span is not None), None)
    where = f": line {span.line}, column {span.column} is no YAML of a spec" if tree is None and span is not None else ""
    help_ = ("a spec is a map of sections in YAML that says `pipegen: 1`",)
    out.add(make("PG110", f"{file} is not a spec{where}", at, help=help_))
    return None


def _is_spec(value: dict[str, Any]) -> bool:
    """Returns whether a map is meant to be a spec: it says so, or has nothing but sections."""
    return "pipegen" in value or (bool(value) and value.keys() <= {"extends", *PipelineSpec.model_fields})


def read_text(text: str, file: str, folder: Path, files: Files, out: Diagnostics) -> Tree | None:
    """The tree of a text that findings call `file`; of a text too long, or not made of characters, they show no line."""
    if len(text) <= MAX_BYTES and may_be_shown(text.encode("utf-8", "surrogatepass")):
        files.texts[file] = text.removeprefix("\ufeff")
    files.folders[file] = folder
    return compose(text, file, out)


def follow(tree: Tree, folder: Path, file: str | None, files: Files, out: Diagnostics) -> Tree:
    """`tree` laid over its base specs, however many."""
    chain = [] if file is None else [os.path.realpath(folder / Path(file).name)]
    shown = [] if file is None else [file]
    layers = [tree]
    while "extends" in layers[-1].value:
        at = Label(layers[-1].spans.values.get(("extends",)), path="extends")
        base = _base(layers[-1].value["extends"], at, folder, file, out)
        if base is None:
            return _merged(layers, partial=True)
        path, name = base
        if os.path.realpath(path) in chain:
            help_ = ("one of these files must stand alone",)
            out.add(make("PG109", f"`extends` goes in a circle: {' -> '.join([*shown, name])}", at, help=help_))
            return _merged(layers, partial=True)
        if len(layers) >= _LONGEST_CHAIN:
            help_ = ("pipegen reads no longer chain, so that a hostile one ends quickly",)
            out.add(make("PG003", f"the chain of `extends` is longer than {_LONGEST_CHAIN} files", at, help=help_))
            return _merged(layers, partial=True)
        chain.append(os.path.realpath(path))
        shown.append(name)
        read = read_file(path, name, files, out, at)
        if read is None:
            return _merged(layers, partial=True)
        layers.append(read)
        folder, file = path.parent, name
    return _merged(layers, partial=False)


def _base(value: Any, at: Label, folder: Path, file: str | None, out: Diagnostics) -> tuple[Path, str] | None:
    if not isinstance(value, str) or not value:
        out.add(make("PG104", "`extends` is the path of one spec", at, help=("a chain is built by letting that spec extend another",)))
        return None
    if value.startswith("pkg:"):
        help_ = ("extend a file for now: `extends: base.pipegen.yaml`",)
        out.add(make("PG190", "`extends: pkg:…` comes with a later version of pipegen", at, help=help_))
        return None
    name = value if os.path.isabs(value) or file is None else os.path.normpath(os.path.join(os.path.dirname(file), value))
    return Path(os.path.abspath(folder / value)), name


def _merged(layers: list[Tree], *, partial: bool) -> Tree:
    result = layers[-1]
    for layer in reversed(layers[:-1]):
        result = merge(result, layer)
    result.value.pop("extends", None)
    result.partial = partial
    return result


def merge(base: Tree, over: Tree) -> Tree:
    """`over` laid over `base`; `base` is used up."""
    taken: set[KeyPath] = set()
    base.value = _overlay(base.value, over.value, (), taken)
    base.spans.take_over(over.spans, taken)
    base.odd_keys.update(over.odd_keys)
    return base


def _overlay(old: Any, new: Any, path: KeyPath, taken: set[KeyPath]) -> Any:
    """`new` laid over `old`; the paths that are the new one's alone go into `taken`."""
    changed_word = path in CHOICES and isinstance(old, dict) and isinstance(new, dict) and set(old) != set(new)
    if not (isinstance(old, dict) and isinstance(new, dict)) or changed_word:
        taken.add(path)
        return new
    result = dict(old)
    for key, value in new.items():
        at = (*path, key)
        if key in old:
            result[key] = _overlay(old[key], value, at, taken)
        else:
            taken.add(at)
            result[key] = value
    return result


def _unreadable(path: Path, file: str, error: OSError | ValueError, at: Label | None) -> Diagnostic:
    code = "PG005" if at is None else "PG110"
    where = at if at is not None else Label(None, path=file)
    if not isinstance(error, FileNotFoundError):
        said = error.strerror if isinstance(error, OSError) else "no file can have that name"
        reason = "it is a folder" if isinstance(error, IsADirectoryError) else (said or "unreadable")
        reason = reason[0].lower() + reason[1:]
        init = f"for a folder of images, `pipegen init {file}` writes a first spec"
        help_ = (init,) if at is None and isinstance(error, IsADirectoryError) else ()
        return make(code, f"the spec {file} cannot be read: {reason}", where, help=help_)
    near = closest(path.name, _neighbours(path))
    help_ = (f"did you mean `{near}`?",) if near else (f"{path} does not exist",)
    if at is None and "\n" in file:
        help_ = ("a path is due here; for the text of a spec, pass the map: `yaml.safe_load(text)`",)
    fix = None
    if near and at is not None and at.span is not None:
        there = os.path.relpath(os.path.join(os.path.dirname(file), near), os.path.dirname(at.span.file) or ".")
        # Another file is another spec, however near its name.
        fix = Fix(f"extend `{there}`", (Edit(at.span, quoted(there) if needs_quotes(there) else there),), Applicability.SUGGESTION)
    return make(code, f"there is no spec {file}", where, help=help_, fix=fix)


def _neighbours(path: Path) -> list[str]:
    try:
        return sorted(p.name for p in path.parent.iterdir() if p.suffix in (".yaml", ".yml"))[:1000]
    except OSError:
        return []
