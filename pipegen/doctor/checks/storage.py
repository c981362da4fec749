"""Compares how fast the data comes from its storage with what the spec needs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.doctor.examination import Examination
from pipegen.doctor.line import Line
from pipegen.doctor.machine import Machine
from pipegen.doctor.needs import Needs, files_in
from pipegen.doctor.storage import Rates, measure, place_of
from pipegen.mounts import mounted
from pipegen.spec.units import format_bytes

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest

_NETWORK = (
    "nfs",
    "cifs",
    "smb",
    "ceph",
    "lustre",
    "beegfs",
    "gluster",
    "gpfs",
    "fuse.sshfs",
    "fuse.s3fs",
    "fuse.gcsfuse",
    "9p",
    "virtiofs",
    "afs",
)
_SAYS = {
    "0": "the kernel calls its disk solid-state",
    "1": "the kernel calls its disk rotational, as virtual disks often are called",
}
_KEPT = 0.5


def check(examination: Examination) -> Iterator[Line]:
    """Names where the data lies, and measures it."""
    machine, needs = examination.machine, examination.needs
    if needs is not None:
        yield from _of_spec(examination, needs)
    elif examination.folder is None:
        yield from _described(machine, Path.cwd(), "")
    elif not examination.files:
        yield Line("storage", f"there is no file in {examination.folder}", "error", "name the folder of the data")
    else:
        many = len(examination.files)
        yield from _described(machine, Path(examination.folder).resolve(), f"{many:,} file{'s' if many != 1 else ''}, ")
        yield from _measured(examination, None)


def _of_spec(examination: Examination, needs: Needs) -> Iterator[Line]:
    found, files = needs.manifest, examination.files
    if isinstance(needs.listed, Diagnostic):
        problem = needs.listed
        remedy = next(iter(problem.help), f"pipegen rule {problem.code}")
        yield Line("storage", f"the data cannot be used: {problem.code} {problem.message}", "error", remedy)
    elif found is None:
        yield Line("storage", "the spec names no data: it comes from Python")
    elif files and mounted(files[0]) is not None:
        yield Line("storage", f"{needs.paths[0]} lies on another machine, and is fetched as it is read (`runtime: remote_cache`)")
    else:
        for name, part in needs.parts.items():
            what = f"split {needs.split}" + f", part {name}" * bool(name)
            yield from _described(
                examination.machine, place_of(_place(part, needs)), f"{part.num_examples(needs.split):,} examples of {what}, "
            )
        if files:
            yield from _measured(examination, needs)


def _place(part: Manifest, needs: Needs) -> str:
    """Returns the folder or the file that the data of a source lies in."""
    files, root = files_in(part, needs.split), part.listing.root
    if files:
        return root if root and files[0].startswith(root.rstrip("/") + "/") else os.path.dirname(files[0])
    return root or next(iter(needs.paths), ".")


def _described(machine: Machine, place: Path, many: str) -> Iterator[Line]:
    mount = machine.mount_of(place)
    if mount is None:
        yield Line("storage", f"{place}: no mount is known for it", "note")
        return
    rotational = machine.rotational(mount)
    remote = mount.kind.startswith(_NETWORK)
    kind = (
        "in memory" if mount.kind in ("tmpfs", "ramfs") else "over a network" if remote else _SAYS.get(rotational or "", "no disk is known")
    )
    fact = f"{place}: {many}{mount.kind} on {mount.device}; {kind}"
    figures = {
        "path": str(place),
        "kind": mount.kind,
        "device": mount.device,
        "rotational": rotational,
        "remote": remote,
    }
    yield Line("storage", fact, figures=figures)


def _measured(examination: Examination, needs: Needs | None) -> Iterator[Line]:
    threads = max(examination.cores, 2)
    rates = measure(examination.files, threads)
    if rates is None:
        yield Line("reading", "the files are empty", "error", "name the folder of the data, or mend the spec's `source`")
        return
    what = "parts of 128 KiB" if rates.shards else f"files of {format_bytes(rates.mean_bytes)}"
    fact = (
        f"{what}: {rates.random / 1e6:,.0f} MB/s in random order, {rates.together / 1e6:,.0f} MB/s with {threads} threads, "
        f"{rates.sequential / 1e6:,.0f} MB/s in their own order"
    )
    figures = {"random": rates.random, "together": rates.together, "threads": threads, "sequential": rates.sequential}
    figures |= {"mean_bytes": rates.mean_bytes, "kept": rates.kept}
    if rates.kept > _KEPT:
        fact = f"{fact}; {rates.kept:.0%} came from memory, although the page cache was told to drop them"
        yield Line("reading", fact, "note", "the figures are those of memory; a larger data set will be slower", figures)
    else:
        yield Line("reading", fact, figures=figures)
    if needs is not None:
        yield _compared(examination, needs, rates)


def _compared(examination: Examination, needs: Needs, rates: Rates) -> Line:
    stored = needs.example_bytes or rates.mean_bytes  # a file may hold many
    images = needs.images_per_s or needs.prepared_per_s(examination.cores, stored)
    needed = images * stored
    who = "the model takes" if needs.images_per_s else f"{needs.threads or examination.cores} threads are expected to prepare"
    once = "" if needs.cache is None else f", in the first epoch, before the cache on {needs.cache} is full"
    once = once.replace("on memory", "in memory")
    fact = f"the spec needs {needed / 1e6:,.0f} MB/s: {who} {images:,.0f} images/s{once}"
    figures = {"needed": needed, "images_per_s": images, "measured": rates.together}
    if needed <= rates.together:
        return Line("reading for the spec", f"{fact}; the storage gives {rates.together / 1e6:,.0f} MB/s", figures=figures)
    remedy = (
        "copy the data to a local disk" if needs.cache else "`runtime: {cache: {disk: FOLDER}}` on a local disk, or copy the data there"
    )
    return Line("reading for the spec", f"{fact}, and the storage gives {rates.together / 1e6:,.0f} MB/s", "warning", remedy, figures)
