"""Writes the compiled datasets of a spec into a folder that needs TensorFlow alone: a SavedModel for each split, and what it is."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.datasets.saved import save_dataset
from pipegen.backend.running.lowered import one_by_one
from pipegen.diagnostics.diagnostic import Severity
from pipegen.errors import SpecError
from pipegen.phases.compilation import optimise
from pipegen.phases.ejection import ejection_findings
from pipegen.release import __version__
from pipegen.views.eject_readme import ABOUT, readme
from pipegen.whole_files import whole_place

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipegen.backend.datasets.engine import Engine
    from pipegen.backend.running.execute import Executor
    from pipegen.data.manifest import Manifest
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.phases.specs import CompiledSpec
    from pipegen.plan.nodes import Plan

_NUMBERS = re.compile(r"\[\n\s*(?:\d+|null)(?:,\n\s*(?:\d+|null))*\n\s*\]")
"""Finds a list of numbers over several lines, such as a shape, in JSON."""


@dataclass(frozen=True)
class Ejected:
    """Holds what was written.

    Attributes:
        path: The folder, or the file of code.
        splits: The splits in it.
        remarks: What stays behind.
    """

    path: str
    splits: tuple[str, ...]
    remarks: tuple[Diagnostic, ...] = ()


def uncached(compiled: CompiledSpec, split: str) -> Plan:
    """Returns the compiled plan of a split that gives the same without a cache."""
    manifest = compiled.manifest
    count, size = manifest.num_examples(split), manifest.mean_bytes(split) or None
    return optimise(compiled.spec.model, compiled.plans[split], num_examples=count, file_bytes=size, cache=False).plan


def lowered_executor(compiled: CompiledSpec, engine: Engine, split: str) -> Executor:
    """Returns what runs a split without a cache, one example at a time where it works on single ones."""
    return engine.executor_of(one_by_one(uncached(compiled, split)), split, engine.shard)


def eject_graph(
    compiled: CompiledSpec,
    engine: Engine,
    folder: str | os.PathLike[str],
    splits: Sequence[str],
    progress: Callable[[int], None] | None = None,
) -> Ejected:
    """Writes SavedModels; for the arguments see `Pipeline.eject`.

    Raises:
        SpecError: With a finding for each thing that cannot go.
        FileExistsError: When the folder is not empty.
        OSError: When it cannot be written.
    """
    found = ejection_findings(compiled.spec, compiled.manifest, {split: compiled.splits[split].plan for split in splits})
    if any(finding.severity is Severity.ERROR for finding in found):
        raise SpecError(found)
    target = Path(os.fspath(folder)).absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileExistsError(17, "it exists, and is not an empty folder", str(folder))
    with whole_place(target, new=True) as made:
        made.mkdir()
        _write(compiled, engine, made, splits, progress)
    return Ejected(str(folder), tuple(splits), tuple(found))


def _write(compiled: CompiledSpec, engine: Engine, folder: Path, splits: Sequence[str], progress: Callable[[int], None] | None) -> None:
    model, manifest = compiled.spec.model, compiled.manifest
    in_place = any(reader.in_place for part in manifest.by_part().values() for reader in part.listing.readers.values())
    root = "" if in_place else data_root(manifest)
    about: dict[str, Any] = {
        "version": 1,
        "name": model.name,
        "spec_hash": compiled.spec.hash,
        "fingerprint": manifest.fingerprint,
        "pipegen": __version__,
        "tensorflow": tf.version.VERSION,
        "root": root,
        "in_place": in_place,
        "class_names": list(manifest.class_names),
        "splits": {},
    }
    for number, split in enumerate(splits):
        executor = engine.executor_of(uncached(compiled, split), split, engine.shard)
        spec = save_dataset(executor, str(folder / split), None if in_place else root)
        about["splits"][split] = {
            "examples": manifest.num_examples(split),
            "steps": executor.steps,
            "batch": model.batch.size,
            "shard": list(engine.shard),
            "element_spec": element_json(spec),
        }
        if progress is not None:
            progress(number + 1)
    text = _NUMBERS.sub(lambda found: " ".join(found[0].split()).replace("[ ", "[").replace(" ]", "]"), json.dumps(about, indent=2))
    (folder / ABOUT).write_text(f"{text}\n", encoding="utf-8")
    (folder / "README.md").write_text(readme(about), encoding="utf-8", errors="surrogateescape")


def data_root(manifest: Manifest) -> str:
    """Returns the innermost folder that holds every file of the data; an empty text where there is none, or there are no files."""
    if not manifest.listing.in_files:
        return ""
    columns = (manifest.listing.files(), *(one.paths for one in manifest.listing.beside.values()))
    # The first and the last in the order of their characters have in common what all have.
    folders = [os.path.dirname(file) for files in columns if len(files) for file in (min(files), max(files))]
    return os.path.commonpath(folders).removesuffix("/") if folders else ""


def element_json(spec: Any) -> Any:
    """Returns the types of a batch as JSON: `{"dtype", "shape"}` of a tensor, `{"tuple": […]}` or `{"dict": {…}}` of several."""
    if isinstance(spec, dict):
        return {"dict": {name: element_json(part) for name, part in spec.items()}}
    if isinstance(spec, (tuple, list)):
        return {"tuple": [element_json(part) for part in spec]}
    return {"dtype": spec.dtype.name, "shape": spec.shape.as_list()}
