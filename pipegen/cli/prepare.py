"""`pipegen fit` and `prepare`: work that is done once, and stored."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pipegen.cli.common import NOTHING, Quality, SpecFile, WithCode, start_tensorflow
from pipegen.cli.failures import CannotRun
from pipegen.preparing.options import OF_RECORDS, Encoding, Format, Prepared, not_here
from pipegen.terminal import aligned, progress, say

if TYPE_CHECKING:
    from pipegen.phases.specs import Learned


def fit(
    spec: SpecFile,
    again: Annotated[bool, typer.Option("--again", help="Measure again, even if the numbers are stored.")] = False,
    output_format: Annotated[Literal["text", "json"], typer.Option("--format", help="How to print the numbers.")] = "text",
    given: WithCode = NOTHING,
) -> None:
    """Measure what steps learn from the training split, and store it.

    Steps such as `standardize: {statistics: featurewise}` and `whiten` need the mean and the spread of the training data. This
    command measures them in one pass over the training split, without augmentation, so that `pipegen.build` starts at once. It stores
    them in the cache folder of the spec, else of the user. They are valid until the data, the training split or the steps before change.

    Examples:
      pipegen fit flowers.pipegen.yaml
      pipegen fit flowers.pipegen.yaml --again --format json
    """
    from pipegen.api.fitting import fit as fit_spec
    from pipegen.ops.families.fitted import FittedTransform
    from pipegen.phases.compilation import bind, collect_data
    from pipegen.phases.user_functions import with_functions
    from pipegen.plan.evaluation_plans import learning_steps
    from pipegen.plan.recipe import step_path

    loaded = given.load(spec)
    learned: tuple[Learned, ...] = ()
    if learning_steps(loaded.model):
        loaded = with_functions(loaded, tuple(given.allow_code))
        with progress("listing") as listed:
            manifest = collect_data(loaded, listed)
        start_tensorflow()
        learned = fit_spec(bind(loaded, manifest), again=again).learned
    if output_format == "json":
        steps: list[dict[str, Any]] = []
        for found in learned:
            step = {"step": loaded.model.transforms[found.step].op, "path": ["transforms", found.step], "feature": found.feature}
            stored = {"file": str(found.file) if found.file is not None else None, "measured": found.measured}
            steps.append({**step, "examples": found.examples, **found.numbers.as_json(), **stored})
        say(json.dumps({"version": 1, "steps": steps}, indent=2))
        return
    if not learned:
        say("nothing to fit: no step of this spec learns from the data")
    for found in learned:
        op = loaded.model.transforms[found.step]
        say(f"`{op.op}` ({loaded.where(step_path(found.step, op))}) of `{found.feature}`: {found.origin}")
        for line in aligned(found.numbers.figures().items(), gap=" "):
            say(f"  {line}")
        if isinstance(op, FittedTransform) and (written := op.written_down(found.numbers)) is not None:
            say(f"  as fixed numbers: {written}")


def prepare(
    spec: SpecFile,
    out: Annotated[str, typer.Argument(metavar="OUT", help="The store: a new or empty folder, or one to continue.")],
    beam_options: Annotated[
        list[str] | None,
        typer.Argument(metavar="BEAM_OPTION", help="Options of Apache Beam and its runners, behind `--`.", show_default=False),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="Store rows of pixels, encoded images, or records for other programs.")] = "raw",
    at: Annotated[str | None, typer.Option("--at", metavar="STEP", help="Stop behind this step; by default the last possible one.")] = None,
    shorter_side: Annotated[
        int | None,
        typer.Option("--shorter-side", min=1, metavar="N", help="Shrink images to this shorter side first; changes values."),
    ] = None,
    quality: Quality = 90,
    encoding: Annotated[
        Encoding | None,
        typer.Option(
            "--encoding",
            help="Encoding of images in records: the original files, JPEG, or lossless PNG. By default the original files"
            " if only decoding comes before the cut, else JPEG.",
            show_default=False,
        ),
    ] = None,
    runner: Annotated[Literal["local", "beam"], typer.Option("--runner", help="Run here, or on workers of Apache Beam.")] = "local",
    verify: Annotated[bool, typer.Option("--verify", help="Check every checksum, and compare some examples with the spec's.")] = False,
    given: WithCode = NOTHING,
) -> None:
    """Compute once what never changes, and store it.

    The steps up to the last deterministic one run on every example, and the results are stored in shards, with labels and
    all features. A spec beside them reads the store and runs the rest, with the same splits, ids and draws. `raw`
    stores rows of pixels, equal to the spec's bit for bit; `--shorter-side` and `jpeg` need less space and change the values
    computed. Sounds are stored as WAV of their feature's rate, so that FLAC, MP3 and other rates are decoded and resampled
    once. Interrupted work continues when the same command runs again.

    `tfrecord`, `webdataset` and `array_record` write whole records that other programs read, too: the original files if only
    decoding comes before the cut, else JPEGs, or with `--encoding png` the spec's values, bit for bit. `--runner beam`
    distributes the shards to workers that see the data and OUT under the same paths.

    Examples:
      pipegen prepare flowers.pipegen.yaml prepared/
      pipegen prepare flowers.pipegen.yaml prepared/ --shorter-side 256 --verify
      pipegen prepare flowers.pipegen.yaml prepared/ --format jpeg --shorter-side 256 --quality 90
      pipegen prepare flowers.pipegen.yaml shards/ --format tfrecord --encoding png
      pipegen prepare flowers.pipegen.yaml prepared/ --runner beam -- --runner=FlinkRunner --parallelism=8
    """
    if beam_options and runner != "beam":
        raise typer.BadParameter(f"{beam_options[0]!r} is an option of Apache Beam; it needs `--runner beam`", param_hint="'BEAM_OPTION'")
    elsewhere = not_here(out)
    if elsewhere is not None:
        raise typer.BadParameter(elsewhere, param_hint="'OUT'")
    if encoding not in (None, "jpeg") and form not in OF_RECORDS:
        raise typer.BadParameter(f"needs `--format` {', '.join(sorted(OF_RECORDS))}, got {form}", param_hint="'--encoding'")
    loaded = given.load(spec)
    start_tensorflow()
    from pipegen.api.tasks import prepare as run

    with progress("preparing") as told:
        try:
            done = run(
                loaded,
                out,
                format=form,
                at=at,
                shorter_side=shorter_side,
                quality=quality,
                encoding=encoding,
                verify=verify,
                allow_code=given.allow_code,
                runner=runner,
                beam_options=beam_options or (),
                progress=told,
            )
        except FileExistsError as error:
            raise CannotRun(f"cannot prepare into {out}: {error.strerror}") from None
    _tell(done)


def _tell(done: Prepared) -> None:
    from pipegen.spec.units import format_bytes

    shards = f"{done.shards} shard{'s' * (done.shards != 1)}"
    there = f", {done.shards - done.written} of them from an earlier run" if 0 < done.written < done.shards else ""
    there = ", all from an earlier run" if done.written == 0 else there
    say(f"{done.examples:,} examples in {shards}{there}: {format_bytes(done.bytes)}")
    say(f"  done: {done.steps}; left: {done.rest}")
    if done.changes:
        for said in done.changes:
            say(f"  changed: {said}; see also `pipegen diff`")
    elif done.rounded:
        say("  equal to the spec: the same splits, ids and draws, and values but for rounding")
    else:
        say("  equal to the spec, bit for bit: the same values, splits, ids and draws")
    if done.left_out:
        say(f"  left out: {done.left_out:,} damaged, by `errors: {{decode: {{skip: …}}}}`; without them, training has another order")
    elif done.reordered:
        say("  another order in training: shuffle windows count stored bytes, and a store is not read block by block")
    if done.verified is not None:
        say(f"  verified: every checksum, and {done.verified} examples compared with those of the spec")
    say(f"wrote {done.spec}")
