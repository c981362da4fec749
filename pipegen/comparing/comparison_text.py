"""Renders a comparison as text, and as GitHub's workflow commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pipegen.comparing.comparison import Comparison
from pipegen.diagnostics.diagnostic import is_address, relative_path
from pipegen.diagnostics.machine_readable import workflow_command
from pipegen.spec.changes import KINDS, Kind

_TITLES: dict[Kind, str] = {
    "numbers": "other numbers",
    "perhaps": "other numbers, perhaps: the specs alone do not tell",
    "speed": "the same numbers, at another speed",
    "nothing": "nothing but words",
}


def verdict(comparison: Comparison) -> str:
    """The outcome as a sentence."""
    counts = {kind: len(comparison.of(kind)) for kind in KINDS}
    if counts["numbers"]:
        return "The model sees other numbers."
    if counts["perhaps"]:
        return "The model may see other numbers: that depends on the data."
    if counts["speed"]:
        rounds = any(change.path[:2] == ("runtime", "jit") for change in comparison.of("speed"))
        return f"The model sees the same numbers{', up to rounding' if rounds else ''}; only speed differs."
    return "The model sees the same numbers." if comparison.changes else "Nothing differs."


def render_text(comparison: Comparison, strong: Callable[[str], str] = str) -> str:
    """Renders a comparison as text; `strong` marks headings."""
    lines = [f"{comparison.names[0]} → {comparison.names[1]}: {verdict(comparison)}"]
    for kind in KINDS:
        changes = comparison.of(kind)
        if changes:
            lines += ["", strong(_TITLES[kind])]
        for change in changes:
            where = f"  ({change.span})" if change.span is not None else ""
            lines += [f"  {change}{where}", f"      {change.whole_effect}"]
    return "".join(f"{line}\n" for line in [*lines, *_draws(comparison)])


def render_github(comparison: Comparison) -> str:
    """Renders a comparison as workflow commands, one a line: warnings for other numbers, notices for the rest."""
    return "".join(f"{line}\n" for line in _commands(comparison))


def _commands(comparison: Comparison) -> Iterator[str]:
    for change in comparison.changes:
        properties = {}
        if change.span is not None and not _at_revision(change.span.file, comparison):
            properties = {"file": relative_path(change.span.file), "line": str(change.span.line)}
        command = "warning" if change.kind in ("numbers", "perhaps") else "notice"
        properties["title"] = f"pipegen diff: {_TITLES[change.kind]}"
        yield workflow_command(command, properties, f"{change}\n{change.whole_effect}")
    yield workflow_command("notice", {"title": "pipegen diff"}, "\n".join([verdict(comparison), *_draws(comparison)[1:]]))


def _at_revision(file: str, comparison: Comparison) -> bool:
    """Decides if a file is at a revision or in a package, not in the working tree."""
    return is_address(file) or any(file.startswith(f"{name.partition(':')[0]}:") for name in comparison.names if ":" in name)


def _draws(comparison: Comparison) -> list[str]:
    """Describes the effects on the draws, if numbers change."""
    if comparison.same_numbers:
        return []
    lines = []
    if comparison.draws.kept:
        lines.append(f"The same draws as before: {', '.join(comparison.draws.kept)}.")
    if comparison.draws.moved:
        lines.append(f"Other draws: {', '.join(f'{step} ({why})' for step, why in comparison.draws.moved)}.")
    return ["", *lines] if lines else []
