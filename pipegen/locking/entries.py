"""The entries of a lock: what a spec depends on, what has changed since, and how they are written."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipegen.cache.store import tensorflow_version
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import is_address
from pipegen.files import write_whole
from pipegen.locking.function_hashes import distribution_of, function_source, python_functions
from pipegen.release import __version__
from pipegen.spec.changes import meaning_changes
from pipegen.spec.extends import through_chain
from pipegen.spec.lock_file import Data, Entry, Lock, Pin, digest, text_path
from pipegen.spec.shared_bases import BaseProblem, GitFile, PackageFile, parse
from pipegen.spec.spec_hash import meaning
from pipegen.spec.steps import ids_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pipegen.data.manifest import Manifest
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.phases.specs import Learned, Spec


def entry_of(spec: Spec, lock: Path, data: Data | None = None, learned: Iterable[Learned] = ()) -> Entry:
    """Makes the entry of a spec: its texts by their paths from the lock, and all else that decides its numbers.

    Args:
        spec: The spec.
        lock: The path of the lock, which need not exist yet.
        data: Its data, from `data_of`, if it is known.
        learned: The statistics that its steps have learned, if they are known.
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


_HEAD = "# Written by `pipegen lock`, to be committed. `pipegen lock --check` says what has moved since; do not edit it by hand.\n"


_LISTED = ("texts", "packages", "fitted")
"""Keys whose maps have a line for each name."""


class _Lines(dict[str, Any]):
    """A map written line by line."""


class _Line(list[Any]):
    """A list written on one line, if it fits."""


def lock_text(lock: Lock) -> str:
    """Formats a lock as YAML: sections in a fixed order, names sorted, a line for each small value."""
    from pipegen.spec.runtime_fix import Dumper as Plain
    from pipegen.spec.runtime_fix import to_yaml

    class Dumper(Plain):
        """A dumper with representers of its own."""

    Dumper.add_representer(_Lines, lambda dumper, value: dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=False))
    Dumper.add_representer(_Line, lambda dumper, value: dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=True))
    git = {place: _plain(pin) for place, pin in sorted(lock.git.items())}
    specs = {name: _plain(entry) for name, entry in sorted(lock.specs.items())}
    values: dict[str, Any] = {"pipegen_lock": lock.pipegen_lock, **({"git": git} if git else {}), "specs": specs}
    return _HEAD + to_yaml(values, Dumper, width=140, default_flow_style=None)


def _plain(part: Pin | Entry) -> dict[str, Any]:
    """Converts a part to plain values, without empty ones."""
    values = part.model_dump(mode="json")
    if "transforms" in values.get("meaning", {}):
        values["meaning"]["transforms"] = [_Line(step) for step in values["meaning"]["transforms"]]
    if values.get("data") is not None:
        values["data"] = {key: value for key, value in values["data"].items() if value is not None}
    return {key: _Lines(value) if key in _LISTED else value for key, value in values.items() if value not in ({}, None)}


def write_lock(path: Path, lock: Lock) -> bool:
    """Writes a lock if its text changed; returns true if it did. Raises `OSError` if it cannot be written."""
    text = lock_text(lock)
    with suppress(OSError, UnicodeDecodeError):  # missing or unreadable
        if path.read_text(encoding="utf-8") == text:
            return False
    put_file(path, text.encode())
    return True


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
