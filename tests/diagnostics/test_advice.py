"""Advice, followed, works: the lines of every help are put into the spec, which then validates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipegen.compilation import inspect
from pipegen.diagnostics.advice import Advice
from pipegen.diagnostics.diagnostic import Severity

GOLDEN = sorted((Path(__file__).parents[1] / "golden" / "diagnostics").rglob("*.md"))


def errors(spec: Any) -> list[tuple[str, str]]:
    return [(d.code, d.message) for d in inspect(spec).diagnostics if d.severity is Severity.ERROR]


def advice_in(found: Any) -> list[tuple[Any, Advice]]:
    return [(d, line) for d in found for line in d.help if isinstance(line, Advice)]
