from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from pipegen.spec.changes import meaning_changes
from pipegen.spec.load import Loaded, load

if TYPE_CHECKING:
    from pipegen.diagnostics.diagnostic import Diagnostic

HEAD = "pipegen: 1\nsource: {image_folder: {path: photos}}\n"


def text(body: str, *, head: str = HEAD) -> str:
    return head + textwrap.dedent(body).lstrip("\n")


def read(body: str, *, head: str = HEAD, **kwargs: Any) -> Loaded:
    kwargs.setdefault("env", {})
    return load("spec.yaml", text=text(body, head=head), **kwargs)


def codes(loaded: Loaded) -> list[str]:
    return [d.code for d in loaded.diagnostics]


def only(loaded: Loaded) -> Diagnostic:
    (finding,) = loaded.diagnostics
    return finding


def marked(finding: Diagnostic, loaded: Loaded) -> str:
    """The text under the caret."""
    span = finding.span
    assert span is not None
    assert span.line == span.end_line
    return loaded.texts[span.file].splitlines()[span.line - 1][span.column - 1 : span.end_column - 1]


def fixed(finding: Diagnostic, loaded: Loaded) -> str:
    from pipegen.diagnostics.fixes import apply_fixes

    assert finding.fix is not None
    span = finding.fix.edits[0].span
    result, count = apply_fixes(loaded.texts[span.file], [finding.fix], span.file)
    assert count == 1
    return result


def other_numbers(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """The changes between two meanings that are other numbers, in words."""
    return [str(change) for change in meaning_changes(a, b)[0] if change.kind == "numbers"]
