"""`validate --fix`: puts the fixes of findings into the files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pipegen.cli.common import examine, note, write_text
from pipegen.cli.failures import CannotRun
from pipegen.diagnostics.diagnostic import Applicability

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipegen.diagnostics.diagnostic import Diagnostic, Fix

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
    done = 0
    for _ in range(_ROUNDS):
        changed = _apply(examine(file, sets).diagnostics.sorted(), unsafe=unsafe)
        done += changed
        if not changed:
            break
    return done


def _apply(findings: Sequence[Diagnostic], *, unsafe: bool) -> int:
    """Applies what may be applied, safe fixes before suggestions where both would change a place."""
    made = [d.fix for d in findings if d.fix is not None and (unsafe or d.fix.applicability is Applicability.SAFE)]
    fixes = sorted(made, key=lambda fix: fix.applicability is not Applicability.SAFE)
    names = dict.fromkeys(edit.span.file for fix in fixes for edit in fix.edits)
    return sum(_fix_file(name, fixes) for name in names if os.path.isfile(name))


def _fix_file(name: str, fixes: Sequence[Fix]) -> int:
    from pipegen.diagnostics.fixes import apply_fixes

    text, bom = _read(name)
    taken: list[Fix] = []
    for fix in fixes:
        if apply_fixes(text, [*taken, fix], name)[1] > len(taken):
            taken.append(fix)
    if not taken:
        return 0
    write_text(name, bom + apply_fixes(text, taken, name)[0])
    for fix in taken:
        note(f"fixed {next(e.span for e in fix.edits if e.span.file == name)}: {fix.title}")
    return len(taken)


def _read(name: str) -> tuple[str, str]:
    """The text with its line ends, and the byte order mark that stood before it."""
    try:
        with open(name, encoding="utf-8", newline="") as stream:
            text = stream.read()
    except (OSError, UnicodeDecodeError) as error:
        raise CannotRun(f"cannot read {name}: {error}") from error
    return text.removeprefix(_BOM), _BOM if text.startswith(_BOM) else ""
