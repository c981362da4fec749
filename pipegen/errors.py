"""The exceptions that pipegen raises.

PipegenError
 ├── SpecError       the spec or its data is wrong; holds the findings
 ├── DataError       a record could not be read while the pipeline ran; names the file
 ├── ModelMismatchError  a model does not fit the batches of the pipeline
 ├── StateError      a saved state does not fit this pipeline
 └── InternalError   a bug in pipegen, not an error of the user
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pipegen.terminal import one_line, visible

if TYPE_CHECKING:
    from pipegen.diagnostics.diagnostic import Diagnostic

T = TypeVar("T")


class PipegenError(Exception):
    """Base class of the errors of pipegen."""

    def __str__(self) -> str:
        """Makes the message safe for terminals."""
        return visible(super().__str__())


class SpecError(PipegenError):
    """A spec, or its data, is wrong.

    Attributes:
        diagnostics: Every finding of the run: errors, then warnings, then notes, each by position in the file. The message omits notes.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(sorted(diagnostics, key=lambda d: d.severity.rank))
        super().__init__(len(self.diagnostics))

    def __reduce__(self) -> tuple[type[SpecError], tuple[tuple[Diagnostic, ...]]]:
        """Pickles all findings, for worker processes."""
        return type(self), (self.diagnostics,)

    def __repr__(self) -> str:
        return one_line(f"SpecError({'; '.join(f'{d.code}: {d.message}' for d in self._shown)})")

    def __str__(self) -> str:
        from pipegen.diagnostics.text import render_text

        return render_text(self._shown).rstrip("\n")

    @property
    def _shown(self) -> list[Diagnostic]:
        return [d for d in self.diagnostics if d.severity.value != "info"]

    def _render_traceback_(self) -> list[str]:
        """Lines that IPython and Jupyter print instead of frames."""
        return str(self).splitlines()


class DataError(PipegenError):
    """A record could not be read or decoded while the pipeline ran. The first line names the file and the setting."""


class ModelMismatchError(PipegenError):
    """A model does not fit the batches of the pipeline; the message lists every mismatch."""


class StateError(PipegenError):
    """A saved state does not fit this pipeline; the message describes the differences."""


class InternalError(PipegenError):
    """A broken invariant inside pipegen. Please report it; the message contains the plan."""


class PartError(ValueError):
    """A part of a value is wrong; raised by the validators of models.

    Attributes:
        path: The key path of the part below the validated value.
        help: What to do about it.
    """

    def __init__(self, message: str, *path: str | int, help: str | tuple[str, ...] | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.help = help


class OpError(Exception):
    """The input type or the arguments of an op are invalid, or a base of a spec is not available; the caller turns it into a finding.

    Attributes:
        code: The code of the finding, such as `PG213`.
        message: One sentence that describes the error.
        field: The argument at fault, or `None` for the step as a whole.
        help: What to do about it; a line or several.
    """

    def __init__(self, code: str, message: str, *, field: str | None = None, help: str | tuple[str, ...] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.field = field
        self.help = help

    def at(self, field: str | None) -> OpError:
        """Returns the same error of another argument."""
        return OpError(self.code, self.message, field=field, help=self.help)

    def below(self, field: str) -> OpError:
        """Returns the same error of an argument whose own part is at fault."""
        return self.at(f"{field}.{self.field}" if self.field else field)

    @property
    def lines(self) -> tuple[str, ...]:
        """The help as lines."""
        return (self.help,) if isinstance(self.help, str) else self.help or ()

    @property
    def every(self) -> tuple[OpError, ...]:
        """Single errors; several for `OpErrors`."""
        return (self,)


class OpErrors(OpError):
    """Several independent errors, so that one run shows them all; its own code and message are those of the first.

    Attributes:
        cells: Reads a column of the table, by name or number, despite the errors; `None` without a table.
        listing: The files of the records, as far as they could be listed; `None` if they could not.
    """

    def __init__(
        self, errors: Iterable[OpError], cells: Callable[[str | int, str], tuple[str, ...]] | None = None, listing: Any = None
    ) -> None:
        self._every = tuple(single for error in errors for single in error.every)
        first = self._every[0]
        super().__init__(first.code, first.message, field=first.field, help=first.help)
        self.cells = cells
        self.listing = listing

    @property
    def every(self) -> tuple[OpError, ...]:
        return self._every


class Attempts:
    """Collects the errors of calls that do not depend on each other."""

    def __init__(self) -> None:
        self.errors: list[OpError] = []

    def of(self, call: Callable[..., T], *args: Any) -> T | None:
        """Calls a function; collects an `OpError` and returns `None`."""
        try:
            return call(*args)
        except OpError as error:
            self.errors += error.every
            return None
