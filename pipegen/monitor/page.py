"""Puts a run on one page: the verdict, the picture, the figures. Writes pages and pictures."""

from __future__ import annotations

import base64
import re
from datetime import datetime, timezone
from pathlib import Path

from pipegen.files import write_whole
from pipegen.monitor.picture import draw, form_of
from pipegen.monitor.series import Curves
from pipegen.page import Page, element, page, table

_STYLE = ".verdict { font-size: 1.1rem; } .drawn { background: #fff; width: 100%; min-width: 40rem; }"


def write_picture(found: Curves, path: Path) -> None:
    """Writes a run as a picture or as a page, by the end of the file's name.

    Raises:
        ValueError: For another end. `OSError` if it cannot be written.
    """
    form = form_of(path)
    if form == "html":
        run_page(found).save(path)
    else:
        write_whole(path, draw(found, form))


def run_page(found: Curves) -> Page:
    """Returns a run as a page.

    Raises:
        ModuleNotFoundError: Without matplotlib.
    """
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
