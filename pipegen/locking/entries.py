"""Describes what a spec is made of, as a lock writes it down."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pipegen.cache.key import tensorflow_version
from pipegen.diagnostics.paths import is_address
from pipegen.locking.functions import function_source, python_functions
from pipegen.locking.packages import distribution_of
from pipegen.release import __version__
from pipegen.spec.bases.address import PackageFile, parse
from pipegen.spec.bases.lock_file import Data, Entry, digest
from pipegen.spec.spec_hash import meaning
from pipegen.spec.steps import ids_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipegen.data.manifest import Manifest
    from pipegen.phases.specs import Learned, Spec


def entry_of(spec: Spec, lock: Path, data: Data | None = None, learned: Iterable[Learned] = ()) -> Entry:
    """Describes a spec: its texts by their paths from the lock, and whatever else decides its numbers.

    Args:
        spec: The spec.
        lock: Where the lock is, or will be.
        data: What `data_of` says of its data, where that is known.
        learned: What its steps have learned, where that is known.
    """
    texts = {_name(name, lock): digest(text.encode("utf-8", "surrogatepass")) for name, text in spec.loaded.texts.items()}
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
    """Describes listed data; `content` is what `content_digest` says of its bytes."""
    counts = {split: manifest.num_examples(split) for split in manifest.splits}
    return Data(fingerprint=manifest.split_fingerprint, examples=counts, classes=len(manifest.class_names), content=content)


def unfound_functions(spec: Spec) -> list[str]:
    """Returns the functions that a spec names and whose source is not found, so that no lock holds them."""
    return [name for name in python_functions(spec.model) if function_source(name) is None]


def entry_name(file: str, lock: Path) -> str:
    """The name of a spec in a lock: its path from there."""
    return _name(file, lock)


def _name(file: str, lock: Path) -> str:
    return file if is_address(file) else os.path.relpath(os.path.abspath(file), lock.parent).replace(os.sep, "/")
