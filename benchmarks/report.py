"""What is shown: tables and verdicts for people, JSON for everything else.

`python -m benchmarks.report A.json B.json --chart chart.svg` shows several runs as one, so that recipes can be run in pieces.
A ratio stays within its run: a recipe is taken from one of them, whole.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.environment import environment
from benchmarks.measure import ratio
from benchmarks.memory import KERAS
from benchmarks.targets import PEAK_BESIDE_KERAS, PEAK_MEMORY, TARGETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchmarks.data import Dataset
    from benchmarks.measure import Effort, Row
    from benchmarks.targets import Target

Results = dict[str, Any]
"""What the JSON holds: the environment, the effort, a record for each row, the targets, and each recipe's peak memory."""
Record = dict[str, Any]
"""A row of the JSON: what one system did on one recipe."""
Peaks = dict[str, int | str]
"""The peak memory of each system on a recipe: bytes above the imported libraries, or why they are not known."""


def results(data: Dataset, effort: Effort) -> Results:
    """A run of which nothing has been measured yet."""
    return add({"environment": environment(data), "effort": vars(effort), "rows": [], "targets": [], "peak_memory": {}}, [])


def add(found: Results, more: Iterable[Record]) -> Results:
    """The same run with more records, and what they say about the targets."""
    found["rows"] += more
    found["targets"] = [vars(target) | {"reached": _reached(target, found["rows"])} for target in TARGETS]
    return found


def merge(runs: Sequence[Results]) -> Results:
    """Several runs as one. What stands in several is taken from the last of them.

    Raises:
        ValueError: If they ran on different machines.
    """
    machines = {(run["environment"]["cpu"], run["environment"]["cores"]) for run in runs}
    if len(machines) > 1:
        raise ValueError(f"these ran on different machines: {', '.join(f'{cpu}, {cores} cores' for cpu, cores in sorted(machines))}")
    by_recipe: dict[str, list[Record]] = {}
    for run in runs:
        for name in dict.fromkeys(row["recipe"] for row in run["rows"]):
            by_recipe[name] = [row for row in run["rows"] if row["recipe"] == name]
    memory = {name: peaks for run in runs for name, peaks in run["peak_memory"].items()}
    merged = runs[-1] | {"rows": [], "peak_memory": memory, "runs": [_origin(run) for run in runs]}
    return add(merged, (row for rows in by_recipe.values() for row in rows))


def _origin(run: Results) -> dict[str, Any]:
    """What belongs to one run alone."""
    return {"environment": run["environment"], "effort": run["effort"], "recipes": list(dict.fromkeys(r["recipe"] for r in run["rows"]))}


def write(out: Path | None, found: Results) -> None:
    """Write the JSON if it is wanted, in one piece: a run that is cut off leaves what it had written before."""
    if out is not None:
        half = out.with_name(f"{out.name}.part")
        half.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        half.replace(out)


def conclude(found: Results, out: Path | None, chart: Path | None, console: Console) -> None:
    """Print the verdicts; write the JSON and draw the chart where they are wanted."""
    if found["peak_memory"]:
        console.print(memory_table(found["peak_memory"]))
    for line in (*verdicts(found["rows"]), *memory_lines(found["peak_memory"])):
        console.print(line, highlight=False, soft_wrap=True)
    if out is not None:
        write(out, found)
        console.print(f"Written to {out}.", highlight=False)
    if chart is not None:
        from benchmarks.chart import draw

        try:
            draw(found, chart)
        except ImportError:
            console.print("No chart: Matplotlib is not installed.")
        else:
            console.print(f"Drawn to {chart}.", highlight=False)


def records(group: Sequence[Row]) -> list[Record]:
    """The rows of one recipe, as they stand in the JSON."""
    baseline = next((row for row in group if row.system.name == row.recipe.baseline), None)
    return [_record(row, baseline) for row in group]


def _record(row: Row, baseline: Row | None) -> Record:
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
        "processor_ms": row.processor_ms,
        "ratio": None if baseline is None else row.ratio(baseline),
        "ratio_to": recipe.baseline,
        "first_batch_s": row.first_batch_s,
        "note": row.system.note(recipe),
        "problem": row.problem or None,
    }


def table(group: Sequence[Record]) -> Table:
    """The figures of one recipe side by side, fastest first."""
    about = group[0]
    title = f"{about['recipe']}: {about['summary']}\n{about['size']} px, batches of {about['batch']}; ratios are to {about['ratio_to']}"
    shown = Table(title=title, title_justify="left", show_lines=True)
    shown.add_column("system")
    for column in ("images/s", "range", "ratio", "CPU ms", "first batch"):
        shown.add_column(column, justify="right", no_wrap=True)
    for row in sorted(group, key=lambda row: -(row["median_images_per_s"] or 0)):
        note = row["problem"] or row["note"]
        name = Text(row["system"], "bold" if row["system"] == "pipegen" else "") + (Text(f"\n{note}", "dim") if note else Text())
        rates = row["images_per_s"]
        if not rates:
            shown.add_row(name, "–", "", "", "", "")
            continue
        shown.add_row(
            name,
            f"{row['median_images_per_s']:,.0f}",
            f"{min(rates):,.0f}–{max(rates):,.0f}",
            "–" if row["ratio"] is None else f"{row['ratio']:.2f}",
            f"{statistics.median(row['processor_ms']):.2f}" if row["processor_ms"] else "–",
            f"{row['first_batch_s']:.1f} s",
        )
    return shown


def verdicts(rows: Sequence[Record]) -> list[str]:
    """For each target whose two systems ran, whether it is reached; and where a peer is ahead of pipegen."""
    lines = []
    for target in TARGETS:
        reached = _reached(target, rows)
        if reached is not None:
            word = "reached" if reached >= target.least else "missed"
            lines.append(f"{target.recipe}: {reached:.2f} × {target.peer}; the target of {target.least:g} × is {word}")
    return lines + [line for name in dict.fromkeys(row["recipe"] for row in rows) if (line := _ahead(name, rows))]


def memory_table(memory: Mapping[str, Peaks]) -> Table:
    """The peaks of each recipe, in MiB, and pipegen's beside Keras'."""
    names = list(dict.fromkeys(name for peaks in memory.values() for name in peaks))
    shown = Table(title="peak memory above the imported libraries, MiB", title_justify="left")
    shown.add_column("recipe")
    for column in (*names, "pipegen / Keras"):
        shown.add_column(column, justify="right")
    for recipe, peaks in memory.items():
        known = {name: peak for name, peak in peaks.items() if isinstance(peak, int)}
        found = keras_ratio(peaks)
        cells = (f"{known[name] / 2**20:,.0f}" if name in known else "–" for name in names)
        shown.add_row(recipe, *cells, "–" if found is None else f"{found:.2f}")
    return shown


def memory_lines(memory: Mapping[str, Peaks]) -> list[str]:
    """Pipegen's peak on each recipe against the targets, and why a peak is not known."""
    lines = []
    for recipe, peaks in memory.items():
        lines += [f"{recipe}: peak memory of {name} unknown: {peak}" for name, peak in peaks.items() if isinstance(peak, str)]
        peak, found = peaks.get("pipegen"), keras_ratio(peaks)
        if isinstance(peak, int):
            word = "within" if peak <= PEAK_MEMORY else "above"
            lines.append(f"{recipe}: {peak / 2**30:.2f} GiB above the imported libraries, {word} {PEAK_MEMORY / 2**30:g} GiB")
        if found is not None:
            word = "within" if found <= PEAK_BESIDE_KERAS else "above"
            lines.append(f"{recipe}: {found:.2f} × the peak memory of Keras, {word} {PEAK_BESIDE_KERAS:g} ×")
    return lines


def keras_ratio(peaks: Peaks) -> float | None:
    """Pipegen's peak divided by that of Keras, of the first of its ways that ran; `None` if either is not known."""
    mine = peaks.get("pipegen")
    theirs = next((peak for peak in map(peaks.get, KERAS) if isinstance(peak, int)), None)
    return mine / theirs if isinstance(mine, int) and theirs else None


def _ahead(recipe: str, rows: Iterable[Record]) -> str | None:
    """Which peers are faster than pipegen on a recipe."""
    rates = {row["system"]: row["images_per_s"] for row in rows if row["recipe"] == recipe and not row["limit"]}
    ratios = {name: ratio(theirs, rates.get("pipegen", [])) for name, theirs in rates.items()}
    ahead = [f"{name} ({found:.2f} ×)" for name, found in ratios.items() if found is not None and found > 1]
    return f"{recipe}: ahead of pipegen: {', '.join(ahead)}" if ahead else None


def _reached(target: Target, rows: Iterable[Record]) -> float | None:
    rates = {row["system"]: row["images_per_s"] for row in rows if row["recipe"] == target.recipe}
    return ratio(rates.get("pipegen", []), rates.get(target.peer, []))


def main(argv: list[str] | None = None) -> int:
    """Show runs as one. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description="Show the JSON of several runs as one.")
    parser.add_argument("results", type=Path, nargs="+", help="what `python -m benchmarks --out` wrote; of a recipe in several, the last")
    parser.add_argument("--out", type=Path, help="write them as one to this JSON file")
    parser.add_argument("--chart", type=Path, help="draw the rates to this PNG or SVG file; needs Matplotlib")
    args = parser.parse_args(argv)
    console = Console()
    try:
        merged = merge([json.loads(path.read_text(encoding="utf-8")) for path in args.results])
    except (OSError, ValueError) as error:
        console.print(f"[red]error[/red]: {error}")
        return 2
    for name in dict.fromkeys(row["recipe"] for row in merged["rows"]):
        console.print(table([row for row in merged["rows"] if row["recipe"] == name]))
    conclude(merged, args.out, args.chart, console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
