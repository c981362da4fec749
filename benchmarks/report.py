"""What is shown: tables and verdicts for people, JSON for everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from benchmarks.environment import environment
from benchmarks.targets import PEAK_MEMORY, TARGETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchmarks.data import Dataset
    from benchmarks.measure import Effort, Row
    from benchmarks.recipes import Recipe
    from benchmarks.targets import Target

    Memory = Mapping[str, int | str]
    """By recipe: bytes above the imported TensorFlow, or why that is not known."""


def to_json(rows: Sequence[Row], data: Dataset, effort: Effort, memory: Memory) -> dict[str, Any]:
    """Everything that was measured."""
    return {
        "environment": environment(data),
        "effort": vars(effort),
        "rows": [_record(row, rows) for row in rows],
        "targets": [vars(target) | {"reached": _reached(target, rows)} for target in TARGETS],
        "peak_memory": dict(memory),
    }


def table(recipe: Recipe, rows: Sequence[Row]) -> Table:
    """The figures of one recipe side by side, fastest first."""
    title = f"{recipe.name}: {recipe.summary}\n{recipe.size} px, batches of {recipe.batch}; ratios are to {recipe.baseline}"
    shown = Table(title=title, title_justify="left", show_lines=True)
    shown.add_column("system")
    for column in ("images/s", "range", "ratio", "first batch"):
        shown.add_column(column, justify="right", no_wrap=True)
    mine = [row for row in rows if row.recipe is recipe]
    for row in sorted(mine, key=lambda row: -(row.median or 0)):
        note = row.problem or row.system.note(recipe)
        name = Text(row.system.name, "bold" if row.system.name == "pipegen" else "") + (Text(f"\n{note}", "dim") if note else Text())
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


def verdicts(rows: Sequence[Row]) -> list[str]:
    """For each target whose two systems ran, whether it is reached; and where a peer is ahead of pipegen."""
    lines = []
    for target in TARGETS:
        reached = _reached(target, rows)
        if reached is not None:
            word = "reached" if reached >= target.least else "missed"
            lines.append(f"{target.recipe}: {reached:.2f} × {target.peer}; the target of {target.least:g} × is {word}")
    return lines + [line for recipe in dict.fromkeys(row.recipe for row in rows) if (line := _ahead(recipe, rows))]


def memory_lines(memory: Memory) -> list[str]:
    """Each recipe's peak, against the target."""
    lines = []
    for recipe, peak in memory.items():
        if isinstance(peak, str):
            lines.append(f"{recipe}: peak memory unknown: {peak}")
            continue
        word = "within" if peak <= PEAK_MEMORY else "above"
        lines.append(f"{recipe}: {peak / 2**30:.2f} GiB above the imported TensorFlow, {word} {PEAK_MEMORY / 2**30:g} GiB")
    return lines


def _ahead(recipe: Recipe, rows: Iterable[Row]) -> str | None:
    """Which peers are faster than pipegen on a recipe."""
    group = {row.system.name: row for row in rows if row.recipe is recipe}
    if "pipegen" not in group or group["pipegen"].median is None:
        return None
    ratios = {name: row.ratio(group["pipegen"]) for name, row in group.items() if not row.system.is_limit}
    ahead = [f"{name} ({ratio:.2f} ×)" for name, ratio in ratios.items() if ratio is not None and ratio > 1]
    return f"{recipe.name}: ahead of pipegen: {', '.join(ahead)}" if ahead else None


def _reached(target: Target, rows: Iterable[Row]) -> float | None:
    group = {row.system.name: row for row in rows if row.recipe.name == target.recipe}
    if "pipegen" not in group or target.peer not in group:
        return None
    return group["pipegen"].ratio(group[target.peer])


def _ratio(row: Row, rows: Iterable[Row]) -> float | None:
    baseline = next((r for r in rows if r.recipe is row.recipe and r.system.name == row.recipe.baseline), None)
    return None if baseline is None else row.ratio(baseline)


def _record(row: Row, rows: Sequence[Row]) -> dict[str, Any]:
    recipe = row.recipe
    return {
        "recipe": recipe.name,
        "summary": recipe.summary,
        "data": recipe.data,
        "size": recipe.size,
        "batch": recipe.batch,
        "steps": {type(step).__name__: vars(step) for step in recipe.steps},
        "system": row.system.name,
        "limit": row.system.is_limit,
        "images_per_s": row.rates,
        "median_images_per_s": row.median,
        "ratio": _ratio(row, rows),
        "ratio_to": recipe.baseline,
        "first_batch_s": row.first_batch_s,
        "note": row.system.note(recipe),
        "problem": row.problem or None,
    }
