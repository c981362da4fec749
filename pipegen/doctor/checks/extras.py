"""Lists pipegen's extras: which are complete, which could be installed, and which are installed and do not load."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import NamedTuple

from pipegen.doctor.asking import answers_of, reason, run_python
from pipegen.doctor.examination import Examination
from pipegen.doctor.line import Line
from pipegen.lazy import what_to_install

_MARKED = re.compile(r"^([A-Za-z0-9._-]+).*;.*\bextra\s*==\s*['\"]([\w-]+)['\"]")
_WRITTEN = re.compile(r"^([\w-]+) = \[([^\]]*)\]", re.MULTILINE)
_NAME = re.compile(r"[\"']([A-Za-z0-9._-]+)")
_OURS = {"dev", "test", "docs", "benchmark", "peers"}
"""Those that pipegen itself is developed with."""
_NARROW = {"io"}
"""Those that fit one release of TensorFlow alone, about which another check speaks."""
_MODULES = {
    "array-record": "array_record.python.array_record_module",
    "nvidia-ml-py": "pynvml",
    "pillow": "PIL.Image",
    "pillow-jxl-plugin": "pillow_jxl",
}
"""What is imported of a library where that is not its name; the module that has its binary part, where there are several."""
_PATIENCE = 60.0
"""Seconds; all of them together take three."""


def check(examination: Examination) -> Iterator[Line]:
    """Names the extras that are complete, and those of which libraries are missing; says of each library that does not load why."""
    found = _declared()
    if not found:
        yield Line("extras", "unknown: pipegen is not installed as a package", "note")
        return
    missing = {extra: [name for name in names if not _installed(name)] for extra, names in found.items()}
    installed = dict.fromkeys(name for extra, names in found.items() for name in names if name not in missing[extra])
    failed = do_not_load([*installed], examination.machine.environment)
    broken = {extra: [name for name in names if name in failed and not failed[name].late] for extra, names in found.items()}
    there = [extra for extra, names in missing.items() if not names and not broken[extra]]
    absent = [f"{extra} ({', '.join(names)})" for extra, names in missing.items() if names]
    fact = f"{', '.join(there) or 'none'} installed" + (f"; not {', '.join(absent)}" if absent else "")
    remedy = (
        f"pip install 'pipegen[{next(extra for extra, names in missing.items() if names)}]' and the like, where you need one"
        if absent
        else ""
    )
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
    """Says why a library does not load.

    Attributes:
        why: The first line of the error.
        lacks_module: Whether a module is missing, and none of those that are here is to blame.
        late: Whether it may load, and was not waited for.
    """

    why: str
    lacks_module: bool = False
    late: bool = False


def do_not_load(names: Sequence[str], environment: Mapping[str, str]) -> dict[str, Failure]:
    """Imports libraries in another process, and returns those that fail or take too long; then a new process imports the others."""
    modules = {module_of(name): name for name in names}
    failed: dict[str, Failure] = {}
    rest = [*modules]
    while rest:
        code, out, err = run_python(["-m", "pipegen.doctor.imported", *rest], environment, _PATIENCE)
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
    """Returns what is imported of a library."""
    return _MODULES.get(name.lower().replace("_", "-"), name.replace("-", "_"))


def _declared() -> dict[str, list[str]]:
    """Returns the libraries of each extra, by the installed package's metadata, or in a checkout by its project file."""
    found: dict[str, list[str]] = {}
    try:
        marked = [match for text in requires("pipegen") or () if (match := _MARKED.match(text))]
        for match in marked:
            found.setdefault(match[2], []).append(match[1])
    except PackageNotFoundError:
        project = Path(__file__).resolve().parents[3] / "pyproject.toml"
        text = project.read_text(encoding="utf-8") if project.exists() else ""
        section = text.partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
        found = {match[1]: _NAME.findall(match[2]) for match in _WRITTEN.finditer(section)}
    return {extra: names for extra, names in found.items() if extra not in _OURS | _NARROW}


def _installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True
