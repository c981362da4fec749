"""`validate --fix`: puts the fixes of findings into the files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pipegen.cli.common import examine, note, write_text
from pipegen.cli.failures import CannotRun
from pipegen.diagnostics.diagnostic import Applicability

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipegen.diagnostics.diagnostic import Diagnostic, Fix, Span

_ROUNDS = 10
"""A fix may bring another finding to light; this many times the spec is looked at again."""
_BOM = "\ufeff"


def fix_spec(file: str, sets: Iterable[str], *, unsafe: bool = False) -> int:
    """Applies the fixes of a spec until none is left, and says each; the result is how many there were.

    Args:
        file: The spec.
        sets: The values of `--set`.
        unsafe: Whether suggestions are applied too.

    Raises:
        CannotRun: If the spec is standard input, or a file cannot be written.
    """
    if file == "-":
        raise CannotRun("`--fix` changes files, and standard input is none")
    done, left_out = 0, dict[str, None]()
    for _ in range(_ROUNDS):
        left_out.clear()  # what another fix has made room for is no longer left out
        changed = _apply(examine(file, sets).diagnostics.sorted(), left_out, unsafe=unsafe)
        done += changed
        if not changed:
            break
    for line in left_out:
        note(line)
    return done


def _apply(findings: Sequence[Diagnostic], left_out: dict[str, None], *, unsafe: bool) -> int:
    """Applies what may be applied, safe fixes before suggestions where both would change a place; notes what breaks the file."""
    made = [d.fix for d in findings if d.fix is not None and (unsafe or d.fix.applicability is Applicability.SAFE)]
    fixes = sorted(made, key=lambda fix: fix.applicability is not Applicability.SAFE)
    names = dict.fromkeys(edit.span.file for fix in fixes for edit in fix.edits)
    return sum(_fix_file(name, fixes, left_out) for name in names if os.path.isfile(name))


def _fix_file(name: str, fixes: Sequence[Fix], left_out: dict[str, None]) -> int:
    from pipegen.diagnostics.fixes import apply_fixes

    text, bom = _read(name)
    taken: list[Fix] = []
    for fix in fixes:
        if apply_fixes(text, [*taken, fix], name)[1] > len(taken):
            taken.append(fix)
    if _breaks(text, apply_fixes(text, taken, name)[0]):
        taken = _unbroken(text, taken, name, left_out)
    if not taken:
        return 0
    write_text(name, bom + apply_fixes(text, taken, name)[0])
    for fix in taken:
        note(f"fixed {_place(fix, name)}: {fix.title}")
    return len(taken)


def _unbroken(text: str, fixes: Sequence[Fix], name: str, left_out: dict[str, None]) -> list[Fix]:
    """Returns the fixes that leave valid YAML together, the first ones first, and notes the others."""
    from pipegen.diagnostics.fixes import apply_fixes

    taken: list[Fix] = []
    for fix in fixes:
        if _breaks(text, apply_fixes(text, [*taken, fix], name)[0]):
            left_out[f"left out {_place(fix, name)}: {fix.title}, after which the file would be no valid YAML; change it by hand"] = None
        else:
            taken.append(fix)
    return taken


def _place(fix: Fix, name: str) -> Span:
    return next(edit.span for edit in fix.edits if edit.span.file == name)


def _breaks(before: str, after: str) -> bool:
    """Returns whether a change adds mistakes of syntax; one in a text that has some already may leave those further down."""
    (read, old), (reads, new) = _syntax(before), _syntax(after)
    if read:
        return not reads or len(new) > len(old)
    return not reads and new[-1] <= old[-1]


def _syntax(text: str) -> tuple[bool, list[tuple[int, int]]]:
    """Returns whether a text can be read as YAML, and the places of what is wrong with it, the last of which ended the reading."""
    from pipegen.diagnostics.diagnostic import Diagnostics
    from pipegen.spec.compose import compose

    found = Diagnostics()
    tree = compose(text, "", found)
    return tree is not None, [(d.span.line, d.span.column) if d.span is not None else (0, 0) for d in found]


def _read(name: str) -> tuple[str, str]:
    """The text with its line ends, and the byte order mark that stood before it."""
    try:
        with open(name, encoding="utf-8", newline="") as stream:
            text = stream.read()
    except (OSError, UnicodeDecodeError) as error:
        raise CannotRun(f"cannot read {name}: {error}") from error
    return text.removeprefix(_BOM), _BOM if text.startswith(_BOM) else ""
