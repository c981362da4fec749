"""Arguments of the constructor as numbers, truths and params, each reported where it is none."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from pipegen.migrate.bindings import is_keras
from pipegen.migrate.findings import Findings
from pipegen.migrate.knobs import NOT_KNOWN, Knob, Knobs, is_open, varies
from pipegen.migrate.values import Dotted, Generator, Local, Unknown, plain


@dataclass(frozen=True)
class Step:
    """One step: its text in a spec, and what to say beside it."""

    text: str
    comment: str = ""


@dataclass
class Amounts:
    """Reads the arguments of one generator.

    Attributes:
        generator: The constructor.
        size: Height and width of the images, where they are known.
        files: Whether the images come from files, so that their values are 0 to 255.
        findings: Takes what has no equivalent or changes its meaning.
        fitted: Whether `fit` is called on the generator.
        channels: How many channels the images have.
        knobs: Takes the params of what may be another at run time.
    """

    generator: Generator
    size: tuple[int, int] | None
    files: bool
    findings: Findings
    fitted: bool = False
    channels: int = 3
    knobs: Knobs = field(default_factory=lambda: Knobs({}))
    found: list[Step] = field(default_factory=list)

    def _line(self, name: str) -> int:
        return getattr(self.generator.args[name].node, "lineno", self.generator.line)

    def _number(self, name: str) -> float | None:
        """A number that is given and not zero; anything else is reported."""
        if name not in self.generator.args:
            return None
        value = plain(self.generator.args[name].value)
        if isinstance(value, Unknown):
            self._unknown(name, value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            return float(value) if value else None
        elif value not in (None, False):
            self.findings.add("PG610", self._line(name), f"`{name}={value!r}` is no number", "it is left out of the spec")
        return None

    def _amount(self, name: str) -> str:
        """A number without its sign, or the param that it is; empty where it is zero."""
        if is_open(self.generator, name):
            return self._open(Knob(name, name), "0", ", min: 0")
        value = self._number(name)
        if varies(self.generator, name):
            return self.knobs.add(Knob(name, name), number(abs(value or 0.0)), ", min: 0")
        return "" if value is None else number(abs(value))

    def _open(self, knob: Knob, default: str, limits: str = "") -> str:
        """A param for what is not known, with a default that does nothing."""
        value = plain(self.generator.args[knob.argument].value)
        line = self._line(knob.argument)
        reason = value.reason if isinstance(value, Unknown) and value.reason else "it is computed at run time"
        message = f"`{knob.argument}` is not known: {reason}"
        self.findings.add("PG610", line, message, f"the spec has `{knob.param}`, by default {default}: put the value there")
        return self.knobs.add(knob, default, limits, NOT_KNOWN)

    def _truth(self, name: str) -> bool:
        if name not in self.generator.args:
            return False
        given = self.generator.args[name].value
        if isinstance(given, Local) or (isinstance(given, Dotted) and _is_library(given.name)):
            return True  # a function or a class
        value = plain(self.generator.args[name].value)
        if isinstance(value, Unknown):
            self._unknown(name, value)
            return False
        return bool(value)

    def _unknown(self, name: str, value: Unknown) -> None:
        line = value.line or self._line(name)
        self.findings.add("PG610", line, f"`{name}` is not known: {value.reason or 'it is computed at run time'}", "add its step by hand")


def _is_library(name: str) -> bool:
    return is_keras(name) or name.split(".")[0] in ("builtins", "numpy", "cv2", "skimage", "scipy", "PIL")


def number(value: float) -> str:
    """A number as YAML has it, with at most twelve digits."""
    if value == int(value) and abs(value) < 1e9:
        return str(int(value))
    text = f"{value:.12g}"
    return text if len(text) < 8 else f"{value:.6g}" if "e" not in f"{value:.6g}" and abs(value) >= 0.01 else repr(value)
