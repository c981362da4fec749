"""Faults in the bytes of every container: each is found, does no harm, or is one that `docs/sources.md` says the format cannot tell."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import damage
import pytest
from damage import CONTAINERS, NOT_ATTACKED, Container, draw_fault, keeps_index

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from pipegen.phases.specs import Spec

pytestmark = pytest.mark.tf

PROGRAM = "import test_fault_injection as t; t.attack(*t.sys.argv[1:])"


# What comes of a folder, in the process that reads it


def spec_of(source: dict[str, Any]) -> dict[str, Any]:
    """A spec that reads every feature of a source, in its order."""
    from pipegen.ops.registry import sources

    ((op, arguments),) = source.items()
    names = [name for name, _ in sources()[op].model_validate(arguments).infer().items()]
    y = next(name for name in ("boxes", "label", "point") if name in names)
    spec: dict[str, Any] = {"pipegen": 1, "source": source, "transforms": [{"resize": {"size": damage.SIDE}}], "shuffle": "none"}
    spec |= {"batch": {"size": damage.COUNT, "remainder": "keep"}, "runtime": {"cache": "none", "jit": "never"}}
    return spec | {"output": {"x": {name: name for name in names if name != y}, "y": y}}


class Seen(NamedTuple):
    """What was read: the findings, the names of classes, and the values of each feature in the order of the records."""

    findings: frozenset[tuple[str, str]]
    classes: tuple[str, ...]
    values: dict[str, np.ndarray[Any, Any]]

    def same(self, other: Seen) -> bool:
        import numpy as np

        alike = self.classes == other.classes and self.values.keys() == other.values.keys()
        return alike and all(np.array_equal(values, other.values[name]) for name, values in self.values.items())

    def records(self) -> list[bytes]:
        """Each record as bytes, less its label, which is the last."""
        return [b"\0".join(repr(values[row].tolist()).encode() for values in self.values.values()) for row in range(self.count)]

    @property
    def count(self) -> int:
        return len(next(iter(self.values.values())))


class Told(Exception):
    """An error that a user would see, as text. One of the listing points at the source in the spec."""

    def __init__(self, text: str, listing: bool = False) -> None:
        super().__init__(text)
        self.listing = listing


def collected(spec: Spec) -> Any:
    """Lists the data; returns the manifest and the findings that `build` logs.

    Raises:
        Told: Where the data cannot be used.
    """
    from pipegen.data.collect import collect
    from pipegen.diagnostics.diagnostic import Severity

    found = collect(spec.model, locate=spec.loaded.locate.label, base=spec.loaded.base)
    texts = frozenset((d.code, f"{d.message} {d.help}") for d in found.diagnostics.items if d.severity is not Severity.INFO)
    if found.manifest is None:
        raise Told("; ".join(text for _, text in sorted(texts)), listing=True)
    return found.manifest, texts


def stored(spec: Spec) -> Seen:
    """Reads what is stored, operation by operation: a tenth of the time that a pipeline takes."""
    import tensorflow as tf

    from pipegen.backend.reading.records import RecordTensors, records_from
    from pipegen.phases.compilation import bind

    manifest, findings = collected(spec)
    read = bind(spec, manifest).plans["train"].read
    count = manifest.num_examples("train")
    tensors = RecordTensors(records_from(manifest, "train", read, spec.model.runtime))
    if any(t.encoded for _, t in read.items()) and manifest.listing.in_files:
        rows = [tensors.read(tf.constant(row, tf.int64), read) for row in range(count)]
        values = {name: tf.stack([row[name] for row in rows]) for name in rows[0]}
    else:
        values = tensors.read(tf.range(count, dtype=tf.int64), read)
    return Seen(findings, manifest.class_names, {name: value.numpy() for name, value in values.items()})


def trained(spec: Spec) -> Seen:
    """Reads what a model would see.

    Raises:
        Told: As a pipeline says it.
    """
    import numpy as np
    import tensorflow as tf

    import pipegen
    from pipegen.errors import DataError, SpecError

    try:
        pipe = pipegen.build(spec)
        batches = [{str(i): part.numpy() for i, part in enumerate(tf.nest.flatten(batch))} for batch in pipe.dataset("train", epoch=0)]
    except (SpecError, DataError) as error:
        raise Told(str(error), isinstance(error, SpecError)) from None
    values = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    return Seen(collected(spec)[1], pipe.class_names, values)


def validated(spec: Spec, raw: dict[str, Any]) -> frozenset[tuple[str, str]]:
    """What `pipegen validate --data=all` says."""
    from pipegen.cli.checking import DataRequest, check_data
    from pipegen.diagnostics.diagnostic import Severity
    from pipegen.phases.compilation import inspect

    found, _ = check_data(inspect(raw), spec, DataRequest(None, None))
    return frozenset((d.code, f"{d.message} {d.help}") for d in found if d.severity is not Severity.INFO)


def difference(whole: Seen, found: Seen) -> str:
    """What differs, in one word: that of a column of the table on `docs/sources.md`."""
    wanted, got = Counter(whole.records()), Counter(found.records())
    if found.count != whole.count:
        return "added" if found.count > whole.count else "gone"
    return "content" if wanted != got or whole.classes != found.classes else "order"


class Reading:
    """A container as it was before anything happened to it, with which damaged copies are compared."""

    def __init__(self, container: Container, pristine: Path) -> None:
        from pipegen import load

        self.container, self.pristine = container, pristine
        self.source = container.source(pristine)
        copy = pristine.parent / "whole" / "data"
        shutil.copytree(pristine, copy)
        self.raw = self._raw(copy)
        spec = load(self.raw)
        self.stored, self.trained, self.validated = stored(spec), trained(spec), validated(spec, self.raw)
        shutil.rmtree(copy.parent)

    def _raw(self, folder: Path) -> dict[str, Any]:
        text = json.dumps(self.source).replace(str(self.pristine), str(folder))
        return spec_of(json.loads(text))

    def outcome(self, folder: Path, fault: damage.Fault, draw: random.Random) -> tuple[str, str]:
        """Damages a copy and reads it; returns where it differs, and `told`, `same`, or what is wrong."""
        from pipegen import load

        shutil.copytree(self.pristine, folder)
        raw = self._raw(folder)
        if keeps_index(fault.how):
            collected(load(raw))
        where = damage.damage(folder, fault, draw)
        try:
            return where, self._judged(load(raw), raw, fault)
        except Told as told:
            return where, "told" if told.listing or str(folder) in str(told) else f"names no file: {told}"
        except Exception as error:
            return where, f"crash: {type(error).__name__}: {str(error)[:300]}"

    def _judged(self, spec: Spec, raw: dict[str, Any], fault: damage.Fault) -> str:
        """What comes of a damaged copy, unless an error does."""
        from pipegen.errors import DataError

        said = collected(spec)[1]
        if self._new(said, self.stored.findings):
            return "told"
        try:
            found = stored(spec)
            if found.same(self.stored):
                return self._unread(fault)
        except Told:
            raise
        except Exception as error:  # what TensorFlow raises outside of a pipeline has no file in it
            if isinstance(error, DataError):
                raise Told(str(error)) from None
        seen = trained(spec)
        if seen.same(self.trained):
            return self._unread(fault)
        if self._new(validated(spec, raw), self.validated):
            return "told by validate"
        return f"silent: {difference(self.trained, seen)}"

    def _new(self, said: frozenset[tuple[str, str]], before: frozenset[tuple[str, str]]) -> bool:
        return not {code for code, _ in said} <= {code for code, _ in before}

    def _unread(self, fault: damage.Fault) -> str:
        """The same records; but what another file, joined to this one, holds is lost."""
        return "silent: behind" if fault.how in ("garbage behind", "a copy behind") else "same"


def attack(name: str, pristine: str, first: str, last: str) -> None:
    """Lets faults happen to copies of a container, one after another; prints what came of each."""
    reading = Reading(CONTAINERS[name], Path(pristine))
    print(json.dumps({"ready": True}), flush=True)
    for case in range(int(first), int(last)):
        draw = random.Random(f"{name}/{case}")
        fault = draw_fault(Path(pristine), draw)
        print(json.dumps({"case": case, "fault": str(fault)}), flush=True)
        folder = Path(pristine).parent / str(case) / "data"
        start = time.monotonic()
        where, outcome = reading.outcome(folder, fault, draw)
        print(json.dumps({"case": case, "where": where, "outcome": outcome, "s": round(time.monotonic() - start, 3)}), flush=True)
        shutil.rmtree(folder.parent, ignore_errors=True)


def show(name: str, case: int) -> None:
    """Repeats one case, and prints what comes of it; the damaged copy stays."""
    folder = Path(tempfile.mkdtemp()) / "data"
    folder.mkdir()
    CONTAINERS[name].write(folder)
    draw = random.Random(f"{name}/{case}")
    fault = draw_fault(folder, draw)
    copy = folder.parent / str(case) / "data"
    print(fault, *Reading(CONTAINERS[name], folder).outcome(copy, fault, draw), copy, sep="\n")
