"""Faults in the bytes of every container: each is found, does no harm, or is one that `docs/sources.md` says the format cannot tell."""

from __future__ import annotations

import io
import json
import os
import random
import re
import shutil
import sys  # noqa: F401 - programs of the processes ask for it
import tarfile
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import copies
import damage
import pytest
from damage import CONTAINERS, NOT_ATTACKED, Container, draw_fault, keeps_index, spec_of

import pipegen
from pipegen.errors import DataError

if TYPE_CHECKING:
    import numpy as np

    from pipegen.phases.specs import Spec

    Codes = frozenset[str]

pytestmark = pytest.mark.tf

CASES = len(damage.FAULTS)
"""Faults that happen to each container by night: more than 5,000 in all."""
BY_DAY = 1
"""And by day, to those that are written in no time."""
LIMIT = 120
"""Seconds that one case may take, on a machine that is busy."""
PAGE = Path(__file__).parents[1] / "docs" / "sources.md"
NOT_TOLD: dict[str, dict[str, str]] = {
    "tar": {"damage in contents": "content", "members at the very end": "gone"},
    "ZIP": {},
    "TFRecord": {"a file truncated": "gone", "two files joined": "added"},
    "TFRecord, gzip": {"a missing or added gzip member": "added"},
    "MDS": {"without `index.json`: a missing shard": "", "without hashes in it": "content"},
    "ArrayRecord": {"a file joined": "behind"},
    "files and folders": {"a missing file": "gone", "damage in values": "content", "bytes after the array": "behind"},
    "Arrow": {"damage in values": "content"},
    "Hugging Face": {"missing records of a saved dataset": "", "damage in values": "content"},
    "HDF5": {"rows of a contiguous dataset": "", "a numbered source": "", "damage in values": "content"},
    "Zarr": {"a lost chunk": "", "damage in values": "content", "bytes after the end": "behind"},
    "SQLite": {"a `-wal` file": "", "above 1 GiB": "", "damage in values": "content"},
    "LMDB": {"damage in values": "content", "a replaced value": "", "bytes after the last page": "behind"},
    "Parquet": {"damage in values": "content"},
    "CSV, JSON lines": {"a file truncated": "gone", "a stray quote": "", "damage in cells": "content"},
    "Excel": {"rows that were deleted": ""},
    "`.npy`, `.npz`": {"damage in values": "content"},
    "TensorFlow Datasets": {"damage in the names": "content"},
    "annotations": {"annotations that were never written": "content", "damage in names": "content"},
    "SQL, data frames": {"rows that the query": "", "damage in values": "content"},
    "prepared stores": {},
    "sets of shards": {"without such names: a missing shard": ""},
}
"""What the table on `docs/sources.md` says that a format cannot tell: how each clause begins, and what differs where that happens to the
containers here; nothing where it does not happen to them."""
BY = {"gone": r": (cut|gone)", "added": ": a copy behind"}
"""The faults that may take records away, or add some, where the page says that."""
SILENT = "silent: "
NAMED = re.compile(r"cannot (read|decode|process) \S+\.\w+|/data/")
"""How an error names a record or a file."""


# What comes of a folder, in the process that reads it


class Seen(NamedTuple):
    """What was read: the codes of findings, the names of classes, and the values of each feature in the order of the records."""

    findings: Codes
    classes: tuple[str, ...]
    values: dict[str, np.ndarray[Any, Any]]

    def same(self, other: Seen) -> bool:
        import numpy as np

        alike = self.classes == other.classes and self.values.keys() == other.values.keys()
        return alike and all(np.array_equal(values, other.values[name]) for name, values in self.values.items())

    def records(self) -> list[str]:
        """Each record as text."""
        return [repr(row) for row in zip(*(values.tolist() for values in self.values.values()), strict=True)]

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
    warned = [d for d in found.diagnostics.items if d.severity is not Severity.INFO]
    if found.manifest is None:
        raise Told("; ".join(d.message for d in warned), listing=True)
    return found.manifest, frozenset(d.code for d in warned)


def stored(spec: Spec) -> Seen:
    """Reads what is stored, operation by operation: a tenth of the time that a pipeline takes."""
    import tensorflow as tf

    from pipegen.backend.reading.split_records import RecordTensors, records_from
    from pipegen.phases.compilation import bind

    manifest, findings = collected(spec)
    read = bind(spec, manifest).plans["train"].read
    count = manifest.num_examples("train")
    tensors = RecordTensors(records_from(manifest, "train", read, spec.model.runtime))
    values = {name: tf.stack(each) for name, each in tensors.read_each(tf.range(count, dtype=tf.int64), read, count).items()}
    return Seen(findings, manifest.class_names, {name: value.numpy() for name, value in values.items()})


def trained(spec: Spec) -> Seen:
    """Reads what a model would see.

    Raises:
        Told: As a pipeline says it.
    """
    import numpy as np
    import tensorflow as tf

    from pipegen.errors import SpecError

    try:
        pipe = pipegen.build(spec)
        batches = [{str(i): part.numpy() for i, part in enumerate(tf.nest.flatten(batch))} for batch in pipe.dataset("train", epoch=0)]
    except (SpecError, DataError) as error:
        raise Told(str(error), isinstance(error, SpecError)) from None
    values = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    return Seen(collected(spec)[1], pipe.class_names, values)


def validated(spec: Spec, raw: dict[str, Any]) -> Codes:
    """What `pipegen validate --data=all` says."""
    from pipegen.cli.checking import check_data
    from pipegen.diagnostics.diagnostic import Severity
    from pipegen.phases.compilation import inspect
    from pipegen.spec.allowed import CHECKED

    found, _ = check_data(inspect(raw, allowed=CHECKED), spec, None)
    return frozenset(d.code for d in found if d.severity is not Severity.INFO)


def _failures() -> tuple[type[Exception], ...]:
    """What a pipeline translates to an error that names the file."""
    import tensorflow as tf

    return tf.errors.OpError, DataError, ValueError, OSError


def difference(whole: Seen, found: Seen) -> str:
    """What differs, in one word."""
    if found.count != whole.count:
        return "added" if found.count > whole.count else "gone"
    return "content" if Counter(found.records()) != Counter(whole.records()) or found.classes != whole.classes else "order"


class Reading:
    """A container as it was before anything happened to it, with which damaged copies are compared.

    Args:
        container: What it is.
        pristine: The folder that it was written to.
        quick: Read only what is stored, and build no pipelines.
    """

    def __init__(self, container: Container, pristine: Path, quick: bool = False) -> None:
        self.pristine, self.quick = pristine, quick
        self.source = container.source(pristine)
        copy = pristine.parent / "whole" / "data"  # since reading may write
        shutil.rmtree(copy, ignore_errors=True)  # of a process that ended
        shutil.copytree(pristine, copy)
        self.raw = self._raw(copy)
        self.spec = loaded(self.raw)
        self.stored = stored(self.spec)

    @cached_property
    def trained(self) -> Seen:
        return trained(self.spec)

    @cached_property
    def validated(self) -> Codes:
        return validated(self.spec, self.raw)

    def _raw(self, folder: Path) -> dict[str, Any]:
        text = json.dumps(self.source).replace(str(self.pristine), str(folder))
        return spec_of(json.loads(text))

    def outcome(self, folder: Path, fault: damage.Fault, draw: random.Random) -> tuple[str, str]:
        """Damages a copy and reads it; returns where it differs, and `told`, `same`, or what is wrong."""
        shutil.copytree(self.pristine, folder)
        raw = self._raw(folder)
        if keeps_index(fault.how):
            collected(loaded(raw))
        where = damage.damage(folder, fault, draw)
        try:
            return where, self._judged(loaded(raw), raw, fault)
        except Told as told:
            return where, "told" if told.listing or NAMED.search(str(told)) else f"names nothing: {told}"
        except Exception as error:
            return where, f"crash: {type(error).__name__}: {str(error)[:300]}"

    def _judged(self, spec: Spec, raw: dict[str, Any], fault: damage.Fault) -> str:
        """What comes of a damaged copy, unless an error does."""
        if collected(spec)[1] - self.stored.findings:
            return "told"
        try:
            found = stored(spec)
        except Told:
            raise
        except Exception as error:  # in words of TensorFlow or of a library: those of a pipeline decide
            if self.quick:
                return "told" if isinstance(error, _failures()) else f"crash: {error!r}"
        else:
            if self.quick or found.same(self.stored):
                return self._difference(self.stored, found, fault)
        seen = trained(spec)
        if not seen.same(self.trained) and validated(spec, raw) - self.validated:
            return "told by validate"
        return self._difference(self.trained, seen, fault)

    def _difference(self, whole: Seen, found: Seen, fault: damage.Fault) -> str:
        if not found.same(whole):
            return f"{SILENT}{difference(whole, found)}"
        # The same records: but what another file, joined to this one, holds is lost.
        return f"{SILENT}behind" if fault.how in ("garbage behind", "a copy behind") else "same"


def loaded(raw: dict[str, Any]) -> Spec:
    """Loads a spec, whose snapshot of a query may lie beside the data."""
    return pipegen.load(raw, allow_write=["/"])


def attack(name: str, pristine: str, first: str, last: str) -> None:
    """Lets faults happen to copies of a container, one after another; prints what came of each."""
    _attack(Reading(CONTAINERS[name], Path(pristine)), name, range(int(first), int(last)))


def sample(folder: str) -> None:
    """Does so with a few faults of each container, and builds no pipelines."""
    for name, container in CONTAINERS.items():
        if not name.startswith("prepared") and not (container.library and find_spec(container.library) is None):
            pristine = Path(folder) / name / "data"
            pristine.mkdir(parents=True)
            container.write(pristine)
            _attack(Reading(container, pristine, quick=True), name, range(BY_DAY))


def _attack(reading: Reading, name: str, cases: range) -> None:
    assert name.split(",")[0] in reading.source, "a container is called as its source"
    for case in cases:
        draw = random.Random(f"{name}/{case}")
        fault, folder = draw_fault(reading.pristine, case, draw), reading.pristine.parent / str(case) / "data"
        print(json.dumps({"case": f"{name}/{case}", "fault": str(fault)}), flush=True)
        where, outcome = reading.outcome(folder, fault, draw)
        print(json.dumps({"case": f"{name}/{case}", "where": where, "outcome": outcome}), flush=True)
        shutil.rmtree(folder.parent)


def show(name: str, case: int) -> None:
    """Repeats one case, and prints what comes of it; the damaged copy stays."""
    folder = Path(tempfile.mkdtemp()) / "data"
    folder.mkdir()
    CONTAINERS[name].write(folder)
    draw = random.Random(f"{name}/{case}")
    fault = draw_fault(folder, case, draw)
    copy = folder.parent / str(case) / "data"
    print(fault, *Reading(CONTAINERS[name], folder).outcome(copy, fault, draw), copy, sep="\n")


# The tests


class Case(NamedTuple):
    """A fault, and what came of it."""

    name: str
    fault: str
    outcome: str

    @property
    def kind(self) -> str:
        """What differs silently, if anything."""
        return self.outcome.removeprefix(SILENT) if self.outcome.startswith(SILENT) else ""


def cases_of(program: str, *argv: str, kept: Path) -> tuple[list[Case], int]:
    """Runs a program that prints cases, in a process of its own; returns them, and how the process ended. It is killed where one takes too
    long."""
    own = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": own, "XDG_CACHE_HOME": str(kept)}
    copy, size, since = copies.Copy(f"import test_fault_injection as t; {program}", *argv, env=environment), 0, time.monotonic()
    while copy.poll() is None:
        if len(copy.written("stdout")) > size:
            size, since = len(copy.written("stdout")), time.monotonic()
        if time.monotonic() - since > LIMIT:
            copy.kill()
        time.sleep(0.05)
    lines = [json.loads(line) for line in copy.written("stdout").splitlines() if line.startswith("{")]
    assert lines, copy.written("stderr")[-2000:]
    faults = {line["case"]: line["fault"] for line in lines if "fault" in line}
    outcomes = {line["case"]: line for line in lines if "outcome" in line}
    ended = copy.wait(1)
    lost = {"where": "", "outcome": f"crash: the process ended with {ended}: {copy.written('stderr')[-300:]}"}
    found = [(name, fault, outcomes.get(name, lost)) for name, fault in faults.items()]
    return [Case(name, f"{fault}, {about['where']}", about["outcome"]) for name, fault, about in found], ended


def attacked(name: str, folder: Path) -> list[Case]:
    """Every case of a container; another process goes on where one has ended."""
    pristine, found = folder / "data", list[Case]()
    pristine.mkdir(parents=True)
    CONTAINERS[name].write(pristine)
    while len(found) < CASES:
        found += cases_of("t.attack(*t.sys.argv[1:])", name, str(pristine), str(len(found)), str(CASES), kept=folder / "kept")[0]
    return found


def table() -> dict[str, list[str]]:
    """What `docs/sources.md` says that each format cannot tell, clause by clause."""
    section = PAGE.read_text(encoding="utf-8").partition("## Damage that formats do not detect\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return {name: [] if said == "–" else said.split("; ") for name, _, said in rows[1:]}


def permitted(row: str) -> set[str]:
    """Returns what may differ silently in containers of a format."""
    found = {*NOT_TOLD[row].values()} - {""}
    return found | ({"order"} if "content" in found else set())


def permits(case: Case) -> bool:
    """Tells whether the page says that such a case is not told. Records are lost or added by few faults alone, and in a tar archive only at
    its very end."""
    row = CONTAINERS[case.name.rpartition("/")[0]].row
    if case.kind in permitted(row) and row == "tar" and case.kind == "gone":
        place = re.search(r"zeroed, bytes \d+ to (\d+) of (\d+)", case.fault)
        return place is not None and int(place[1]) >= int(place[2]) - damage.END
    return case.kind in permitted(row) and (case.kind not in BY or re.search(BY[case.kind], case.fault) is not None)


def unexpected(cases: list[Case]) -> list[Case]:
    """Those that crash, and those in which something is lost without a word that the page does not list."""
    return [case for case in cases if case.outcome not in ("told", "told by validate", "same") and not permits(case)]


def test_every_source_is_attacked_or_says_why_not() -> None:
    from pipegen.ops.registry import sources

    assert {name.split(",")[0] for name in CONTAINERS} | NOT_ATTACKED.keys() == set(sources())
    assert len(CONTAINERS) * CASES >= 5000


def test_what_may_be_lost_is_what_the_page_says() -> None:
    found = table()
    assert found.keys() == NOT_TOLD.keys()
    assert {container.row for container in CONTAINERS.values()} == NOT_TOLD.keys() - {"sets of shards"}
    for row, clauses in found.items():
        own = [[begin for begin in NOT_TOLD[row] if clause.startswith(begin)] for clause in clauses]
        assert own == [[begin] for begin in NOT_TOLD[row]], f"the clauses of {row}: {clauses}"


@pytest.mark.nightly
def test_a_few_faults_of_each_container_are_found_or_do_no_harm(tmp_path: Path) -> None:
    cases, ended = cases_of("t.sample(*t.sys.argv[1:])", str(tmp_path), kept=tmp_path / "kept")
    # What only a checksum or a decoder finds is looked for by night.
    assert [case for case in unexpected(cases) if case.kind not in ("content", "order")] == []
    assert ended == 0
    assert sum(case.outcome == "told" for case in cases) > len(cases) / 2


@pytest.mark.nightly
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("row", sorted({container.row for container in CONTAINERS.values()}))
def test_nothing_is_lost_but_what_the_page_says(row: str, tmp_path: Path) -> None:
    names = [name for name, about in CONTAINERS.items() if about.row == row and not (about.library and find_spec(about.library) is None)]
    if not names:
        pytest.skip("its library is not installed")
    cases = [case for name in names for case in attacked(name, tmp_path / name)]
    assert unexpected(cases) == []
    assert len(cases) == CASES * len(names)
    seen = {case.kind for case in cases if case.kind}
    assert permitted(row) - {"order"} <= seen, "what the page says is lost, happens"


NAMED_TWICE = [name for name in CONTAINERS if name.startswith(("image_folder, ", "webdataset, ", "zip, "))]


@pytest.mark.parametrize("name", [n if n == NAMED_TWICE[0] else pytest.param(n, marks=pytest.mark.nightly) for n in NAMED_TWICE])
def test_a_name_that_stands_twice_in_an_archive_is_told(name: str, tmp_path: Path) -> None:
    """Of two members of one name a program reads the first, or the last."""
    pristine = tmp_path / "data"
    pristine.mkdir()
    CONTAINERS[name].write(pristine)
    reading = Reading(CONTAINERS[name], pristine)
    path = next(path for path in sorted(pristine.iterdir()))
    if path.suffix == ".tar":
        with tarfile.open(path, "a") as archive:
            member = archive.getmembers()[0]
            member.size = len(damage.png(99))
            archive.addfile(member, io.BytesIO(damage.png(99)))
    else:
        with warnings.catch_warnings(), zipfile.ZipFile(path, "a") as archive:
            warnings.simplefilter("ignore")
            archive.writestr(archive.infolist()[0], damage.png(99))
    fault = damage.Fault(path.name, "a name twice")
    try:
        outcome = reading._judged(loaded(reading._raw(pristine)), reading._raw(pristine), fault)
    except Told as told:
        outcome = "told" if str(pristine) in str(told) else f"names no file: {told}"
    assert outcome in ("told", "told by validate", f"{SILENT}added")


def test_a_message_that_quotes_a_damaged_record_is_ours(tmp_path: Path) -> None:
    """TensorFlow puts the record's bytes into its message, which are no text."""
    tmp_path.joinpath("data").mkdir()
    CONTAINERS["tfrecord"].write(tmp_path / "data")
    path = tmp_path / "data" / "data-00000-of-00002.tfrecord"
    content = bytearray(path.read_bytes())
    second = 16 + int.from_bytes(content[:8], "little")
    content[second + 12 : second + 40] = b"\xff" * 28
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"cannot read .*\.tfrecord#1: Could not parse example"):
        list(pipegen.build(spec_of(damage.shards_of("tfrecord", features=WITH_CLASSES)(tmp_path / "data"))).dataset("train"))


WITH_CLASSES = {**damage.FEATURES, "label": {"kind": "label", "classes": 3}}
