"""Puts the values of params in place of `$name`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Applicability, Diagnostics, Edit, Fix
from pipegen.diagnostics.suggest import closest
from pipegen.masking import masked_value
from pipegen.spec.compose import MAX_BYTES, MAX_SCALAR
from pipegen.spec.locate import Filled, Locator
from pipegen.spec.params import Value
from pipegen.spec.source_map import KeyPath, Tree
from pipegen.spec.words import one_of, shorten

_REFERENCE = re.compile(r"\$(?:(\$)|([A-Za-z_][A-Za-z0-9_]*)|\{([^{}]*)\}|(\{))")
_SKIPPED = ("params", "extends", "pipegen")
_GUESSES = 50
"""Misspelt references that get a suggestion; each takes a look at every declared name."""


class _TooLargeError(Exception):
    """Ends the substitution; its arguments are what to say, and of which place."""


@dataclass(slots=True)
class Substitution:
    """Walks a tree and replaces references.

    Attributes:
        values: The declared params.
        locate: Told which values came from a param.
        out: Where findings go.
        spoiled: The places that hold a reference without a value; what is wrong there is the param's fault.
        used: The params that are referred to.
        meant: The params that a misspelt reference probably means.
        undeclared: The names that are referred to and not declared.
    """

    values: dict[str, Value]
    locate: Locator
    out: Diagnostics
    spoiled: set[KeyPath] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    meant: set[str] = field(default_factory=set)
    undeclared: set[str] = field(default_factory=set)
    _size: int = 0

    def apply(self, tree: Tree) -> bool:
        """Replaces every reference outside the params themselves, and reports params that nothing uses.

        Returns:
            Whether there is a spec to go on with: written out, it may be too large.
        """
        try:
            tree.value = {k: v if k in _SKIPPED else self._walk(v, (k,), tree.partial) for k, v in tree.value.items()}
        except _TooLargeError as large:
            message, path = large.args
            help_ = ("pipegen reads no larger spec, so that a damaged or hostile file ends quickly",)
            self.out.add(make("PG003", message, self.locate.label(path), help=help_))
            tree.value, tree.partial = {}, True
            return False
        if tree.partial:
            return True
        for name in self.values:
            if name not in self.used | self.meant:
                help_ = (f"`${name}` stands for its value elsewhere; remove it where nothing wants it",)
                self.out.add(make("PG107", f"the param `{name}` is never used", self.locate.label(("params", name), key=True), help=help_))
        return True

    def _walk(self, value: Any, path: KeyPath, partial: bool) -> Any:
        if isinstance(value, dict):
            return {k: self._walk(v, (*path, k), partial) for k, v in value.items()}
        if isinstance(value, list):
            return [self._walk(v, (*path, i), partial) for i, v in enumerate(value)]
        if isinstance(value, str) and "$" in value:
            value = self._text(value, path, partial)
            self._count(value, path)
        return value

    def _count(self, value: Any, path: KeyPath) -> None:
        """Adds up the text that params put in.

        Raises:
            _TooLargeError: When it is more than a spec may be.
        """
        size = len(value) if isinstance(value, str) else 0
        self._size += size
        if size > MAX_SCALAR:
            raise _TooLargeError(f"with its params put in, one value is longer than {MAX_SCALAR // 1024} KiB", path)
        if self._size > MAX_BYTES:
            raise _TooLargeError(f"with its params put in, the spec is larger than {MAX_BYTES // 2**20} MiB", path)

    def _text(self, text: str, path: KeyPath, partial: bool) -> Any:
        whole = _REFERENCE.fullmatch(text)
        if whole is not None and not whole[1]:
            value = self._value(whole, path, partial)
            return text if value is None else value.value
        parts: list[str] = []
        end = size = 0
        known: dict[str, str] = {"$$": "$"}
        for match in _REFERENCE.finditer(text):
            if match[0] not in known:
                value = self._value(match, path, partial)
                known[match[0]] = match[0] if value is None else _plain(value.value)
            parts += [text[end : match.start()], known[match[0]]]
            size += len(known[match[0]])
            if size > MAX_BYTES:
                break  # `_count` says so
            end = match.end()
        return "".join(parts) + text[end:]

    def _value(self, match: re.Match[str], path: KeyPath, partial: bool) -> Value | None:
        name = match[2] or match[3] or ""
        value = self.values.get(name)
        if value is None:
            self.spoiled.add(path)
            if not partial:
                self._undeclared(match, name, path)
            return None
        self.used.add(name)
        if value.ok and value.value is None:
            default = f"say `params: {{{name}: {{default: …}}}}` in the spec that extends this one"
            default = default if self.locate.in_shared_base(("params", name)) else "give it a `default`"
            help_ = (f"pass `--set {name}=VALUE` (`params={{{name!r}: ...}}` in Python), or {default}",)
            places = self.locate.label(path, "used here"), self.locate.label(("params", name), "declared here", key=True)
            self.out.add(make("PG108", f"the param `{name}` has no value", *places, help=help_))
        if not value.ok or value.value is None:
            self.spoiled.add(path)
            return None
        filled = Filled(name, value.env, value.by_caller, match[0] == match.string and not value.mixed, value.is_text)
        self.locate.from_param(path, filled, value.origin, outside=value.outside, at_start=match.start() == 0)
        return value

    def _undeclared(self, match: re.Match[str], name: str, path: KeyPath) -> None:
        at = self.locate.label(path)
        if match[0] not in masked_value(match.string):
            message = "a `$` in the secret of an address is read as the name of a param, which is not declared"
            outside = "a dollar itself is written `$$`; or take the whole address from outside, by a param with `env`"
            self.out.add(make("PG106", message, at, help=outside))
            return
        dollar = "a dollar itself is written `$$`"
        if match[4] or (match[3] is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)):
            shown = shorten(match[0])
            self.out.add(
                make("PG106", f"`{shown}` is not the name of a param", at, help=("a param is written `$name` or `${name}`", dollar))
            )
            return
        self.undeclared.add(name)
        near = closest(name, list(self.values)) if len(self.undeclared) <= _GUESSES else None
        if near:
            self.meant.add(near)
            help_, fix = (f"did you mean `${near}`?", dollar), self._renamed(match, near, path)
        else:
            declared = f"declared are {one_of(self.values, 'and')}" if self.values else "declare it under `params`"
            help_, fix = (declared, dollar), None
        self.out.add(make("PG106", f"the param `{name}` is not declared", at, help=help_, fix=fix))

    def _renamed(self, match: re.Match[str], near: str, path: KeyPath) -> Fix | None:
        source = self.locate.source(path)
        span = self.locate.spans.values.get(path)
        if source is None or span is None or source.count(match[0]) != 1:
            return None
        new = f"${{{near}}}" if match[3] else f"${near}"
        # The names of params are the user's own: `$size1` beside `size2` and `size3` could be either.
        return Fix(f"write `{new}`", (Edit(span, source.replace(match[0], new)),), Applicability.SUGGESTION)


def _plain(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
