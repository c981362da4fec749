"""`extends`: a spec merged over base specs.

Maps merge by key; lists and scalars replace; so does a choice whose word changes. A map as `transforms` edits the list of the
bases. Every value keeps its place, in whichever file that is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Applicability, Diagnostic, Diagnostics, Edit, Fix, Label, may_be_shown, says_so
from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.files import read_regular
from pipegen.frozen import dataclass
from pipegen.spec.compose import MAX_BYTES, compose, decode, needs_quotes, quoted
from pipegen.spec.models import PipelineSpec
from pipegen.spec.shared_bases import GitFile, PackageFile, package_file, parse, read_package_file
from pipegen.spec.source_map import KeyPath, Tree, format_path
from pipegen.spec.step_list import edited

_CHOICES = "source shuffle epoch splits.method splits.group errors.decode errors.missing runtime.cache runtime.shard runtime.prefetch"
CHOICES: frozenset[KeyPath] = frozenset(tuple(path.split(".")) for path in _CHOICES.split())
"""The places of choices: maps of one word with its arguments, whose words do not merge."""
_ENDINGS = (".pipegen.yaml", ".pipegen.yml")  # endings of names that only specs have
_LONGEST_CHAIN = 128  # the most files that a spec may be read from


@dataclass(slots=True)
class Files:
    """The files that a spec is read from: by the names in findings, their texts, and the absolute folders of their relative paths."""

    texts: dict[str, str] = field(default_factory=dict)
    folders: dict[str, Path] = field(default_factory=dict)
    shared: dict[str, Label] = field(default_factory=dict)  # bases in packages and repositories, with the first `extends` of each
    git: Callable[[GitFile, int], bytes] | None = None  # reads bases from git, with a limit of bytes; by default the nearest lock


def read_file(path: Path, file: str, files: Files, out: Diagnostics, at: Label | None = None) -> Tree | None:
    """Reads the tree of one file; `at` is the `extends` that names it.

    The caller names the first spec, which may be a pipe. Files reached from there, by `extends` or a link, are named by the
    author of a spec, who may be a stranger: only regular files are read, and nothing is shown of a file that is not a spec.
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
        return read_bytes(data, file, folder, files, out)
    return _read_guarded(data, file, folder, files, out, at or Label(None, path=file))


def read_bytes(data: bytes, file: str, folder: Path, files: Files, out: Diagnostics) -> Tree | None:
    """Reads the tree of a text in UTF-8 with the name `file`."""
    text = decode(data, file)
    if not isinstance(text, str):
        out.add(text)
        return None
    return read_text(text, file, folder, files, out)


def _read_guarded(data: bytes, file: str, folder: Path, files: Files, out: Diagnostics, at: Label) -> Tree | None:
    """Reads the tree of a spec; for another file, reports one finding without any of its content."""
    found, own = Diagnostics(most=out.most), Files()
    tree = read_bytes(data, file, folder, own, found)
    keys = tree.value.keys() if tree is not None else set[str]()
    only_sections = bool(keys) and keys <= {"extends", *PipelineSpec.model_fields}
    if says_so(data[:MAX_BYTES]) if tree is None else "pipegen" in keys or only_sections:
        files.texts |= own.texts
        files.folders |= own.folders
        out.extend(found.items)
        return tree
    span = next((d.span for d in found.items if d.span is not None), None)
    where = f": invalid at line {span.line}, column {span.column}" if tree is None and span is not None else ""
    help_ = "a spec is a map of sections in YAML that begins with `pipegen: 1`"
    out.add(make("PG110", f"{file} is not a spec{where}", at, help=help_))
    return None


def read_text(text: str, file: str, folder: Path, files: Files, out: Diagnostics) -> Tree | None:
    """Reads the tree of a text with the name `file`; findings show lines of it unless it is too long or binary."""
    if len(text) <= MAX_BYTES and may_be_shown(text.encode("utf-8", "surrogatepass")):
        files.texts[file] = text.removeprefix("\ufeff")
    files.folders[file] = folder
    return compose(text, file, out)


@dataclass(frozen=True, slots=True)
class _Base:
    """The origin of a layer."""

    name: str | None  # the name of the file in findings; `None` for a mapping
    path: Path | None  # the file; `None` for a mapping, and for a base from git
    folder: Path  # the folder of its relative paths; not used for a shared base, which may have none
    address: PackageFile | GitFile | None = None  # the address of a shared base

    @property
    def identity(self) -> str | None:
        """A name that is equal for equal files, by any path."""
        try:
            return os.path.realpath(self.path) if self.path is not None else self.name
        except ValueError:  # an invalid file name, which is reported by the reader
            return str(self.path)


def follow(tree: Tree, folder: Path, file: str | None, files: Files, out: Diagnostics) -> Tree:
    """Merges `tree` over its base specs, each over those before it."""
    layers = _Layers(files, out, folder)
    layers.add(tree, _Base(file, None if file is None else folder / Path(file).name, folder), ())
    result, *above = layers.found
    result.partial = layers.partial
    for layer in above:
        result = merge(result, edited(result, layer, out))
    result.value.pop("extends", None)
    return result


@dataclass(slots=True)
class _Layers:
    """A spec and all that it extends, the deepest base first, several bases in their order."""

    files: Files
    out: Diagnostics
    home: Path
    found: list[Tree] = field(default_factory=list)
    partial: bool = False
    _read: int = 1

    def add(self, tree: Tree, base: _Base, above: tuple[_Base, ...]) -> None:
        """Adds a layer after its bases; `above` are the layers that extend it."""
        bases = tree.value.get("extends")
        listed: list[tuple[KeyPath, Any]] = [(("extends", i), one) for i, one in enumerate(bases)] if isinstance(bases, list) else []
        for path, value in listed or [(("extends",), bases)] if "extends" in tree.value else []:
            at = Label(tree.spans.values.get(path), path=format_path(path))
            try:
                read = self._one(value, at, base, (*above, base))
            except OpError as problem:
                self.out.add(make(problem.code, problem.message, at, help=problem.lines))
                read = None
            self.partial |= read is None
            if read is not None:
                self.add(*read, (*above, base))
        self.found.append(tree)

    def _one(self, value: Any, at: Label, by: _Base, chain: tuple[_Base, ...]) -> tuple[Tree, _Base] | None:
        """Reads one base; `None`, with a finding, if it cannot be read. Raises `OpError` if it is not available."""
        if not isinstance(value, str) or not value:
            help_ = "such as `extends: base.pipegen.yaml`, or several: `extends: [base.pipegen.yaml, more.pipegen.yaml]`, later ones win"
            raise OpError("PG104", "`extends` is the path or the address of a spec, or a list of them", help=help_)
        base = _base(value, by)
        if base.identity in [known.identity for known in chain]:
            shown = " -> ".join(known.name for known in (*chain, base) if known.name is not None)
            raise OpError("PG109", f"`extends` goes in a circle: {shown}", help="remove `extends` from one of these files")
        if self._read >= _LONGEST_CHAIN:
            limit = "this limit protects against hostile specs"
            raise OpError("PG003", f"the chain of `extends` is longer than {_LONGEST_CHAIN} files", help=limit)
        self._read += 1
        tree = self._tree(base, at)
        return None if tree is None else (tree, base)

    def _tree(self, base: _Base, at: Label) -> Tree | None:
        name = str(base.name)
        if base.address is not None:
            self.files.shared.setdefault(name, at)
        if base.path is not None and (base.address is None or base.path.is_file()):
            return read_file(base.path, name, self.files, self.out, at)
        if isinstance(base.address, GitFile):
            if self.files.git is None:
                from pipegen.spec.lock_file import LockedTexts

                self.files.git = LockedTexts(self.home).text
            data = self.files.git(base.address, MAX_BYTES + 1)
        else:
            try:
                data = read_package_file(base.path or Path(name), MAX_BYTES + 1)
            except OSError as error:
                self.out.add(_unreadable(Path(name), name, error, at))
                return None
        read = read_bytes if name.endswith(_ENDINGS) else partial(_read_guarded, at=at)
        return read(data, name, base.folder, self.files, self.out)


def _base(value: str, by: _Base) -> _Base:
    """Resolves the base that `extends` names in a layer."""
    address = parse(value)
    if address is None and by.address is not None:
        address = by.address.beside(value)
    if isinstance(address, PackageFile):
        path = package_file(address)
        return _Base(str(address), path, path.parent, address)
    if address is not None:
        return _Base(str(address), None, by.folder, address)
    file = by.name
    name = value if os.path.isabs(value) or file is None else os.path.normpath(os.path.join(os.path.dirname(file), value))
    path = Path(os.path.abspath(by.folder / value))
    return _Base(name, path, path.parent)


def through_chain(found: Iterable[Diagnostic], files: Files) -> list[Diagnostic]:
    """Adds to findings in shared bases each `extends` on the way as a label; removes fixes, as these files cannot be edited."""

    def led(finding: Diagnostic) -> Diagnostic:
        labels, span = [*finding.labels], finding.span
        while span is not None and span.file in files.shared:
            labels.append(replace(files.shared[span.file], text="extended here"))
            span = labels[-1].span
        fixed = finding.fix is not None and any(edit.span.file in files.shared for edit in finding.fix.edits)
        return replace(finding, labels=tuple(labels), fix=None if fixed else finding.fix)

    return [led(finding) for finding in found] if files.shared else [*found]


def merge(base: Tree, over: Tree) -> Tree:
    """Merges `over` over `base`, which is changed."""
    taken: set[KeyPath] = set()
    base.value = overlay(base.value, over.value, (), taken)
    base.spans.replace(taken, over.spans)
    base.odd_keys.update(over.odd_keys)
    return base


def overlay(old: Any, new: Any, path: KeyPath, taken: set[KeyPath]) -> Any:
    """Merges `new` over `old`; adds the paths that are those of `new` alone to `taken`."""
    if not (isinstance(old, dict) and isinstance(new, dict)) or (path in CHOICES and old.keys() != new.keys()):
        taken.add(path)
        return new
    return old | {key: overlay(old.get(key), value, (*path, key), taken) for key, value in new.items()}


def _unreadable(path: Path, file: str, error: OSError | ValueError, at: Label | None) -> Diagnostic:
    code = "PG005" if at is None else "PG110"
    where = at if at is not None else Label(None, path=file)
    if not isinstance(error, FileNotFoundError):
        said = error.strerror if isinstance(error, OSError) else "invalid file name"
        reason = "it is a folder" if isinstance(error, IsADirectoryError) else (said or "unreadable")
        reason = reason[0].lower() + reason[1:]
        init = f"to write a first spec for a folder of images, run `pipegen init {file}`"
        help_ = (init,) if at is None and isinstance(error, IsADirectoryError) else ()
        return make(code, f"the spec {file} cannot be read: {reason}", where, help=help_)
    near = closest(path.name, _neighbours(path))
    help_ = (f"did you mean `{near}`?",) if near else (f"its full path is {os.path.abspath(path)}",)
    if at is None and "\n" in file:
        help_ = ("pass a path; for the text of a spec, pass the map: `yaml.safe_load(text)`",)
    fix = None
    if near and at is not None and at.span is not None:
        there = os.path.relpath(os.path.join(os.path.dirname(file), near), os.path.dirname(at.span.file) or ".")
        # Not safe: a file with a similar name is another spec.
        fix = Fix(f"extend `{there}`", (Edit(at.span, quoted(there) if needs_quotes(there) else there),), Applicability.SUGGESTION)
    return make(code, f"the spec {file} does not exist", where, help=help_, fix=fix)


def _neighbours(path: Path) -> list[str]:
    try:
        return sorted(p.name for p in path.parent.iterdir() if p.suffix in (".yaml", ".yml"))[:1000]
    except OSError:
        return []
