"""Advice: a line of help that holds lines to paste, and says where they go, so that whoever shows or tests it need not guess."""

from __future__ import annotations

from typing import Literal

Into = Literal["value", "key", "sections", "entry", "source", "step", "before", "after", "arguments", "spec", "transforms", "nothing"]
"""Where lines go, seen from the place that a finding is about (its first label):

- `value`: they are the value there.
- `key`: they are the name there, and wherever the spec uses that name.
- `sections`: they are whole sections, in place of those of the same names.
- `entry`: they are entries of the map there, in place of the one that the finding is about.
- `source`: they are one source, in place of the one that the finding is about.
- `step`: they are one step or several, in place of the one that the finding is about.
- `before`, `after`: they are steps beside that one.
- `arguments`: they are arguments of the step, the source or the feature there; others stay.
- `spec`: they are sections, laid over those of the spec; maps merge.
- `transforms`: they are steps at the end of `transforms`; but a `decode` comes first, and steps that mix examples stay last.
- `nothing`: there are none; what the finding is about goes.
"""


class Advice(str):
    """A line of help with lines to paste in it. It is text for whoever only shows it.

    Attributes:
        lines: What to write, as YAML; several lines where need be.
        into: Where it goes.
        instead: Whether what the finding is about goes: an entry that `spec` or `transforms` say elsewhere.
    """

    lines: str
    into: Into
    instead: bool

    def __new__(cls, text: str, lines: str, into: Into, *, instead: bool = False) -> Advice:
        """Makes advice whose whole text is given; see `write`."""
        made = super().__new__(cls, text)
        made.lines, made.into, made.instead = lines, into, instead
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[str, str, Into], dict[str, bool]]:
        """Pickles it whole: findings cross from worker processes."""
        return (str(self), self.lines, self.into), {"instead": self.instead}


def write(lines: str, into: Into, said: str = "write {}", *, shown: str | None = None, instead: bool = False) -> Advice:
    """Returns advice to write some lines, which must be right as they stand; `said` is the sentence, with `{}` for the lines or for
    another form to show them in, such as the value with its key before it. See `Advice`."""
    text = shown if shown is not None else lines
    form = f"`{text}`" if "\n" not in text else "\n" + "\n".join(f"  {line}" for line in text.splitlines())
    # Not `format`: the sentence may hold what the user wrote, braces and all.
    return Advice(said.replace("{}", form, 1).replace(" \n", "\n"), lines, into, instead=instead)
