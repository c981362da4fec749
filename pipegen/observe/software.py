"""Checks of the installation: pipegen, TensorFlow, Keras, XLA, oneDNN and the extras."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import NamedTuple

from pipegen.lazy import installed_version, what_to_install
from pipegen.observe.asking import answers_of, reason, run_python
from pipegen.observe.examination import Examination, Line, judged
from pipegen.release import __version__


def check_software(_: Examination) -> list[Line]:
    """Reports the versions, and the Python in use: a wrong environment is the most common mistake."""
    fact = f"pipegen {__version__}, Python {platform.python_version()} in {sys.prefix}, {platform.platform(terse=True)}"
    return [Line("software", fact, figures={"pipegen": __version__, "python": platform.python_version(), "prefix": sys.prefix})]


FIRST, LAST = (2, 16), (2, 21)
"""The oldest and the newest release that pipegen's tests run with."""
_SLOW = 20.0  # seconds from which on an import counts as slow


def check_tensorflow(examination: Examination) -> list[Line]:
    """Reports the version and the time of importing it."""
    answers = examination.answers
    if "tensorflow" not in answers:
        return [_broken(answers.get("failed", "no reason given"))]
    version, seconds, cpu_s = answers["tensorflow"], answers["seconds"], answers["cpu_s"]
    fact = f"{version}, imported in {seconds:.1f} s, {cpu_s:.1f} s of them at work"
    figures = {"version": version, "import_s": seconds, "import_cpu_s": cpu_s}
    release = tuple(int(part) for part in version.split(".")[:2])
    untested = not FIRST <= release <= LAST
    wanted = f"tensorflow>={FIRST[0]}.{FIRST[1]},<{LAST[0]}.{LAST[1] + 1}"
    slow = "the machine is busy, or the environment is on slow storage: importing reads thousands of files"
    fact += ", which pipegen is not tested with" * untested
    return [judged("TensorFlow", fact, figures, (untested, "warning", f"pip install '{wanted}'"), (seconds > _SLOW, "note", slow))]


def _broken(why: str) -> Line:
    if "No module named 'tensorflow'" in why:
        return Line("TensorFlow", "is not installed in this environment", "error", "pip install tensorflow")
    remedies = {
        "SIGILL": "its builds need AVX: use a machine whose processor has it, or a build for this one",
        "not done after": "its storage is too slow, or an import hangs: python -X importtime -c 'import tensorflow'",
        "numpy": "NumPy and TensorFlow do not fit each other: pip install --upgrade --force-reinstall tensorflow",
    }
    remedy = next((r for word, r in remedies.items() if word in why), "pip install --force-reinstall tensorflow")
    return Line("TensorFlow", f"cannot be imported: {why}", "error", remedy)


FIRST_KERAS = (3, 7)  # the oldest Keras whose `fit` takes pipegen's iterators


def check_keras(examination: Examination) -> list[Line]:
    """Reports the version and the backend."""
    answers = examination.answers
    if "tensorflow" not in answers:
        return []
    if "keras" not in answers:
        return [Line("Keras", f"cannot be imported: {answers.get('failed', 'no reason given')}", "error", "pip install --upgrade keras")]
    version, backend = answers["keras"], answers["keras_backend"]
    old = tuple(int(part) for part in version.split(".")[:2]) < FIRST_KERAS
    fact = f"{version} on {backend}{', too old for pipegen' if old else ''}"
    remedy = f"pip install --upgrade 'keras>={FIRST_KERAS[0]}.{FIRST_KERAS[1]}'"
    return [judged("Keras", fact, {"version": version, "backend": backend}, (old, "error", remedy))]


def check_xla(examination: Examination) -> list[Line]:
    """Reports the compilation and the run of a small program on the processor."""
    answers = examination.answers
    if "gpus" not in answers:
        return []
    if answers.get("xla"):
        seconds = answers["xla_seconds"]
        return [Line("XLA", f"compiles and runs, in {seconds:.2f} s", figures={"works": True, "seconds": seconds})]
    why = answers.get("why") or answers.get("failed", "no reason given")
    remedy = "`runtime: {jit: never}` does without, and is slower; pip install --force-reinstall tensorflow"
    return [Line("XLA", f"does not work: {why}", "error" if "failed" in answers else "warning", remedy, {"works": False, "why": why})]


def check_onednn(examination: Examination) -> list[Line]:
    """Reports the state and the variable that sets it."""
    on = examination.answers.get("onednn")
    if on is None:
        return []
    said = examination.machine.environment.get("TF_ENABLE_ONEDNN_OPTS")
    by = f", by TF_ENABLE_ONEDNN_OPTS={said}" if said is not None else ""
    fact = f"on{by}" if on else f"off{by}; the input does not need it"
    remedy = "unset TF_ENABLE_ONEDNN_OPTS for faster models on the processor"
    return [judged("oneDNN", fact, {"on": on, "variable": said}, (not on and said is not None, "note", remedy))]


_PATIENCE_TENSORFLOW_IO = 120.0
_LOADS = "from tensorflow_io.python.ops import core_ops; dir(core_ops)"  # the import alone loads nothing yet; `dir` does


def check_tensorflow_io(examination: Examination) -> list[Line]:
    """Loads tensorflow-io in another process."""
    installed = installed_version("tensorflow-io")
    if installed is None:
        return [Line("tensorflow-io", "is not installed, and not needed", figures={"installed": None})]
    code, _, err = run_python(["-c", _LOADS], {**examination.machine.environment, "TF_CPP_MIN_LOG_LEVEL": "3"}, _PATIENCE_TENSORFLOW_IO)
    if code == 0:
        return [Line("tensorflow-io", f"{installed} loads", figures={"installed": installed, "loads": True})]
    why = next((line for line in reversed(err.splitlines()) if "undefined symbol" in line), reason(code, err, _PATIENCE_TENSORFLOW_IO))
    fact = f"{installed} does not load: {'its libraries are for another TensorFlow' if 'undefined symbol' in why else why}"
    remedy = "pip uninstall tensorflow-io, unless you need it: 0.37.1, the last release, is for TensorFlow 2.16"
    return [Line("tensorflow-io", fact, "warning", remedy, {"installed": installed, "loads": False, "why": why})]


_MARKED = re.compile(r"^([A-Za-z0-9._-]+).*;.*\bextra\s*==\s*['\"]([\w-]+)['\"]")
_WRITTEN = re.compile(r"^([\w-]+) = \[([^\]]*)\]", re.MULTILINE)
_NAME = re.compile(r"[\"']([A-Za-z0-9._-]+)")
_OURS = {"dev", "test", "docs", "benchmark", "peers"}  # extras for the development of pipegen
_NARROW = {"io"}  # extras for a single release of TensorFlow, with a check of their own
_MODULES = {
    "array-record": "array_record.python.array_record_module",
    "nvidia-ml-py": "pynvml",
    "pillow": "PIL.Image",
    "pillow-jxl-plugin": "pillow_jxl",
}
"""The modules of libraries with other names than their own; of several, the one with the binary part."""
_PATIENCE = 60.0  # the time limit in seconds; all libraries together take three


def check_extras(examination: Examination) -> Iterator[Line]:
    """Reports complete extras, extras with missing libraries, and libraries that do not load."""
    found = _declared()
    if not found:
        yield Line("extras", "unknown: pipegen is not installed as a package", "note")
        return
    missing = {extra: [name for name in names if not installed_version(name)] for extra, names in found.items()}
    installed = dict.fromkeys(name for extra, names in found.items() for name in names if name not in missing[extra])
    failed = do_not_load([*installed], examination.machine.environment)
    broken = {extra: [name for name in names if name in failed and not failed[name].late] for extra, names in found.items()}
    there = [extra for extra, names in missing.items() if not names and not broken[extra]]
    absent = [f"{extra} ({', '.join(names)})" for extra, names in missing.items() if names]
    fact = f"{', '.join(there) or 'none'} installed" + (f"; not {', '.join(absent)}" if absent else "")
    remedy = f"pip install 'pipegen[{next(extra for extra, names in missing.items() if names)}]', if you need it" if absent else ""
    figures = {"missing": missing, "do_not_load": {extra: names for extra, names in broken.items() if names}}
    yield Line("extras", fact, remedy=remedy, figures=figures)
    for name, failure in failed.items():
        extras = [extra for extra, names in found.items() if name in names]
        of = f"{version(name)}, of the extra{'s' * (len(extras) > 1)} {', '.join(extras)}, is installed"
        told = {"installed": version(name), "loads": None if failure.late else False, "why": failure.why, "extras": extras}
        if failure.late:
            yield Line(name, f"{of}, and importing it was {failure.why}", "note", figures=told)
        else:
            remedy = what_to_install(name, extras[0], lacks_module=failure.lacks_module)
            yield Line(name, f"{of} and does not load: {failure.why}", "warning", remedy, told)


class Failure(NamedTuple):
    """Why a library does not load: a module may be missing, or the time limit was reached, so that it may load."""

    why: str
    lacks_module: bool = False
    late: bool = False


def do_not_load(names: Sequence[str], environment: Mapping[str, str]) -> dict[str, Failure]:
    """Imports libraries in another process, and returns those that fail or take too long; after a crash, a new process continues."""
    modules = {module_of(name): name for name in names}
    failed: dict[str, Failure] = {}
    rest = [*modules]
    while rest:
        code, out, err = run_python(["-m", "pipegen.observe.asking", *rest], environment, _PATIENCE)
        doing = None
        for answer in answers_of(out):
            doing = answer.get("doing", doing)
            if "failed" in answer:
                failed[modules[answer["failed"]]] = Failure(answer["why"], answer["lacks_module"])
        if code == 0 or doing is None:
            break
        failed[modules[doing]] = Failure(reason(code, err, _PATIENCE), late=code is None)
        rest = rest[rest.index(doing) + 1 :]
    return failed


def module_of(name: str) -> str:
    """The module of a library."""
    return _MODULES.get(name.lower().replace("_", "-"), name.replace("-", "_"))


def _declared() -> dict[str, list[str]]:
    """Reads the libraries of each extra from the installed package's metadata, or from the project file of a checkout."""
    found: dict[str, list[str]] = {}
    try:
        for match in filter(None, map(_MARKED.match, requires("pipegen") or ())):
            found.setdefault(match[2], []).append(match[1])
    except PackageNotFoundError:
        project = Path(__file__).resolve().parents[2] / "pyproject.toml"
        text = project.read_text(encoding="utf-8") if project.exists() else ""
        section = text.partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
        found = {match[1]: _NAME.findall(match[2]) for match in _WRITTEN.finditer(section)}
    return {extra: names for extra, names in found.items() if extra not in _OURS | _NARROW}
