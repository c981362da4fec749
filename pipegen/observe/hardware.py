"""Checks of the machine: processor, memory, load, limits, storage and NVIDIA's hardware."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.memory import meminfo
from pipegen.mounts import mounted
from pipegen.observe.examination import Examination, Line, Machine, Verdict, judged
from pipegen.observe.storage import Needs, Rates, files_in, measure, place_of
from pipegen.spec.units import format_bytes

_NAMES = ("avx", "avx2", "fma", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_tile", "asimd", "sve", "sve2", "bf16")


def check_vector_units(examination: Examination) -> Iterator[Line]:
    """Reports the processor and its vector units; without AVX, TensorFlow's builds for x86 crash with SIGILL."""
    found = examination.machine.processor
    flags = (found.get("flags") or found.get("Features") or "").split()
    if not flags:
        yield Line("vector units", "unknown: /proc/cpuinfo names none", "note")
        return
    has = [name for name in _NAMES if name in flags]
    model, host = found.get("model name", "unknown processor"), "give the virtual machine its host's processor (`-cpu host`), or use"
    lacks = "" if "flags" not in found or "avx2" in has else "AVX2" if "avx" in has else "AVX"
    fact = "no AVX" if lacks == "AVX" else f"{', '.join(has)}, but no AVX2" if lacks else ", ".join(has) or "none"
    yield judged(
        "vector units",
        f"{fact} ({model})",
        {"model": model, "units": has},
        (lacks == "AVX", "error", f"{host} another machine: TensorFlow's builds need AVX"),
        (lacks == "AVX2", "warning", f"{host} a machine of 2013 or later, for faster resampling"),
    )


_HELD_BACK = 0.1  # the share of throttled periods from which on throttling is reported


def check_cores(examination: Examination) -> Iterator[Line]:
    """Reports the cores, and the number that the pipeline takes."""
    machine, cores = examination.machine, examination.cores
    quota, groups = machine.cgroup.cpu_quota, machine.cgroup.version
    by_group = "without control groups" if not groups else f"control groups v{groups} grant {'all' if quota is None else f'{quota:g}'}"
    fact = f"{machine.processors} in the machine, {machine.affinity} by affinity, {by_group}: the pipeline takes {cores}"
    figures = {"machine": machine.processors, "affinity": machine.affinity, "quota": quota, "cgroup": groups, "taken": cores}
    asked = examination.needs.threads if examination.needs is not None else None
    too_many = asked is not None and asked > cores
    yield judged(
        "cores",
        f"{fact}, and the spec asks for {asked} threads" if too_many else fact,
        figures,
        (too_many, "warning", f"use `runtime: {{threads: auto}}`, or {cores}: more threads wait for each other"),
        (cores < 2, "note", "ask for two or more: one core cannot make batches while it runs the model"),
    )
    held = machine.cgroup.throttled
    if held is not None and held[0] > _HELD_BACK * held[1]:
        share = held[0] / held[1]
        remedy = "raise the quota, or use fewer threads than it has cores: each time, all threads stop for up to 100 ms"
        yield Line("throttling", f"the control group was throttled in {share:.0%} of its periods", "warning", remedy, {"share": share})


_BUSY = 0.5  # the share of busy cores above which a machine counts as busy, beside one core for this program


def check_load(examination: Examination) -> list[Line]:
    """Reports the mean number of programs that ran or waited for a core in the last minute."""
    machine = examination.machine
    words = machine.read("proc/loadavg").split()
    if not words or not machine.processors:
        return []
    load, cores = float(words[0]), machine.processors
    is_busy = load > 1 + _BUSY * cores
    fact = f"{load:.1f} programs ran or waited for a core in the last minute, on {cores} cores{': the machine is busy' * is_busy}"
    remedy = "end other programs, or wait, before you measure: `profile`, `tune` and `bench` share the cores with them"
    return [judged("load", fact, {"load": load, "cores": cores}, (is_busy, "warning", remedy))]


_SMALL = 2 * 2**30  # the available memory below which there is a warning; TensorFlow alone takes a quarter of it


def check_memory(examination: Examination) -> Iterator[Line]:
    """Reports the memory of the machine, the available part, and the need of the spec."""
    machine = examination.machine
    total, free = meminfo("MemTotal", machine.root), meminfo("MemAvailable", machine.root)
    limit, left = machine.cgroup.memory_limit, machine.cgroup.memory_left
    if total is None or free is None:
        yield Line("memory", "unknown: /proc/meminfo does not say", "note")
        return
    available = free if left is None else min(free, left)
    fact = f"{format_bytes(total)}, {format_bytes(free)} available"
    if limit is not None and limit < total:
        fact += f"; control groups grant {format_bytes(limit)}, of which {format_bytes(min(left or 0, limit))} are left"
    figures = {"total": total, "available": free, "limit": limit, "left": left}
    needed = None if examination.needs is None else examination.needs.memory(examination.cores)
    if needed is not None:
        fact, figures = f"{fact}; the spec is expected to hold {format_bytes(needed)}", {**figures, "needed": needed}
    more = "ask for more memory: TensorFlow itself takes half a gigabyte, and a batch of images may take as much"
    yield judged(
        "memory",
        fact,
        figures,
        ((needed or 0) > available, "error", "use `runtime: {cache: {disk: FOLDER}}`, a smaller batch, or smaller images"),
        (available < _SMALL, "warning", more),
    )


_ENOUGH_FILES = 4096  # far more than mapped shards, caches, reading threads and the sockets of services need


def check_descriptors(examination: Examination) -> list[Line]:
    """Reports the limit of open files, and how to raise it."""
    limits = examination.machine.open_files
    if limits is None:
        return [Line("open files", "unknown: /proc/self/limits does not say", "note")]
    soft, hard = limits
    shown = ["any number" if limit == float("inf") else f"{limit:,.0f}" for limit in limits]
    fact = f"{shown[0]} at a time, and up to {shown[1]} on request"
    figures = {name: None if limit == float("inf") else int(limit) for name, limit in (("soft", soft), ("hard", hard))}
    remedy = "ask the administrator for more: LimitNOFILE= in systemd, --ulimit nofile=65536 in docker"
    if hard >= _ENOUGH_FILES:
        remedy = f"ulimit -n {_ENOUGH_FILES}: data in many shards needs a descriptor for each"
    return [judged("open files", fact, figures, (soft < _ENOUGH_FILES, "warning", remedy))]


_ENOUGH_SHARED = 2**30  # docker's default of 64 MiB is too little for loaders with several processes


def check_shared_memory(examination: Examination) -> list[Line]:
    """Reports the shared memory, which pipegen itself does not need: it works in one process."""
    remedy = "docker run --shm-size=2g, if another loader works in several processes; pipegen does not"
    try:
        found = os.statvfs(examination.machine.root / "dev/shm")
    except OSError:
        return [Line("shared memory", "not mounted", "note", remedy)]
    size, free = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
    fact = f"{format_bytes(size)}, {format_bytes(free)} free"
    return [judged("shared memory", fact, {"size": size, "free": free}, (free < _ENOUGH_SHARED, "note", remedy))]


_NETWORK = (
    "nfs", "cifs", "smb", "ceph", "lustre", "beegfs", "gluster", "gpfs", "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "9p", "virtiofs", "afs",
)  # fmt: skip
_SAYS = {
    "0": "the kernel calls its disk solid-state",
    "1": "the kernel calls its disk rotational, as virtual disks often are called",
}
_KEPT = 0.5


def check_storage(examination: Examination) -> Iterator[Line]:
    """Reports the storage of the data, and measures it."""
    machine, needs = examination.machine, examination.needs
    if needs is not None:
        yield from _of_spec(examination, needs)
    elif examination.folder is None:
        yield from _described(machine, Path.cwd(), "")
    elif not examination.files:
        yield Line("storage", f"{examination.folder} has no files", "error", "name the folder of the data")
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
        yield Line("storage", f"{needs.paths[0]} is on another machine, and is fetched when it is read (`runtime: remote_cache`)")
    else:
        for name, part in needs.parts.items():
            many = f"{part.num_examples(needs.split):,} examples of split {needs.split}{f', part {name}' * bool(name)}, "
            first, root = next(iter(files_in(part, needs.split)), ""), part.listing.root
            is_below = bool(root) and (not first or first.startswith(root.rstrip("/") + "/"))
            place = root if is_below else os.path.dirname(first) if first else next(iter(needs.paths), ".")
            yield from _described(examination.machine, place_of(place), many)
        if files:
            yield from _measured(examination, needs)


def _described(machine: Machine, place: Path, many: str) -> Iterator[Line]:
    mount = machine.mount_of(place)
    if mount is None:
        yield Line("storage", f"{place}: unknown mount", "note")
        return
    rotational = machine.rotational(mount)
    remote = mount.kind.startswith(_NETWORK)
    disk = _SAYS.get(rotational or "", "unknown disk")
    kind = "in memory" if mount.kind in ("tmpfs", "ramfs") else "over a network" if remote else disk
    figures = {"path": str(place), "kind": mount.kind, "device": mount.device, "rotational": rotational, "remote": remote}
    yield Line("storage", f"{place}: {many}{mount.kind} on {mount.device}; {kind}", figures=figures)


def _measured(examination: Examination, needs: Needs | None) -> Iterator[Line]:
    threads = max(examination.cores, 2)
    rates = measure(examination.files, threads)
    if rates is None:
        yield Line("reading", "the files are empty", "error", "name the folder of the data, or mend the spec's `source`")
        return
    what = "parts of 128 KiB" if rates.shards else f"files of {format_bytes(rates.mean_bytes)}"
    alone, several, ordered = (f"{rate / 1e6:,.0f} MB/s" for rate in (rates.random, rates.together, rates.sequential))
    fact = f"{what}: {alone} in random order, {several} with {threads} threads, {ordered} in their own order"
    figures = {name: getattr(rates, name) for name in ("random", "together", "sequential", "mean_bytes", "kept")} | {"threads": threads}
    of_memory = rates.kept > _KEPT
    if of_memory:
        fact = f"{fact}; {rates.kept:.0%} came from memory, although they were dropped from the page cache"
    yield judged("reading", fact, figures, (of_memory, "note", "these are rates of memory; a larger data set will be slower"))
    if needs is not None:
        yield _compared(examination, needs, rates)


def _compared(examination: Examination, needs: Needs, rates: Rates) -> Line:
    stored = needs.example_bytes or rates.mean_bytes  # a file may hold many
    images = needs.images_per_s or needs.prepared_per_s(examination.cores, stored)
    needed = images * stored
    who = "the model takes" if needs.images_per_s else f"{needs.threads or examination.cores} threads are expected to prepare"
    place = {"memory": "in memory"}.get(needs.cache or "", f"on {needs.cache}")
    once = f", in the first epoch, before the cache {place} is full" if needs.cache is not None else ""
    is_slow = needed > rates.together
    gives = f"{', and' if is_slow else ';'} the storage gives {rates.together / 1e6:,.0f} MB/s"
    fact = f"the spec needs {needed / 1e6:,.0f} MB/s: {who} {images:,.0f} examples/s{once}{gives}"
    figures = {"needed": needed, "images_per_s": images, "measured": rates.together}
    remedy = (
        "copy the data to a local disk" if needs.cache else "`runtime: {cache: {disk: FOLDER}}` on a local disk, or copy the data there"
    )
    return judged("reading for the spec", fact, figures, (is_slow, "warning", remedy))


_NVIDIA = "0x10de"
_DISPLAY = "0x03"  # the class of display controllers, which includes GPUs of data centres
_CONTAINER = "start the container with the GPU: `docker run --gpus all`, or the device plugin of your cluster"
_REINSTALL = "pip install 'tensorflow[and-cuda]'"


def check_cuda(examination: Examination) -> Iterator[Line]:
    """Reports the GPUs that TensorFlow sees; without any, what is missing."""
    answers, machine = examination.answers, examination.machine
    if "tensorflow" not in answers:
        return
    build, gpus = answers["build"], answers.get("gpus")
    if gpus is None:
        yield Line("GPU", f"looking for GPUs fails: {answers.get('failed')}", "error", "run `nvidia-smi`; a new driver may need a restart")
        return
    found = re.search(r"(?:Kernel Module\D*|for \S+\s+)(\d+\.\d+(?:\.\d+)?)", machine.read("proc/driver/nvidia/version"))
    driver, takes = found[1] if found else None, answers.get("driver_cuda")
    figures = {"gpus": gpus, "driver": driver, "driver_cuda": takes, "build": build}
    about = f"TensorFlow is built for {'CUDA ' + str(build['cuda']) if build['is_cuda'] else 'processors only'}"
    if gpus:
        fact = f"{len(gpus)}: {', '.join(gpus)}; {about}, driver {driver or 'unknown'}{_upto(takes)}"
        yield Line("GPU", fact, *_by_driver(build, takes), figures)
    else:
        fact, verdict, remedy = _without(machine, build, driver, takes)
        yield Line("GPU", f"none: {fact}; {about}", verdict, remedy, figures)


def _without(machine: Machine, build: dict[str, Any], driver: str | None, takes: int | None) -> tuple[str, Verdict, str]:
    """Explains why there is none, from the hardware upwards."""
    hidden = machine.environment.get("CUDA_VISIBLE_DEVICES")
    vendors = [path for path in machine.matching("sys/bus/pci/devices/*/vendor") if path.read_text().strip() == _NVIDIA]
    cards = sum((path.parent / "class").read_text().startswith(_DISPLAY) for path in vendors)
    if driver is None and not cards:
        return "this machine has no NVIDIA card", "ok", ""
    if driver is None:
        fact = f"{cards} NVIDIA card{'s' if cards != 1 else ''} and no driver"
        return fact, "error", f"install NVIDIA's driver for the card; {_CONTAINER}"
    if hidden is not None and hidden.strip() in ("", "-1"):
        return f"CUDA_VISIBLE_DEVICES={hidden!r} hides them", "note", "unset CUDA_VISIBLE_DEVICES to use them"
    if not machine.matching("dev/nvidia[0-9]*"):
        return f"the machine's driver is {driver}, and no card is in /dev", "error", _CONTAINER
    if not build["is_cuda"]:
        return f"driver {driver} works", "error", _REINSTALL
    verdict, remedy = _by_driver(build, takes)
    if verdict != "ok":
        return f"driver {driver} is too old{_upto(takes)}", "error", remedy
    return f"driver {driver} works{_upto(takes)}, and TensorFlow does not find its CUDA libraries", "error", _REINSTALL


def _by_driver(build: dict[str, Any], takes: int | None) -> tuple[Verdict, str]:
    """Compares the driver with the build: a program runs on every driver of its major version."""
    wanted = re.match(r"(\d+)", build["cuda"] or "")
    if wanted is None or takes is None or takes // 1000 >= int(wanted[1]):
        return "ok", ""
    return "warning", f"update NVIDIA's driver to one for CUDA {wanted[1]}, or install a TensorFlow that is built for CUDA {takes // 1000}"


def _upto(takes: int | None) -> str:
    return "" if takes is None else f", which takes CUDA up to {takes // 1000}.{takes % 1000 // 10}"
