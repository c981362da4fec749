"""Writes and reads the record of a run: a JSON object a line, the first of the whole run, then samples and the waits of steps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from pipegen.waiting import Wait

Row = dict[str, Any]


class Record:
    """Writes the lines of a run as they come; each is whole on the disk when the next sample is taken.

    Args:
        path: The file, which is made anew; `None` for none.

    Raises:
        OSError: If it cannot be made.
    """

    def __init__(self, path: Path | None) -> None:
        self._file: IO[str] | None = None if path is None else open(path, "w", encoding="utf-8")  # noqa: SIM115
        self.failed: OSError | None = None
        """What the disk refused; nothing was written from then on."""

    def write(self, rows: Iterable[Row]) -> None:
        """Writes lines. What the disk refuses ends the record, and not the run."""
        if self._file is None:
            return
        try:
            for row in rows:
                self._file.write(json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n")
            self._file.flush()
        except OSError as error:
            self.failed = error
            self.close()

    def close(self) -> None:
        """Closes the file."""
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                self.failed = self.failed or error

    def __enter__(self) -> Record:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Steps:
    """Puts the waits of a while into rows, one for each process and split, with the number of their first step."""

    def __init__(self) -> None:
        self._done: dict[tuple[int, str], int] = {}

    def rows(self, waits: Iterable[Wait], at: float) -> list[Row]:
        """Returns a row for each process and split that waited; `at` is the time since the run began, in seconds."""
        several: dict[tuple[int, str], list[Wait]] = {}
        for wait in waits:
            several.setdefault((wait.pid, wait.split), []).append(wait)
        rows = []
        for key, group in several.items():
            first = self._done.get(key, 0)
            self._done[key] = first + len(group)
            figures = {"wait_ms": [round(1e3 * w.seconds, 3) for w in group], "step_ms": [round(1e3 * w.step_seconds, 3) for w in group]}
            rows.append({"t": round(at, 3), "steps": {"pid": key[0], "split": key[1], "first": first, **figures}})
        return rows


def read_record(path: Path) -> Iterator[Row]:
    """Returns the rows of a record; of a run that was killed or still runs, as far as they go.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is no record.
    """
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file):
            try:
                row = json.loads(line)
            except ValueError:
                if number and not line.endswith("\n"):  # the last one was being written
                    return
                row = None
            if not isinstance(row, dict) or (not number and row.get("event") != "start"):
                raise ValueError(f"{path}: line {number + 1} is not of a record that `pipegen monitor --out` writes")
            yield row
