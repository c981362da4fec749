"""The rates as a picture: `python -m benchmarks.chart results.json chart.svg`, or `--chart` of the benchmark itself."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

COLOURS = {"pipegen": "#d9480f", "limit": "#ced4da", "peer": "#4c6ef5"}
COLUMNS = 3


def draw(results: dict[str, Any], out: Path) -> None:
    """Write one panel per recipe, with a bar for each system that ran, to a PNG or SVG file.

    Raises:
        ImportError: If Matplotlib is not installed.
    """
    from matplotlib.figure import Figure

    recipes: dict[str, list[dict[str, Any]]] = {}
    for row in results["rows"]:
        if row["median_images_per_s"] is not None:
            recipes.setdefault(row["recipe"], []).append(row)
    lines = -(-len(recipes) // COLUMNS) or 1
    figure = Figure(figsize=(6.0 * COLUMNS, 3.4 * lines), layout="constrained")
    for i, (name, rows) in enumerate(recipes.items()):
        _panel(figure.add_subplot(lines, COLUMNS, i + 1), name, sorted(rows, key=lambda row: row["median_images_per_s"]))
    machine = results["environment"]
    version = machine["packages"]["tensorflow"]
    figure.suptitle(f"images per second · {machine['cpu']}, {machine['cores']} cores · TensorFlow {version} · {machine['date'][:10]}")
    figure.savefig(out, dpi=110)


def _panel(axes: Any, name: str, rows: list[dict[str, Any]]) -> None:
    """The bars of one recipe, the fastest on top, with the range over the repeats."""
    medians = [row["median_images_per_s"] for row in rows]
    low = [median - min(row["images_per_s"]) for row, median in zip(rows, medians, strict=True)]
    high = [max(row["images_per_s"]) - median for row, median in zip(rows, medians, strict=True)]
    kinds = ["limit" if row["limit"] else "pipegen" if row["system"] == "pipegen" else "peer" for row in rows]
    bars = axes.barh([row["system"] for row in rows], medians, color=[COLOURS[kind] for kind in kinds])
    axes.errorbar(medians, range(len(rows)), xerr=[low, high], fmt="none", ecolor="#343a40", elinewidth=1)
    axes.bar_label(bars, [f" {median:,.0f}" for median in medians], fontsize=8)
    axes.set_title(f"{name} ({rows[0]['size']} px, batches of {rows[0]['batch']})", fontsize=10)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.15)


def main(argv: list[str] | None = None) -> int:
    """Draw the chart of a run. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chart", description="Draw the chart of a run's JSON.")
    parser.add_argument("results", type=Path, help="what `python -m benchmarks --out` wrote")
    parser.add_argument("out", type=Path, help="the picture: .png or .svg")
    args = parser.parse_args(argv)
    draw(json.loads(args.results.read_text(encoding="utf-8")), args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
