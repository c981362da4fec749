"""The exceptions that pipegen raises.

PipegenError
 ├── SpecError       the spec or its data is wrong; holds the findings
 ├── DataError       a record could not be read while the pipeline ran; names the file
 ├── ModelMismatchError  a model does not fit what the pipeline gives
 ├── StateError      a saved state does not fit this pipeline
 └── InternalError   pipegen itself is wrong; never the user's mistake
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pipegen.terminal import one_line, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pipegen.diagnostics.diagnostic import Diagnostic

T = TypeVar("T")


class PipegenError(Exception):
    """Is the base of everything that pipegen raises on purpose."""

    def __str__(self) -> str:
        """Returns the message, with nothing in it that a terminal would obey."""
        return visible(super().__str__())


class SpecError(PipegenError):
    """Tells that a spec, or the data it points at, is wrong.

    Attributes:
        diagnostics: Every finding of the run: errors, then warnings, then notes, each by position in the file. Its text leaves notes out.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(sorted(diagnostics, key=lambda d: d.severity.rank))
        super().__init__(len(self.diagnostics))

    def __reduce__(self) -> tuple[type[SpecError], tuple[tuple[Diagnostic, ...]]]:
        """Pickled whole, as when it crosses from a worker process."""
        return type(self), (self.diagnostics,)

    def __repr__(self) -> str:
        return one_line(f"SpecError({'; '.join(f'{d.code}: {d.message}' for d in self._told)})")

    def __str__(self) -> str:
        from pipegen.diagnostics.text import render_text

        return render_text(self._told).rstrip("\n")

    @property
    def _told(self) -> list[Diagnostic]:
        return [d for d in self.diagnostics if d.severity.value != "info"]

    def _render_traceback_(self) -> list[str]:
        """Gives IPython and Jupyter what they print instead of frames."""
        return str(self).splitlines()


class DataError(PipegenError):
    """Tells that a record could not be read or decoded while the pipeline ran. The first line names the file and the setting."""


class ModelMismatchError(PipegenError):
    """Tells that a model does not fit what the pipeline gives, and lists every mismatch."""


class StateError(PipegenError):
    """Tells that a saved state does not fit this pipeline; the message says in words what differs."""


class InternalError(PipegenError):
    """A broken invariant inside pipegen. Please report it; the message holds the plan."""


class PartError(ValueError):
    """Tells, from the validator of a model, that one part of a larger value is wrong.

    Attributes:
        path: The key path of that part below the value that is validated.
        help: What to do about it.
    """

    def __init__(self, message: str, *path: str | int, help: str | tuple[str, ...] | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.help = help


class OpError(Exception):
    """Tells that an op's input type or its arguments cannot work; the plan builder turns it into a finding.

    Attributes:
        code: The diagnostic code, such as `PG213`.
        message: One sentence saying what is wrong.
        field: The argument at fault, or `None` for the step as a whole.
        help: What to do about it; a line or several.
    """

    def __init__(self, code: str, message: str, *, field: str | None = None, help: str | tuple[str, ...] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.field = field
        self.help = help

    @property
    def lines(self) -> tuple[str, ...]:
        """Returns the help as lines."""
        return (self.help,) if isinstance(self.help, str) else self.help or ()

    @property
    def every(self) -> tuple[OpError, ...]:
        """Returns each error on its own; one, but for `OpErrors`."""
        return (self,)


class OpErrors(OpError):
    """Several independent errors, so that one run shows them all; as an error of its own it is the first.

    Attributes:
        cells: The columns of the table that could be read all the same, by name or number; `None` without one.
        listing: The files of the records, as far as they could be listed all the same; `None` where they could not.
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
        """Gives what a call returns, or `None` where it raises an `OpError`, which is kept."""
        try:
            return call(*args)
        except OpError as error:
            self.errors += error.every
            return None
