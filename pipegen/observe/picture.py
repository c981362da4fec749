"""The picture of a run, and a page with its verdict, picture and figures."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pipegen.files import write_whole
from pipegen.observe.run_record import SAMPLE, Curves
from pipegen.page import Page, element, page, table

_BLUE, _ORANGE, _GREEN, _PINK, _SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9"
"""Colours that colour-blind people can tell apart (Okabe and Ito, Color Universal Design, 2008)."""
_COLOURS = (_BLUE, _ORANGE, _GREEN, _PINK, _SKY)
_FEW = 400  # the most steps that are drawn as dots, not as a curve
FORMS = {".svg": "svg", ".png": "png", ".pdf": "pdf"}


def draw(found: Curves, form: str = "svg") -> bytes:
    """Draws a run as `svg`, `png` or `pdf`, by matplotlib; returns the picture's bytes."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    sampled = [(_used, 1.0), (_cores, 1.0), (_memory, 1.0), (_moved, 1.0)] if found.samples.rows else []
    parts: list[tuple[Callable[[Any, Curves, float], None], float]] = [*sampled]
    parts += [(_gpus, 1)] if found.summary.start.get("gpus") and sampled else []
    parts += [(_waits, 1.2)] if found.waits else []
    parts = parts or [(_nothing, 1)]
    seconds = found.summary.seconds
    scale, unit = (1.0, "seconds") if seconds < 300 else (60.0, "minutes") if seconds < 10_800 else (3600.0, "hours")
    style: dict[Any, Any] = {"font.size": 9, "legend.frameon": False, "svg.hashsalt": "pipegen"}
    with rc_context(style | dict.fromkeys(("axes.spines.top", "axes.spines.right"), False)):
        figure = Figure(figsize=(9.5, 1.75 * sum(share for _, share in parts)), layout="constrained")
        panels: Any = figure.subplots(len(parts), 1, sharex=True, height_ratios=[share for _, share in parts], squeeze=False)[:, 0]
        for panel, (part, _) in zip(panels, parts, strict=True):
            part(panel, found, scale)
            for at, _epoch in found.epochs:
                panel.axvline(at / scale, color="0.75", linewidth=0.6, zorder=0)
        panels[-1].set_xlim(0, max(seconds / scale, 1e-3))
        panels[-1].set_xlabel(f"time in {unit}" + ("; a gray line where an epoch begins" if found.epochs else ""))
        made = io.BytesIO()
        figure.savefig(made, format=form, dpi=130, metadata={"Date": None} if form == "svg" else None)
    return made.getvalue()


def form_of(path: Path) -> str:
    """Finds the format of a picture by its file's name. Raises `ValueError` for an unknown suffix."""
    if path.suffix in (".html", ".htm"):
        return "html"
    if path.suffix not in FORMS:
        raise ValueError(f"a picture's name ends in .html, {', '.join(FORMS)}, and {str(path)!r} does not")
    return FORMS[path.suffix]


def _nothing(panel: Any, _found: Curves, _scale: float) -> None:
    panel.text(0.5, 0.5, "the run ended before the first sample", ha="center", transform=panel.transAxes)
    panel.set_yticks([])


def _used(panel: Any, found: Curves, scale: float) -> None:
    _plot(panel, found, scale, 1, {"cores": ("cores that the run uses", _BLUE)})
    _finish(panel, "cores", limit=(found.summary.start.get("cores_granted"), "cores that it may use"))


def _cores(panel: Any, found: Curves, scale: float) -> None:
    each = [row[1:] for row in found.cores.rows]
    edges = [0.0, *(t / scale for t in found.cores.column(0))]
    panel.pcolormesh(edges, range(len(each[0]) + 1), list(zip(*each, strict=True)), cmap="Blues", vmin=0, vmax=100, rasterized=True)
    step = 1 + len(each[0]) // 12
    panel.set_yticks([0.5 + core for core in range(0, len(each[0]), step)], range(0, len(each[0]), step))
    panel.set_ylabel("core")
    panel.set_title("each core of the machine; white is idle, dark is busy", loc="left", fontsize=9, pad=3)


def _memory(panel: Any, found: Curves, scale: float) -> None:
    curves = {"rss": ("the run's processes", _BLUE)}
    curves |= {"cgroup": ("its container", _GREEN)} if any(value == value for value in found.column("cgroup")) else {}
    _plot(panel, found, scale, 2**30, curves)
    _finish(panel, "memory, GiB", limit=((found.summary.start.get("memory_granted") or 0) / 2**30, "the container's limit"))


def _moved(panel: Any, found: Curves, scale: float) -> None:
    disk = {"read": ("read from disk", _BLUE), "written": ("written to disk", _ORANGE)}
    network = {"received": ("received by network", _GREEN), "sent": ("sent by network", _PINK)}
    _plot(panel, found, scale, 1e6, disk | network, linewidth=1.1)
    _finish(panel, "MB/s")


def _gpus(panel: Any, found: Curves, scale: float) -> None:
    times = [t / scale for t in found.column("t")]
    for number, gpu in enumerate(found.summary.start["gpus"]):
        colour = _COLOURS[number % len(_COLOURS)]
        at = len(SAMPLE) + 2 * number
        panel.plot(times, found.samples.column(at), color=colour, label=f"GPU {number} busy")
        if gpu["memory"]:
            used = [100 * value / gpu["memory"] for value in found.samples.column(at + 1)]
            panel.plot(times, used, color=colour, linestyle=":", label="its memory")
    _finish(panel, "GPU, %", 105)


def _waits(panel: Any, found: Curves, scale: float) -> None:
    for (split, series), colour in zip(found.waits.items(), _COLOURS * (1 + len(found.waits)), strict=False):
        times = [t / scale for t in series.column(0)]
        share = [100 * value for value in series.column(1)]
        dots = {"linestyle": "none", "marker": ".", "markersize": 4} if len(share) <= _FEW else {"linewidth": 0.8}
        panel.plot(times, share, color=colour, label=split or "unnamed", **dots)
    _finish(panel, "waited, % of a step", 105)


def _plot(panel: Any, found: Curves, scale: float, unit: float, curves: Mapping[str, tuple[str, str]], **style: Any) -> None:
    """Draws figures of `SAMPLE` in a unit, each with its name in the legend and its colour."""
    for name, (label, colour) in curves.items():
        values = [value / unit for value in found.column(name)]
        panel.plot([t / scale for t in found.column("t")], values, color=colour, label=label, **style)


def _finish(panel: Any, label: str, top: float | None = None, limit: tuple[float | None, str] = (None, "")) -> None:
    """Labels a panel, draws a limit if there is one, and puts the legend above the curves."""
    if limit[0]:
        panel.axhline(limit[0], color=_ORANGE, linestyle=":", label=limit[1])
    panel.set_ylim(0, top)
    panel.set_ylabel(label)
    panel.legend(loc="lower left", bbox_to_anchor=(0, 0.98), ncols=6, borderaxespad=0, handlelength=1.4, columnspacing=1.4)


_STYLE = ".verdict { font-size: 1.1rem; } .drawn { background: #fff; width: 100%; min-width: 40rem; }"


def write_picture(found: Curves, path: Path) -> None:
    """Writes a run as a picture or as a page, by the suffix of the file."""
    form = form_of(path)
    if form == "html":
        run_page(found).save(path)
    else:
        write_whole(path, draw(found, form))


def run_page(found: Curves) -> Page:
    """Makes the page of a run."""
    summary = found.summary
    command, verdict = " ".join(summary.start.get("command", ())), summary.verdict()
    when = datetime.fromtimestamp(summary.start["time"], timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    said = [element("code", part) if i % 2 else part for i, part in enumerate(re.split("`([^`]+)`", verdict))]
    drawing = f"data:image/svg+xml;base64,{base64.b64encode(draw(found)).decode()}"
    image = element("img", src=drawing, alt=f"The run over time: cores, memory, disk, network, GPUs and waits. {verdict}", class_="drawn")
    return page(
        f"{command}: a run",
        element("h1", element("code", command)),
        element("p", f"watched by pipegen monitor, {when}", class_="quiet"),
        element("p", *said, class_="verdict"),
        element("div", image, class_="wide"),
        table((), summary.facts()),
        style=_STYLE,
    )
