"""What is shown: a table for people, JSON for everything else."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.measure import Effort, Row
    from benchmarks.recipes import Recipe
    from benchmarks.systems import Photos

PACKAGES = ("tensorflow", "keras", "numpy", "scipy", "pillow")


def environment(photos: Photos) -> dict[str, Any]:
    """The machine, the software and the photographs that figures belong to."""
    sizes = [os.stat(file).st_size for file in photos.files]
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "photos": {"count": len(sizes), "mean_bytes": round(sum(sizes) / len(sizes)), "classes": len(photos.classes)},
    }


def to_json(rows: Sequence[Row], photos: Photos, effort: Effort) -> dict[str, Any]:
    """Everything that was measured."""
    return {"environment": environment(photos), "effort": vars(effort), "rows": [_record(row, rows) for row in rows]}


def table(recipe: Recipe, rows: Sequence[Row]) -> Table:
    """The figures of one recipe side by side."""
    title = f"{recipe.name}: {recipe.summary}\n{recipe.size} px, batches of {recipe.batch}; ratios are to {recipe.baseline}"
    shown = Table(title=title, title_justify="left", show_lines=True)
    shown.add_column("system")
    for column in ("images/s", "range", "ratio", "first batch"):
        shown.add_column(column, justify="right", no_wrap=True)
    for row in (row for row in rows if row.recipe is recipe):
        note = row.problem or row.system.note(recipe)
        name = Text(row.system.name) + (Text(f"\n{note}", "dim") if note else Text())
        if row.median is None or row.first_batch_s is None:
            shown.add_row(name, "–", "", "", "")
            continue
        ratio = _ratio(row, rows)
        shown.add_row(
            name,
            f"{row.median:,.0f}",
            f"{min(row.rates):,.0f}–{max(row.rates):,.0f}",
            "–" if ratio is None else f"{ratio:.2f}",
            f"{row.first_batch_s:.1f} s",
        )
    return shown


def verdict(recipe: Recipe, rows: Sequence[Row]) -> str | None:
    """Whether pipegen reached its target on a recipe; `None` when it or the baseline did not run."""
    reached = next((_ratio(row, rows) for row in rows if row.recipe is recipe and row.system.name == "pipegen"), None)
    if reached is None:
        return None
    word = "reached" if reached >= recipe.target else "missed"
    return f"{recipe.name}: {reached:.2f} × {recipe.baseline}; the target of {recipe.target:g} × is {word}"


def _ratio(row: Row, rows: Iterable[Row]) -> float | None:
    baseline = next((r for r in rows if r.recipe is row.recipe and r.system.name == row.recipe.baseline), None)
    return None if baseline is None else row.ratio(baseline)


def _record(row: Row, rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "recipe": row.recipe.name,
        "recipe_arguments": vars(row.recipe),
        "system": row.system.name,
        "limit": row.system.is_limit,
        "images_per_s": row.rates,
        "median_images_per_s": row.median,
        "ratio": _ratio(row, rows),
        "ratio_to": row.recipe.baseline,
        "first_batch_s": row.first_batch_s,
        "note": row.system.note(row.recipe),
        "problem": row.problem or None,
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())
