"""`Locator`, which finds the place of a key path, for findings and `pipegen show`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from pipegen.diagnostics.diagnostic import Diagnostic, Diagnostics, Label, Span, split_lines
from pipegen.frozen import dataclass
from pipegen.spec.extends import Files
from pipegen.spec.source_map import ABSENT, KeyPath, SourceMap, format_path, lookup

Locate = Callable[..., Label]  # maps a key path to a label; see `Locator.label`


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a param."""

    value: Any  # the value, of the declared type; `None` for none
    origin: str  # `default`, `--set size=192`, `params={'size': 192}` or `$FLOWERS`
    outside: bool  # whether it came from outside the spec's files
    ok: bool = True  # whether it is valid
    env: str = ""  # the environment variable that it, or a part of it, came from; "" if the caller allows its use for anything
    by_caller: bool = False  # whether it came from the caller or the environment
    is_text: bool = False  # whether it may be any text
    mixed: bool = False  # whether it contains such a value with text around it, as the value of a stage may


@dataclass(frozen=True, slots=True)
class Filled:
    """A param that a value contains."""

    name: str
    value: Value
    whole: bool  # whether the value is the param's alone, without text around it
    leads: bool  # whether the value begins with it


@dataclass(slots=True)
class Locator:
    """The places of the values of a loaded spec, in whichever file they are."""

    spans: SourceMap  # the places; empty for a spec without a file
    files: Files  # the texts and folders of the files
    base: Path  # the folder of relative paths outside any file: the working directory
    filled: dict[KeyPath, list[Filled]] = field(default_factory=dict)  # the params in a value
    outside: dict[KeyPath, str] = field(default_factory=dict)  # values from outside (`--set`, `overrides=`, `runtime=`), in no file
    raw: dict[str, Any] = field(default_factory=dict)  # the resolved plain values
    _lines: dict[str, list[str]] = field(default_factory=dict)

    def label(self, path: tuple[str | int, ...], text: str = "", *, key: bool = False) -> Label:
        """The place of a value, or of its key, else of the nearest value around it; `text` is shown beside the caret.

        Parts of the path without a place are skipped.
        """
        outside = self._origin_outside(path)
        if outside is not None:
            text = f"{outside}: {text}" if text else outside
        elif not text and not key and path:
            below = next((origin for at, origin in self.outside.items() if at[: len(path)] == path), None)
            text = f"with {below}" if below is not None else ""
        return Label(self.span(path, key=key), text, format_path(path))

    def span(self, path: tuple[str | int, ...], *, key: bool = False) -> Span | None:
        """The span that `label` shows."""
        if self._origin_outside(path) is not None:
            return None
        known = self.spans.known(path)
        # In a choice written as a word, as in `source: image_folder`, the word is the value, not a key.
        is_word = len(path) == len(known) + 1 and lookup(self.raw, known) == path[-1]
        if key and known in self.spans.keys and not is_word:
            return self.spans.keys[known]
        return self.spans.values.get(known)

    def origin(self, path: tuple[str | int, ...]) -> str:
        """The origin of a value: `flowers.yaml:4:3`, `default`, `--set size=192`, `$FLOWERS`; `given` for a map."""
        filled = next((self.filled[path[:n]][-1] for n in range(len(path), 0, -1) if path[:n] in self.filled), None)
        span, given = self.spans.values.get(path), self._origin_outside(path)
        if filled is not None:
            default = self.spans.values.get(("params", filled.name, "default"))
            given = given or (filled.value.origin if filled.value.outside or default is None else str(default))
        if given is not None or span is not None:
            return given or str(span)
        return "default" if self.spans.values or lookup(self.raw, path, ABSENT) is ABSENT else "given"

    def source(self, path: KeyPath) -> str | None:
        """The text of a value in its file, if it is on one line."""
        span = self.spans.values.get(path)
        if span is None or span.line != span.end_line:
            return None
        line = self._line(span)
        return None if line is None else line[span.column - 1 : span.end_column - 1]

    def editable(self, path: KeyPath) -> Span | None:
        """The span of a value, if it is on one line of a file and contains no param."""
        if self.source(path) is None or any(known[: len(path)] == path for known in self.filled):
            return None
        return self.span(path)

    def char_after(self, span: Span) -> str:
        """The character after a span, if there is one on its line."""
        return (self._line(span) or "")[span.end_column - 1 : span.end_column]

    def _line(self, span: Span) -> str | None:
        """The line that a span starts in."""
        if span.file not in self._lines and span.file in self.files.texts:
            self._lines[span.file] = split_lines(self.files.texts[span.file])
        return self._lines[span.file][span.line - 1] if span.file in self._lines else None

    def folder(self, path: KeyPath) -> Path:
        """The folder that a relative path at `path` is relative to."""
        span = self._in_file(path)
        return self.files.folders.get(span.file, self.base) if span is not None else self.base

    def in_shared_base(self, path: KeyPath) -> bool:
        """Tests if the value at `path` is from a shared base."""
        span = self._in_file(path)
        return span is not None and span.file in self.files.shared

    def _in_file(self, path: KeyPath) -> Span | None:
        """The span of a value; `None` if it begins with a param from outside."""
        return None if any(one.leads and one.value.outside for one in self.filled.get(path, ())) else self.span(path)

    def from_env(self, path: KeyPath) -> str:
        """The environment variable in the value at `path`, or ""."""
        return next((filled.value.env for filled in self.filled.get(path, ()) if filled.value.env), "")

    def is_param(self, path: KeyPath) -> bool:
        """Tests if the value at `path` is that of a param, without text around it."""
        filled = self.filled.get(path, ())
        return len(filled) == 1 and filled[0].whole

    def is_callers(self, path: KeyPath) -> bool:
        """Tests if the whole value at `path` comes from the caller or the environment."""
        return self.is_outside(path) or (self.is_param(path) and self.filled[path][0].value.by_caller)

    def lay_over(self, path: KeyPath, origin: str) -> None:
        """Notes that the value at `path` came from outside."""
        self.spans.replace({path})
        self.outside[path] = origin

    def is_outside(self, path: tuple[str | int, ...]) -> bool:
        """Tests if the value at `path` came from outside."""
        return self._origin_outside(path) is not None

    def _origin_outside(self, path: tuple[str | int, ...]) -> str | None:
        return next((self.outside[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self.outside), None)


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a value, with the collector of findings about it."""

    locate: Locator  # the finder of spans
    path: KeyPath  # the key path of the value
    out: Diagnostics  # the collector of findings
    spoiled: set[KeyPath] = field(default_factory=set)  # paths with a param without a value, where findings are suppressed
    partial: bool = False  # whether a base file could not be read, so that a missing key is not an error

    def at(self, *parts: str | int) -> Place:
        """A place below."""
        return replace(self, path=(*self.path, *parts))

    def label(self, text: str = "", *, key: bool = False) -> Label:
        """The label of the value, or of its key."""
        return self.locate.label(self.path, text, key=key)

    def as_written(self, value: Any) -> Any:
        """A value at this place whose paths below the folder of its file are relative to it, as specs that are shared need them."""
        if isinstance(value, dict):
            return {key: self.as_written(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.as_written(inner) for inner in value]
        folder = str(self.locate.folder(self.path))
        return "." if value == folder else value.removeprefix(f"{folder}{os.sep}") if isinstance(value, str) else value

    def add(self, finding: Diagnostic | None) -> None:
        """Report, unless the place is spoiled."""
        if finding is not None and self.path not in self.spoiled:
            self.out.add(finding)
