"""`pipegen explain` and `diff`: what a spec compiles to, and what a change means."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipegen.cli.common import NOTHING, Given, SpecFile, SplitName, WithSets, WithStage, choose_split, hand_over, read_stdin
from pipegen.cli.failures import FAILED, FOUND, OK, CannotRun, print_findings
from pipegen.terminal import bold, json_text, note, say

if TYPE_CHECKING:
    from pipegen.page import Page
    from pipegen.phases.specs import Spec
    from pipegen.views.plan_page import Shown


def explain(
    spec: SpecFile,
    split: SplitName = None,
    passes: Annotated[bool, typer.Option("--passes", help="Also show what each pass did, and why.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Show every split, every pass, and the cost of every stage.")] = False,
    before: Annotated[bool, typer.Option("--before", help="Also show the plan as written, before any pass.")] = False,
    physical: Annotated[bool, typer.Option("--physical", help="Show what runs instead: each operation, and what it calls.")] = False,
    output_format: Annotated[
        Literal["text", "json", "html"], typer.Option("--format", help="Output format; html has all splits.")
    ] = "text",
    data: Annotated[bool, typer.Option("--data", help="With html: list the data, and show examples at each edge.")] = False,
    output: Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file.")] = None,
    given: WithStage = NOTHING,
) -> None:
    """Print the compiled plan of a split and its most expensive stages.

    Every edge shows its type: dtype, shape and the values that can occur. Without --data the command reads no data: sizes that
    depend on it stay open, and costs assume photographs of 500 x 375 pixels; `pipe.explain()` in Python uses your data.
    The costs were measured on one machine; their ratios show where the time goes. `pipegen profile --save` fits them to yours.

    Examples:
      pipegen explain flowers.pipegen.yaml
      pipegen explain flowers.pipegen.yaml --split validation --passes
      pipegen explain flowers.pipegen.yaml --all
      pipegen explain flowers.pipegen.yaml --physical
      pipegen explain flowers.pipegen.yaml --format html --data -o plan.html
    """
    from pipegen.memory import available_cores
    from pipegen.phases.machine_settings import circumstances
    from pipegen.views.explanation import Known, explain_json, explain_text, physical_plans, stages_text

    if data and output_format != "html":
        raise typer.BadParameter("needs `--format html`; `pipe.explain()` in Python uses the data, too", param_hint="'--data'")
    loaded = given.load(spec)
    page = _with_examples(loaded, split, given, physical=physical) if data else None
    if isinstance(page, str):
        return hand_over(page.rstrip("\n"), output, f"wrote {output}")
    whole = split is None and (everything or output_format != "text")
    names = list(loaded.plans) if whole else [choose_split(loaded.plans, split)]
    compiled = {name: loaded.compiled[name] for name in names}
    costs, every = circumstances(loaded.model, available_cores()), everything and output_format != "html"
    known = {}
    for name, done in compiled.items():
        runs = physical_plans(loaded.model, done.plan, costs.threads, every=every) if physical else None
        known[name] = Known(given=costs, physical=runs)
    text: str
    if output_format == "html":
        from pipegen.views.plan_page import plan_page

        text = plan_page(loaded.model, loaded.hash, compiled, known, page)
    elif output_format == "json":
        text = json_text(explain_json(loaded.model, compiled, known))
    else:
        more = None if everything else ("--split NAME", "--passes", "--all")
        text = stages_text(loaded.model) + explain_text(
            loaded.model, compiled, known, before=before, passes=passes or everything, more=more, tuned=_tuned(loaded)
        )
    return hand_over(text.rstrip("\n"), output, f"wrote {output}")


def _with_examples(loaded: Spec, split: str | None, given: Given, *, physical: bool) -> Page | dict[str, Shown]:
    """Renders the page with examples, which need TensorFlow; if the data cannot be used, makes the notes in their place."""
    from pipegen.errors import SpecError
    from pipegen.views.plan_page import Shown

    chosen = None if split is None else choose_split(loaded.plans, split)
    try:
        return given.open(loaded).explain_html(chosen, physical=physical)
    except SpecError as error:
        print_findings(error.diagnostics, to=sys.stderr)
        note("therefore the page has no examples")
        said = "; ".join(found.message for found in error.diagnostics)
        return dict.fromkeys(loaded.plans, Shown(f"No pictures, because the data cannot be used: {said}."))


def _tuned(loaded: Spec) -> str:
    """Describes the settings of `pipegen tune` that `build` will use if the data still has that size."""
    from pipegen.phases.machine_settings import machine
    from pipegen.phases.specs import tuned_key

    found = machine().tuned.get(tuned_key(loaded))
    if found is None or not found.settings:
        return ""
    return f"runtime: in place of `auto`, and with about {found.examples:,} examples, `build` uses {found.says}"


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A spec or a lock: a file, `-`, or a file at a git revision as HEAD~1:FILE.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The spec or lock to compare it with.")],
    output_format: Annotated[Literal["text", "json", "github"], typer.Option("--format", help="Output format.")] = "text",
    strict: Annotated[bool, typer.Option("--strict", help="Count what the specs alone cannot decide as different.")] = False,
    given: WithSets = NOTHING,
) -> None:
    """Describe the differences between two specs in words.

    First come changes to the numbers that the model sees and to the random draws, then changes to the speed alone, then changes without
    effect. No data is read.
    Exit code 0: the same numbers; 1: different numbers; 2: could not compare.

    Examples:
      pipegen diff flowers.pipegen.yaml daisies.pipegen.yaml
      pipegen diff HEAD~1:flowers.pipegen.yaml flowers.pipegen.yaml
      pipegen diff origin/main: flowers.pipegen.yaml --format github    the same file at another revision
      pipegen diff HEAD:pipegen.lock pipegen.lock
    """
    from pipegen.comparing import RevisionError, UnreadableSideError, compare, render_github, render_text
    from pipegen.errors import OpError

    if a == b == "-":
        raise typer.BadParameter("standard input has only one spec", param_hint="'B'")
    stdin = read_stdin() if "-" in (a, b) else None
    try:
        found = compare(a, b, overrides=given.values, stdin=stdin)
    except UnreadableSideError as error:
        print_findings(error.findings, error.texts, to=sys.stderr)
        raise typer.Exit(FAILED) from None
    except RevisionError as error:
        raise CannotRun(str(error)) from None
    except OpError as problem:
        raise CannotRun(problem.message, *problem.lines) from None
    for line in found.notes:
        note(f"note: {line}")
    if output_format == "json":
        say(json_text(found.as_json()))
    elif output_format == "github":
        say(render_github(found).rstrip("\n"))
    else:
        say(render_text(found, bold).rstrip("\n"))
    raise typer.Exit(OK if found.same_numbers and not (strict and found.of("perhaps")) else FOUND)
