"""`pipegen prepare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipegen.cli.common import AllowCode, Sets, SpecFile, allowed_code, load_spec, progress, say, start_tensorflow
from pipegen.cli.failures import CannotRun

if TYPE_CHECKING:
    from pipegen.preparing.options import Prepared


def prepare(
    spec: SpecFile,
    out: Annotated[str, typer.Argument(metavar="OUT", help="The store: a new or empty folder, or one to go on with.")],
    form: Annotated[
        Literal["raw", "jpeg"], typer.Option("--format", help="What to store: rows of pixels, or images encoded again.")
    ] = "raw",
    at: Annotated[str | None, typer.Option("--at", metavar="STEP", help="Stop behind this step; by default the last that works.")] = None,
    shorter_side: Annotated[
        int | None,
        typer.Option("--shorter-side", min=1, metavar="N", help="Shrink images to this side first, which changes what is computed."),
    ] = None,
    quality: Annotated[int, typer.Option("--quality", min=1, max=100, help="The quality of a JPEG.")] = 90,
    verify: Annotated[bool, typer.Option("--verify", help="Compare every checksum, and some examples with what the spec gives.")] = False,
    allow_code: AllowCode = [],  # noqa: B006 - Typer makes a list of its own
    sets: Sets = [],  # noqa: B006 - Typer makes a list of its own
) -> None:
    """Compute once what never changes, and store it.

    The steps up to the last deterministic one are run on every example, and what comes out is stored in shards, with labels and
    all features. A spec is written beside it that reads the store and does the rest: with the same splits, ids and draws. `raw`
    stores rows of pixels, which are equal to the spec's, bit for bit; `--shorter-side` and `jpeg` take less room and change what
    is computed. What was stopped goes on when the same command runs again.

    Examples:
      pipegen prepare flowers.pipegen.yaml prepared/
      pipegen prepare flowers.pipegen.yaml prepared/ --shorter-side 256 --verify
      pipegen prepare flowers.pipegen.yaml prepared/ --format jpeg --shorter-side 256 --quality 90
    """
    allowed = allowed_code(allow_code)
    loaded = load_spec(spec, sets)
    start_tensorflow()
    from pipegen.api.preparing import prepare as run

    with progress("preparing") as told:
        try:
            done = run(
                loaded,
                out,
                format=form,
                at=at,
                shorter_side=shorter_side,
                quality=quality,
                verify=verify,
                allow_code=allowed,
                progress=told,
            )
        except FileExistsError as error:
            raise CannotRun(f"cannot prepare into {out}: {error.strerror}") from None
    _tell(done)


def _tell(done: Prepared) -> None:
    from pipegen.spec.units import format_bytes

    shards = f"{done.shards} shard{'s' * (done.shards != 1)}"
    there = f", of which {done.shards - done.written} were there" if 0 < done.written < done.shards else ""
    there = ", all of them there already" if done.written == 0 else there
    say(f"{done.examples:,} examples in {shards}{there}: {format_bytes(done.bytes)}")
    say(f"  done: {done.steps}; left: {done.rest}")
    if done.changes:
        for said in done.changes:
            say(f"  changed: {said}; `pipegen diff` says so, too")
    else:
        say("  equal to the spec, bit for bit: the same pixels, splits, ids and draws")
    if done.verified is not None:
        say(f"  verified: every checksum, and {done.verified} examples compared with what the spec gives")
    say(f"wrote {done.spec}")
