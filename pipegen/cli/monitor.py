"""`pipegen monitor`."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

import typer

from pipegen.cli.common import as_app
from pipegen.cli.failures import CannotRun, check_parent, keep_silent, refused, report
from pipegen.terminal import aligned, is_terminal, json_text, note, note_between, say

_LIVE = 10.0  # seconds between two lines on a terminal


def monitor(
    command: Annotated[list[str] | None, typer.Argument(metavar="-- COMMAND", help="The command to watch, behind `--`.")] = None,
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="Write the record of the run, as JSON lines.")] = None,
    pictures: Annotated[
        list[str] | None, typer.Option("--picture", metavar="FILE", help="Draw the run: .svg, .png, .pdf or .html; may be repeated.")
    ] = None,
    every: Annotated[float, typer.Option("--every", min=0.1, metavar="SECONDS", help="Time between samples.")] = 1.0,
    live: Annotated[
        float | None, typer.Option("--live", min=0, metavar="SECONDS", help="Time between lines; 10 on a terminal, 0 for none.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no figures when the run is over.")] = False,
    read: Annotated[str | None, typer.Option("--read", metavar="FILE", help="Show an earlier record instead of running anything.")] = None,
    output_format: Annotated[Literal["text", "json"], typer.Option("--format", help="How to print the figures of --read.")] = "text",
) -> None:
    """Run a training and watch it.

    It shows the run's use of cores, memory, disk, network and GPUs, and how long each step waits for its batch. The command runs as
    it would alone: with its terminal, its input and output, and every signal; this command exits with its exit code. The monitor writes
    to standard error. Steps are shown if the command reads batches from a pipegen pipeline. The monitor takes less
    than 1 % of one core. It needs an extra: pip install 'pipegen[monitor]'

    Examples:
      pipegen monitor -- python train.py --epochs 3
      pipegen monitor --out run.jsonl --picture run.html -- python train.py
      pipegen monitor --read run.jsonl --picture run.svg
    """
    from pipegen.observe.picture import form_of
    from pipegen.observe.watch import require

    drawn = [Path(name) for name in pictures or ()]
    try:
        for path in drawn:
            form_of(path)
        require(*(["matplotlib"] if drawn else []), *(["psutil"] if command and read is None else []))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="'--picture'") from None
    except ImportError as error:
        raise CannotRun(*str(error).split(": ")) from None
    if read is not None:
        if command:
            raise typer.BadParameter("it shows an earlier run; leave the command out", param_hint="'--read'")
        _show(Path(read), drawn, output_format)
        return
    if not command:
        raise typer.BadParameter("the command to watch is missing: pipegen monitor -- python train.py", param_hint="'-- COMMAND'")
    _run(command, out, drawn, every, _LIVE if live is None and is_terminal(sys.stderr) else live or 0.0, quiet)


def _run(command: list[str], out: str | None, drawn: list[Path], every: float, live: float, quiet: bool) -> None:
    from pipegen.observe.watch import NotStarted, Watch

    for path in [*drawn, *([Path(out)] if out else [])]:
        check_parent(path)
    with TemporaryDirectory(prefix="pipegen-monitor-") as folder:
        record = Path(out or f"{folder}/run.jsonl") if out or drawn else None
        try:
            with refused("write", out):
                watch = Watch(command, record, every=every, live=live, tell=note_between)
                ended = watch.run()
        except NotStarted as error:
            raise typer.Exit(report(str(error), error.help, error.code)) from None
        if not quiet:
            note("\n  ".join([f"pipegen monitor: {watch.summary.verdict()}", *aligned(watch.summary.facts())]))
        if record is not None and drawn:
            _draw(record, drawn)
        if not quiet and (written := [*([out] if out and watch.record.failed is None else []), *map(str, drawn)]):
            note(f"  wrote {', '.join(written)}")
    keep_silent()  # the command has reported its own end
    raise typer.Exit(ended.code)


def _show(record: Path, drawn: list[Path], output_format: str) -> None:
    from pipegen.observe.run_record import Summary, read_record

    summary = Summary()
    try:
        with refused("read", record):
            for row in read_record(record):
                summary.add(row)
    except ValueError as error:
        raise CannotRun(str(error)) from None
    if not summary.start:
        raise CannotRun(f"{record} is empty", "`pipegen monitor --out FILE -- COMMAND` writes a record")
    text = "\n".join([" ".join(summary.start.get("command", ())), *(f"  {line}" for line in aligned(summary.facts())), summary.verdict()])
    say(json_text(summary.as_json()) if output_format == "json" else text)
    _draw(record, drawn)


def _draw(record: Path, drawn: list[Path]) -> None:
    if not drawn:
        return
    from pipegen.observe.picture import write_picture
    from pipegen.observe.run_record import curves, read_record

    found = curves(read_record(record))
    for path in drawn:
        with refused("write", path):
            write_picture(found, path)


app = as_app(monitor, "monitor", allow_interspersed_args=False)  # options after the command belong to that command
