"""The entries of a lock: what a spec depends on (functions and packages are found without running code), changes since, and the file."""

from __future__ import annotations

import ast
import json
import os
from contextlib import suppress
from importlib.machinery import PathFinder
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pipegen.cache.store import tensorflow_version
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, is_address
from pipegen.files import write_whole
from pipegen.ops.families.custom import CustomTransform
from pipegen.release import __version__
from pipegen.spec.changes import meaning_changes
from pipegen.spec.extends import through_chain
from pipegen.spec.lock_file import Data, Entry, FunctionSource, Lock, Pin, digest, text_path
from pipegen.spec.shared_bases import BaseProblem, GitFile, PackageFile, find_top, package_file, parse, search_path
from pipegen.spec.spec_hash import meaning
from pipegen.spec.steps import ids_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pipegen.data.manifest import Manifest
    from pipegen.ops.transform import Transform
    from pipegen.phases.specs import Learned, Spec
    from pipegen.spec.models import PipelineSpec


def entry_of(spec: Spec, lock: Path, data: Data | None = None, learned: Iterable[Learned] = ()) -> Entry:
    """Makes the entry of a spec: its texts by their paths from the lock, which need not exist yet, and all else that decides its numbers.

    `data` is the result of `data_of`, and `learned` what its steps have learned, if these are known.
    """
    texts = {entry_name(name, lock): digest(text.encode("utf-8", "surrogatepass")) for name, text in spec.loaded.texts.items()}
    addresses = [parse(name) for name in spec.loaded.texts if is_address(name)]
    functions = {name: function_source(name) for name in python_functions(spec.model)}
    return Entry(
        hash=spec.hash,
        texts=dict(sorted(texts.items())),
        packages=dict(sorted(distribution_of(address) for address in addresses if isinstance(address, PackageFile))),
        functions={name: source for name, source in sorted(functions.items()) if source is not None},
        data=data,
        fitted=numbers_of(spec, learned),
        versions={name: version for name, version in (("pipegen", __version__), ("tensorflow", tensorflow_version())) if version},
        meaning=json.loads(json.dumps(meaning(spec.model))),
    )


def numbers_of(spec: Spec, learned: Iterable[Learned]) -> dict[str, str]:
    """Hashes what steps have learned, by their ids and the features."""
    ids = ids_of(spec.model.transforms)
    return {f"{ids[found.step]}.{found.feature}": digest(found.numbers.to_bytes({})) for found in learned}


def data_of(manifest: Manifest, content: str | None = None) -> Data:
    """Describes listed data; `content` is the `content_digest` of its bytes."""
    counts = {split: manifest.num_examples(split) for split in manifest.splits}
    return Data(fingerprint=manifest.split_fingerprint, examples=counts, classes=len(manifest.class_names), content=content)


def unfound_functions(spec: Spec) -> list[str]:
    """Lists the functions of a spec whose source is not found, so that a lock cannot cover them."""
    return [name for name in python_functions(spec.model) if function_source(name) is None]


def entry_name(file: str, lock: Path) -> str:
    """The name of a spec, or of a text, in a lock: its path relative to the lock, or its address."""
    return file if is_address(file) else os.path.relpath(os.path.abspath(file), lock.parent).replace(os.sep, "/")


MOVED, ALIKE = "PG531", "PG534"
"""The findings: something changed; something changed, but means the same."""
_AGAIN = "if that is meant, run `pipegen lock` with this spec and commit the lock"
_SHOWN = {"pipegen": "pipegen", "tensorflow": "TensorFlow"}


def differences(spec: Spec, old: Entry, new: Entry) -> list[Diagnostic]:
    """Makes a finding for each change; data and statistics that `new` lacks are not compared."""
    where = spec.loaded.locate.label
    changes = meaning_changes(old.meaning, new.meaning)[0] if old.hash != new.hash else []
    meaning = [c for c in changes if c.kind in ("numbers", "perhaps")]
    texts = [*_texts(old, new)]
    places = [where(() if change.gone else change.path) for change in meaning]
    found = [make(MOVED, f"since the lock, {c}", at, help=(c.whole_effect, *texts, _AGAIN)) for c, at in zip(meaning, places, strict=True)]
    if not meaning:
        found += [make(ALIKE, f"{what}, and the spec means the same", where(()), help=(_AGAIN,)) for what in texts]
    moved = [*_functions(spec, old, new), *_data(old.data, new.data)]
    for name in old.fitted.keys() & new.fitted.keys():
        if old.fitted[name] != new.fitted[name]:
            step, _, feature = name.rpartition(".")
            moved.append(f"the numbers that `{step}` has learned from `{feature}` differ")
    found += [make(MOVED, what, where(()), help=(_AGAIN,)) for what in moved]
    precision = "from version to version numbers agree to rounding, and within one to the bit"
    for name, version in old.versions.items():
        if (here := new.versions.get(name, version)) != version:
            what = f"{_SHOWN.get(name, name)} went from {version} to {here}"
            found.append(make(ALIKE, what, where(()), help=(precision, _AGAIN)))
    return through_chain(found, spec.loaded.locate.files)


def _texts(old: Entry, new: Entry) -> Iterator[str]:
    for name in dict.fromkeys([*old.texts, *new.texts]):
        if name not in new.texts:
            yield f"{name} is no longer a part of it"
        elif name not in old.texts:
            yield f"{name} is a new part of it"
        elif old.texts[name] != new.texts[name]:
            yield f"the text of {name} differs"
    for name in old.packages.keys() & new.packages.keys():
        if old.packages[name] != new.packages[name]:
            yield f"the package {name} went from {old.packages[name] or 'no version'} to {new.packages[name] or 'no version'}"


def _functions(spec: Spec, old: Entry, new: Entry) -> Iterator[str]:
    named = python_functions(spec.model)
    for name, source in old.functions.items():
        here = new.functions.get(name)
        if here is None and name in named:
            yield f"the source of the function `{name}` is not found here"
        elif here is not None and here.function != source.function:
            yield f"the source of the function `{name}` differs"
        elif here is not None and here.module != source.module:
            yield f"the module of the function `{name}` differs, though the function's own lines are the same"


def _data(old: Data | None, new: Data | None) -> Iterator[str]:
    if old is None or new is None:
        return
    if old.fingerprint != new.fingerprint:
        counts = [
            f"split `{split}` has {new.examples.get(split, 0):,} examples and had {old.examples.get(split, 0):,}"
            for split in dict.fromkeys([*old.examples, *new.examples])
            if old.examples.get(split, 0) != new.examples.get(split, 0)
        ]
        if old.classes != new.classes:
            counts.append(f"there are {new.classes:,} classes and were {old.classes:,}")
        yield "the data differs: " + ("; ".join(counts) or "there are as many examples, but names, sizes or rows differ")
    elif None not in (old.content, new.content) and old.content != new.content:
        yield "the data differs: names and sizes are the same, but the contents of files are not"


_HOPS = 8  # the most modules that a function may be imported through


def python_functions(spec: PipelineSpec) -> list[str]:
    """Lists the functions that the steps of a spec call, in all stages of training, as `module:function`."""

    def called(steps: Iterable[Transform]) -> Iterator[str]:
        for step in steps:
            if isinstance(step, CustomTransform):
                yield step.function
            yield from called(step.inner_steps())

    return list(dict.fromkeys(name for one in (spec, *(stage.resolved for stage in spec.stages)) for name in called(one.transforms)))


def function_source(function: str) -> FunctionSource | None:
    """Hashes a function's lines and its module; `None` if the source is not found.

    Looks where `import` would look, and in the working directory, and follows names that a module imports from another one. The module
    counts, too, since the function may call other code in it.
    """
    module, _, name = function.partition(":")
    for _ in range(_HOPS):
        path = _module_path(module)
        if path is None:
            return None
        try:
            text = path.read_bytes()
            tree = ast.parse(text)
        except (OSError, SyntaxError, ValueError):
            return None
        node = next((node for node in reversed(tree.body) if name in _defines(node)), None)
        if isinstance(node, ast.ImportFrom):
            package = module if path.name == "__init__.py" else module.rpartition(".")[0]
            above = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (above, node.module) if part)
            name = next(alias.name for alias in node.names if (alias.asname or alias.name) == name)
            continue
        parts = [] if node is None else [*getattr(node, "decorator_list", ()), node]
        lines = [ast.get_source_segment(text.decode(errors="replace"), part) or "" for part in parts]
        return FunctionSource(function=digest("\n".join(lines).encode()) if lines else None, module=digest(text))
    return None


def _defines(node: ast.stmt) -> Iterator[str]:
    """Yields the names that a statement at the top of a module binds."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in node.names)
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def _module_path(module: str) -> Path | None:
    """Finds the source of a module by its top-level name, so that packages on the way are not run."""
    top, *below = module.split(".")
    spec = find_top(top) or PathFinder.find_spec(top, [os.getcwd()])
    if spec is None:
        return None
    if not below and spec.origin is not None and spec.origin.endswith(".py"):
        return Path(spec.origin)
    for folder in spec.submodule_search_locations or ():
        place = Path(folder, *below)
        for path in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
            if path.is_file():
                return path
    return None


_LISTS = ("RECORD", "SOURCES.txt", "installed-files.txt")  # lists of a distribution's files; the name depends on the installer


def distribution_of(address: PackageFile) -> tuple[str, str | None]:
    """Finds the distribution of a base: its name and version; else the package's name and `None`.

    Reads only the metadata beside the package and, if that does not list the file, the metadata of editable installs.
    """
    path = package_file(address)
    site = search_path(address, path)
    listed = path.relative_to(site).as_posix()
    for found in distributions(path=[str(site)]):
        for name in _LISTS:
            lines = (found.read_text(name) or "").splitlines()
            if any(line.partition(",")[0].strip('"').removeprefix("../") == listed for line in lines):
                return found.name, found.version
    for found in distributions():
        with suppress(ValueError):
            said = json.loads(found.read_text("direct_url.json") or "{}")
            source = urlsplit(said.get("url", "")) if said.get("dir_info", {}).get("editable") else None
            if source is not None and source.scheme == "file" and path.is_relative_to(unquote(source.path)):
                return found.name, found.version
    return address.place.partition(".")[0], None


_HEAD = "# Written by `pipegen lock`, to be committed. `pipegen lock --check` says what has moved since; do not edit it by hand.\n"


_LISTED = ("texts", "packages", "fitted")  # keys whose maps have a line for each name


class _Lines(dict[str, Any]):
    """A map written line by line."""


class _Line(list[Any]):
    """A list written on one line, if it fits."""


def write_lock(path: Path, lock: Lock) -> bool:
    """Writes a lock in a stable order if its text changed; returns true if it did. Raises `OSError` if it cannot be written."""
    from pipegen.spec.runtime_fix import Dumper as Plain
    from pipegen.spec.runtime_fix import to_yaml

    class Dumper(Plain):
        """A dumper with representers of its own."""

    Dumper.add_representer(_Lines, lambda dumper, value: dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=False))
    Dumper.add_representer(_Line, lambda dumper, value: dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=True))
    git = {place: _plain(pin) for place, pin in sorted(lock.git.items())}
    specs = {name: _plain(entry) for name, entry in sorted(lock.specs.items())}
    values: dict[str, Any] = {"pipegen_lock": lock.pipegen_lock, **({"git": git} if git else {}), "specs": specs}
    text = _HEAD + to_yaml(values, Dumper, width=140, default_flow_style=None)
    with suppress(OSError, UnicodeDecodeError):  # missing or unreadable
        if path.read_text(encoding="utf-8") == text:
            return False
    put_file(path, text.encode())
    return True


def _plain(part: Pin | Entry) -> dict[str, Any]:
    """Converts a part to plain values, without empty ones."""
    values = part.model_dump(mode="json")
    if "transforms" in values.get("meaning", {}):
        values["meaning"]["transforms"] = [_Line(step) for step in values["meaning"]["transforms"]]
    if values.get("data") is not None:
        values["data"] = {key: value for key, value in values["data"].items() if value is not None}
    return {key: _Lines(value) if key in _LISTED else value for key, value in values.items() if value not in ({}, None)}


def put_file(path: Path, data: bytes) -> None:
    """Writes a file atomically, and makes its folder; raises `OSError` if it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, data)


def drop_texts(path: Path, old: Mapping[str, Pin], new: Mapping[str, Pin]) -> None:
    """Removes the kept texts that a lock no longer names, and the folders that they leave empty."""
    gone = {*_kept(path, old)} - {*_kept(path, new)}
    for kept in gone:
        kept.unlink(missing_ok=True)
        for folder in kept.parents:
            if folder == path.parent or any(folder.iterdir()):
                break
            folder.rmdir()


def _kept(path: Path, git: Mapping[str, Pin]) -> Iterator[Path]:
    for place, pin in git.items():
        for file in pin.texts:
            with suppress(BaseProblem):  # a malformed line, edited by hand
                address = parse(f"{place}#{file}")
                if isinstance(address, GitFile):
                    yield text_path(path, address, pin.commit)
