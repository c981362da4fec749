"""Lists pipegen's extras: which are complete, and which could be installed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from pipegen.doctor.examination import Examination
from pipegen.doctor.line import Line

_MARKED = re.compile(r"^([A-Za-z0-9._-]+).*;.*\bextra\s*==\s*['\"]([\w-]+)['\"]")
_WRITTEN = re.compile(r"^([\w-]+) = \[([^\]]*)\]", re.MULTILINE)
_NAME = re.compile(r"[\"']([A-Za-z0-9._-]+)")
_OURS = {"dev", "test", "docs", "benchmark"}
"""Those that pipegen itself is developed with."""
_NARROW = {"io"}
"""Those that fit one release of TensorFlow alone, about which another check speaks."""


def check(_: Examination) -> Iterator[Line]:
    """Names the extras whose libraries are all there, and those of which some are missing."""
    found = _declared()
    if not found:
        yield Line("extras", "unknown: pipegen is not installed as a package", "note")
        return
    missing = {extra: [name for name in names if not _installed(name)] for extra, names in found.items()}
    there = [extra for extra, names in missing.items() if not names]
    absent = [f"{extra} ({', '.join(names)})" for extra, names in missing.items() if names]
    fact = f"{', '.join(there) or 'none'} installed" + (f"; not {', '.join(absent)}" if absent else "")
    remedy = (
        f"pip install 'pipegen[{next(extra for extra, names in missing.items() if names)}]' and the like, where you need one"
        if absent
        else ""
    )
    yield Line("extras", fact, remedy=remedy, figures={"missing": missing})


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
