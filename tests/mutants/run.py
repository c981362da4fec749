"""Tests the tests: makes small mistakes in pipegen's code, one at a time, and counts those that a test of the day notices.

    python tests/mutants/run.py                                                     a sample of four folders, on two cores
    python tests/mutants/run.py pipegen/plan --seed 7 --each 100 --minutes 60       another one, of one folder

The suite runs once with coverage, which says what tests run each line. A mutant is tried by those that run its line: quick ones
first, those that need TensorFlow last, up to a limit of time. It survives if none fails. All of it happens in copies of the checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from itertools import zip_longest
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from mutate import Mutant, mutants_of

ROOT = Path(__file__).resolve().parents[2]
LEAST, EACH, MINUTES = 0.85, 20, 16
"""The share that must be noticed of each folder, how many are tried of it, and the minutes for that, after the suite has run once."""
FOLDERS = ("pipegen/plan", "pipegen/spec", "pipegen/data", "pipegen/passes")
BUDGETS_S = {False: 20.0, True: 40.0}
"""Processor time of the tests that a mutant is tried by: those without TensorFlow, then those with it."""
ENDLESS_S, WAITS_S = 30.0, 900.0
"""Processor time beyond that, after which a test counts as one that never ends, and so has noticed; and seconds of waiting."""
_BESIDE = ("-m", "peers or not peers")
"""Names the tests beside other libraries, which also run by day."""
_STOPPED = 2
"""How pytest ends where it was stopped."""
_IMPORTED_ONCE = (
    "numpy",
    "pydantic",
    "yaml",
    "hypothesis",
    "typer",
    "rich.console",
    "PIL.Image",
    "pytest",
    "xdist",
    "pytest_timeout",
    "re2",
)


@dataclass
class Tests:
    """Test functions: which run a line, how long each takes, and which need TensorFlow."""

    seconds: dict[str, float] = field(default_factory=dict)
    needs_tf: set[str] = field(default_factory=set)
    of_line: dict[tuple[str, int], set[str]] = field(default_factory=lambda: defaultdict(set))

    def of(self, mutant: Mutant, needs_tf: bool) -> list[str]:
        """Those that try a mutant: of its own folder first, and quick ones, until the budget is spent."""
        found = {test for line in mutant.lines for test in self.of_line.get((str(mutant.path), line), ())}
        if not found:  # what runs at import alone is tried by all that use its module
            found = {test for (path, _), tests in self.of_line.items() if path == str(mutant.path) for test in tests}
        own = f"tests/{mutant.path.parts[1]}/"
        chosen, left = [], BUDGETS_S[needs_tf]
        for test in sorted(found, key=lambda test: (self.seconds[test] * (1 if test.startswith(own) else 3), test)):
            if (test in self.needs_tf) is needs_tf and left > 0:
                chosen.append(test)
                left -= self.seconds[test]
        return chosen


def copied(root: Path, target: Path) -> Path:
    """A copy of a checkout, without its history and what tools keep."""
    return shutil.copytree(root, target, symlinks=True, ignore=shutil.ignore_patterns(".git", ".*_cache", ".hypothesis", "build"))


def environment(copy: Path, **more: str) -> dict[str, str]:
    """The environment of processes that work on a copy."""
    own = os.pathsep.join([str(copy), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": own, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", **more}


def note_lines(copy: Path, folders: Sequence[str], asked: Sequence[str], kept: Path) -> None:
    """Runs tests once with coverage, and keeps what they ran; of a run that is broken off, nothing."""
    making = kept.with_name(f"{kept.name}.part")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "covering", "-p", "no:cacheprovider", *_BESIDE, *asked]
    told = environment(copy, COVERING=str(making), COVERING_SOURCE=os.pathsep.join(str(copy / folder) for folder in folders))
    done = subprocess.run(command, cwd=copy, env=told, capture_output=True, text=True, check=False)
    print(*done.stdout.splitlines()[-1:], flush=True)
    if done.returncode not in (0, 1) or not any(making.glob("*.json")):
        raise SystemExit(f"the tests did not run to their end: {' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    making.rename(kept)


def noted(kept: Path) -> Tests:
    """What `note_lines` kept. A test that failed without a mistake is left out."""
    from coverage import CoverageData

    tests, failed = Tests(), set()
    for path in kept.glob("*.json"):
        told = json.loads(path.read_text(encoding="utf-8"))
        failed.update(told["failed"])
        tests.seconds.update(told["seconds"])
        tests.needs_tf.update(told["needs_tf"])
    for path in kept.glob("*.lines"):
        data = CoverageData(str(path))
        data.read()
        for file in data.measured_files():
            for line, names in data.contexts_by_lineno(file).items():
                tests.of_line[file, line].update(name for name in names if name in tests.seconds and name not in failed)
    return tests


def sample(root: Path, folders: Iterable[str], seed: int, each: int) -> list[Mutant]:
    """So many mutants of each folder, in the order in which they are tried: the folders by turns."""
    of_folders = []
    for folder in folders:
        modules = [path.relative_to(root) for path in sorted((root / folder).rglob("*.py"))]
        found = [mutant for module in modules for mutant in mutants_of(module, root)]
        of_folders.append(sorted(found, key=lambda mutant: (mutant.rank(seed), mutant.start))[:each])
    return [mutant for turn in zip_longest(*of_folders) for mutant in turn if mutant is not None]


class Budget:
    """A plugin of pytest: runs tests in the order given, ends when the budget is spent, and knows whether a test has failed."""

    def __init__(self, tests: Sequence[str], seconds: float) -> None:
        self.places = {test: place for place, test in enumerate(tests)}
        self.end = time.process_time() + seconds
        self.failed = False

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Sorts the cases."""
        items.sort(key=lambda item: self.places.get(item.nodeid.partition("[")[0], 0))

    def pytest_collectreport(self, report: Any) -> None:
        """Notes a module of tests that cannot be imported."""
        self.failed |= report.failed

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Notes a failure."""
        self.failed |= report.failed

    def pytest_runtest_teardown(self, item: Any) -> None:
        """Asks for the end, if it is time."""
        if time.process_time() > self.end:
            item.session.shouldstop = "the budget is spent"


def fails(copy: Path, tests: list[str], budget_s: float) -> bool:
    """Whether one of some tests fails in a copy, or does not end. They run in a fork of this process, which has libraries at hand."""
    process = os.fork()
    if not process:
        _run_tests(copy, tests, budget_s)
    end = time.monotonic() + WAITS_S
    while time.monotonic() < end:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            with suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)  # what it left running
            return os.waitstatus_to_exitcode(status) != 0
        time.sleep(0.02)
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return True


def _run_tests(copy: Path, tests: list[str], budget_s: float) -> None:
    """Runs tests, and ends the process with 0 if none failed."""
    code = 1
    try:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (int(budget_s + ENDLESS_S),) * 2)
        os.chdir(copy)
        os.environ.update(environment(copy))
        sys.path[:] = [str(copy), *(entry for entry in sys.path if Path(entry or ".").resolve() not in (ROOT, Path(__file__).parent))]
        silent = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(silent, descriptor)
        budget = Budget(tests, budget_s)
        done = int(import_module("pytest").main(["-q", "-x", "-n0", "-p", "no:cacheprovider", *_BESIDE, *tests], plugins=[budget]))
        code = int(budget.failed or done not in (0, _STOPPED))
    finally:
        os._exit(code)


class Worker:
    """One process of several, with a copy of its own."""

    copy: Path
    tests: Tests
    stamp = 1_000_000_000
    """Seconds, a new one for each change: compiled modules are told apart by whole seconds and sizes."""

    @classmethod
    def begin(cls, copies: Any, root: Path, tests: Tests) -> None:
        """Makes the copy, imports what all tests do, apart from pipegen, and sees that tests pass where nothing is wrong."""
        cls.copy, cls.tests = copied(root, Path(copies.get())), tests
        os.environ.update(environment(cls.copy))
        for name in (*_IMPORTED_ONCE, *(["tensorflow", "keras"] if tests.needs_tf else [])):
            with suppress(ImportError):
                import_module(name)
        for needs_tf in (False, True):
            some = sorted((test for test in tests.seconds if (test in tests.needs_tf) is needs_tf), key=tests.seconds.__getitem__)[:3]
            if some and fails(cls.copy, some, BUDGETS_S[needs_tf]):
                raise RuntimeError(f"these fail without a mistake: {' '.join(some)}")

    @classmethod
    def write(cls, path: Path, text: str) -> None:
        """Writes a module of the copy."""
        cls.stamp += 1
        (cls.copy / path).write_text(text, encoding="utf-8")
        os.utime(cls.copy / path, (cls.stamp, cls.stamp))

    @classmethod
    def notices(cls, mutant: Mutant) -> bool:
        """Whether a test fails with a mistake."""
        right = (cls.copy / mutant.path).read_text(encoding="utf-8")
        for needs_tf in (False, True):
            tests = cls.tests.of(mutant, needs_tf)
            cls.write(mutant.path, mutant.text(right))
            try:
                failed = bool(tests) and fails(cls.copy, tests, BUDGETS_S[needs_tf])
            finally:
                cls.write(mutant.path, right)
            if failed:
                return True
        return False


def tried(mutants: Sequence[Mutant], tests: Tests, root: Path, home: Path, processes: int, end: float) -> dict[Mutant, bool]:
    """Which mutants were noticed, of those that there was time for."""
    context = get_context("fork")
    copies = context.Queue()
    for number in range(processes):
        copies.put(str(home / f"copy-{number}"))
    found: dict[Mutant, bool] = {}
    with ProcessPoolExecutor(processes, context, Worker.begin, (copies, root, tests)) as pool:
        waiting = iter(mutants)
        running = {}
        while True:
            while len(running) < processes and time.monotonic() < end and (mutant := next(waiting, None)) is not None:
                running[pool.submit(Worker.notices, mutant)] = mutant
            if not running:
                return found
            done = next(as_completed(running))
            mutant = running.pop(done)
            found[mutant] = done.result()
            if not found[mutant]:
                print(mutant, flush=True)


def measure(
    folders: Sequence[str] = FOLDERS,
    *,
    root: Path = ROOT,
    seed: int = 0,
    processes: int = 2,
    minutes: float = MINUTES,
    each: int = EACH,
    asked: Sequence[str] = (),
    kept: Path | None = None,
) -> dict[Mutant, bool | None]:
    """Notes lines, unless a folder has what was noted before, and tries a sample of mutants; prints those that survive. It says of each
    whether it was noticed, and `None` of those that there was no time for."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        home = Path(folder)
        kept = kept or home / "noted"
        if not kept.is_dir():
            note_lines(copied(root, home / "noting"), folders, ["-n", str(processes), *asked], kept)
        end = time.monotonic() + 60 * minutes
        mutants = sample(root, folders, seed, each)
        found = tried(mutants, noted(kept), root, home, processes, end)
        return {mutant: found.get(mutant) for mutant in mutants}


def told(folder: str, found: Sequence[bool | None], least: float) -> tuple[str, bool]:
    """What is said of a folder in a line, and whether it is as it should be: all were tried, and enough of them noticed."""
    noticed, left = found.count(True), found.count(None)
    late = f"; there was no time for {left}" if left else ""
    share = noticed / len(found)
    line = f"{folder}: {noticed} of {len(found)} noticed, {share:.0%}, and at least {least:.0%} should be{late}"
    return line, share >= least and not left


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", default=FOLDERS)
    parser.add_argument("--root", type=Path, default=ROOT, help="a checkout, where not this one")
    parser.add_argument("--seed", type=int, default=0, help="which sample")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="how long mutants are tried, after the suite has run")
    parser.add_argument("--each", type=int, default=EACH, help="how many are tried of each folder")
    parser.add_argument("--kept", type=Path, help="a folder for what is noted of lines; if it is there, the suite does not run again")
    parser.add_argument(
        "--tests", nargs=argparse.REMAINDER, default=(), help="last of all: what pytest is asked for, where not the whole suite by day"
    )
    parser.add_argument("--least", type=float, default=LEAST, help="share that must be noticed of each folder")
    given = vars(parser.parse_args())
    least = given.pop("least")
    found = measure(given.pop("folders"), asked=given.pop("tests"), **given)
    of_folders: dict[str, list[bool | None]] = defaultdict(list)
    for mutant, noticed in found.items():
        of_folders["/".join(mutant.path.parts[:2])].append(noticed)
    lines = [told(folder, of_folder, least) for folder, of_folder in of_folders.items()]
    print(*(line for line, _ in lines), sep="\n")
    return int(not lines or not all(right for _, right in lines))


if __name__ == "__main__":
    sys.exit(main())
