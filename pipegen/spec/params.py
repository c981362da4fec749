"""Params: their values with origins, and the substitution of `$name`."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Applicability, Diagnostics, Edit, Fix, Label, write
from pipegen.diagnostics.suggest import closest, hints
from pipegen.frozen import dataclass
from pipegen.spec.allowed import NOTHING, Allowed
from pipegen.spec.compose import MAX_BYTES, MAX_SCALAR, compose, flow, resolve
from pipegen.spec.expect import one_of, shorten, show
from pipegen.spec.locate import Filled, Locator, Place, Value
from pipegen.spec.mismatch import check
from pipegen.spec.models import Param
from pipegen.spec.places import absolute, homeless
from pipegen.spec.source_map import KeyPath, Tree, format_path, scalars, with_texts
from pipegen.terminal import masked_value

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "`true` or `false`"),
    "str": ((str,), "text"),
    "path": ((str,), "a path"),
    "list": ((list,), "a list of texts, numbers, `true` or `false`, such as `[cat, dog]`"),
}

_TEXTS = ("str", "path", "list")  # the types whose values may be any text
_SECRET_WORD = re.compile(
    r"\w*(?:KEYS?|SECRETS?|TOKENS?|PASSWORDS?|PASSWD|PASSPHRASE|CREDENTIALS?)|CREDS?|AUTH|PASS|PAT|COOKIES?|PWD", re.IGNORECASE
)
_SECRET_END = re.compile(r"(?:^|_)CONNECTION_?STRING$", re.IGNORECASE)
_OPEN = frozenset({"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "PWD", "OLDPWD"})

_LONGEST_VALUE = 80  # characters up to which a value is repeated in help


_WRONG = Value(None, "default", outside=False, ok=False)
Given = tuple[Any, str]  # a value from outside, and its origin as given: `--set size=192`


class _WrongError(Exception):
    """A value that does not fit its declaration; the message is what would."""


@dataclass(slots=True)
class Params:
    """The `params` section, with values from `--set`, `params=` and `overrides=`, then from the environment.

    A path from outside is relative to `folder`. `partial` is set if a base is missing. After `evaluate`, `declared` has the valid
    declarations, and `values` the value of each param.
    """

    locate: Locator
    folder: Path
    given: Mapping[str, Given]
    env: Mapping[str, str]
    out: Diagnostics
    partial: bool = False
    allowed: Allowed = NOTHING
    declared: dict[str, Param] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)

    def evaluate(self, section: Any) -> None:
        """Evaluates all declared params; reports and marks invalid ones."""
        if not isinstance(section, dict):
            if section is not None or ("params",) in self.locate.spans.keys:
                message = f"`params` is a map of names to declarations, got {show(section)}"
                self.out.add(make("PG104", message, self.locate.label(("params",))))
            section = {}
        for name, raw in section.items():
            if not NAME.fullmatch(name):
                form = "a name consists of letters, digits and `_`, and does not begin with a digit"
                self._wrong(f"`{name}` is not a valid name of a param", form, self.locate.label(("params", name), key=True))
            self.values[name] = self._one(name, raw)
        paths = "to set any other value, use its path, such as `batch.size` (`--set`, `overrides=`)"
        for name in (name for name in self.given if name not in section):
            help_ = hints(name, section, _declared(section), paths)
            self._wrong(f"{self.given[name][1]}: unknown param `{name}`", help_, self.locate.label(("params",), key=True))

    def _wrong(self, message: str, help_: str | tuple[str, ...], at: Label) -> Value:
        self.out.add(make("PG108", message, at, help=help_))
        return _WRONG

    def _one(self, name: str, raw: Any) -> Value:
        path: KeyPath = ("params", name)
        if not isinstance(raw, dict):
            message = f"`params.{name}` is a declaration with a `type`, got {show(raw)}"
            return self._wrong(message, write(_declaration(raw), "value"), self.locate.label(path))
        before = len(self.out)
        param = check(Param, raw, Place(self.locate, path, self.out, partial=self.partial))
        if not isinstance(param, Param) or len(self.out) > before or not self._sound(param, name):
            return _WRONG
        self.declared[name] = param
        if name in self.given:
            return self._outside(param, name, *self.given[name])
        if param.env is not None and is_secret(param.env) and not self.allowed.everything and param.env not in self.allowed.env:
            help_ = (
                "leave it out: clients of servers read credentials from the environment themselves",
                f'if you trust the spec: `pipegen.build(…, allow_env=["{param.env}"])`, or `--allow-env {param.env}` on the command line',
            )
            message = f"the param `{name}` reads the environment variable `{param.env}`, which looks like a secret"
            self.out.add(make("PG672", message, self.locate.label((*path, "env")), help=help_))
            return _WRONG
        if param.env is None:
            return self._default(param, name)
        given = self.env.get(param.env)
        value = self._default(param, name) if given is None else self._outside(param, name, given, f"${param.env}")
        # A value that may be sent elsewhere is a finding even if the variable is not set here.
        return value if param.env in self.allowed.env else replace(value, env=param.env, is_text=param.type in _TEXTS)

    def _sound(self, param: Param, name: str) -> bool:
        wrong = None
        numeric = param.type in ("int", "float")
        field = next((f for f in ("min", "max") if getattr(param, f) is not None and not numeric), None)
        if field is not None:
            wrong = f"`{field}` is for numbers, but `{name}` is a {param.type}"
        elif (param.type == "choice") != bool(param.choices):
            field = "choices"
            wrong = f"`choices` {'lists the words of' if param.type == 'choice' else 'is only for'} `type: choice`"
        elif param.min is not None and param.max is not None and param.min > param.max:
            field, wrong = "min", f"`min` {param.min:g} is above `max` {param.max:g}"
        if wrong is not None and field is not None:
            self._wrong(wrong, (), self.locate.label(("params", name, field)))
        return wrong is None

    def _outside(self, param: Param, name: str, value: Any, origin: str) -> Value:
        try:
            fitted = self._fit(param, _convert(param, value), self.folder)
            return Value(fitted, origin, outside=True, by_caller=True, is_text=param.type in _TEXTS)
        except _WrongError as wrong:
            at = self.locate.label(("params", name), "declared here", key=True)
            return self._wrong(f"`{name}` is {wrong}, but {origin} gives {show(value)}", (), at)

    def in_stage(self, name: str, value: Any, path: KeyPath) -> Value:
        """The value of a param in a stage, at `path`; an invalid one is reported and marked."""
        place = self.locate.label(path, key=True)
        param = self.declared.get(name)
        if param is None:
            return self._wrong(f"unknown param `{name}`", hints(name, self.declared, _declared(self.declared)), place)
        origin = self.locate.origin(path)
        origin = format_path(path) if origin == "given" else origin
        try:
            fitted = self._fit(param, value, self.locate.folder(path))
            env, is_text = self.locate.from_env(path), param.type in _TEXTS
            return Value(fitted, origin, outside=True, env=env, is_text=is_text, mixed=bool(env) and not self.locate.is_param(path))
        except _WrongError as wrong:
            return self._wrong(f"`{name}` is {wrong}, but this stage gives {show(value)}", (), self.locate.label(path))

    def _default(self, param: Param, name: str) -> Value:
        path: KeyPath = ("params", name, "default")
        value = param.default
        if value is None:
            return Value(None, "default", outside=False)
        for at, text in scalars(value, path):
            if isinstance(text, str) and re.search(r"(?<!\$)(\$\$)*\$(\{|[A-Za-z_])", text):
                return self._wrong("a param cannot refer to another param", "write a dollar as `$$`", self.locate.label(at))
        finding = homeless(value, path, self.locate) if param.type == "path" and isinstance(value, str) and value else None
        if finding is not None:
            self.out.add(finding)
            return _WRONG
        try:
            plain = with_texts(value, lambda text, _: text.replace("$$", "$"))
            return Value(self._fit(param, plain, self.locate.folder(path)), "default", outside=False)
        except _WrongError as wrong:
            return self._wrong(f"`{name}` is {wrong}, but its default is {show(value)}", (), self.locate.label(path))

    def _fit(self, param: Param, value: Any, folder: Path) -> Any:
        """Converts a value to its declared type and checks its bounds; makes a path absolute."""
        if param.type == "choice":
            if value not in (param.choices or ()):
                near = closest(str(value), param.choices or ())
                raise _WrongError(one_of(param.choices or ()) + (f" (did you mean `{near}`?)" if near else ""))
            return value
        types, words = _TYPES[param.type]
        fits = isinstance(value, types) and (param.type == "bool" or not isinstance(value, bool))
        each = value if isinstance(value, list) else ()
        fits = fits and all(isinstance(one, (bool, int, float, str)) for one in each)
        if not fits or (param.type == "float" and not math.isfinite(value)):
            raise _WrongError(words)
        value = float(value) if param.type == "float" else value
        low, high = param.min, param.max
        if (low is not None and value < low) or (high is not None and value > high):
            raise _WrongError(f"at least {low:g}" if high is None else f"at most {high:g}" if low is None else f"from {low:g} to {high:g}")
        return absolute(value, folder) if param.type == "path" else value


def is_secret(variable: str) -> bool:
    """Tests if the name of a variable is that of a secret, such as `DB_PASSWORD`."""
    if variable.upper() in _OPEN:
        return False
    words = (word.strip("0123456789") for word in variable.split("_"))
    is_named = any(_SECRET_WORD.fullmatch(word) for word in words) or _SECRET_END.search(variable) is not None
    return is_named or variable.upper().startswith("AWS_")


def _declared(known: Collection[str]) -> str:
    return f"the spec declares {one_of(known, 'and')}" if known else "the spec declares no params"


def _declaration(value: Any) -> str:
    """The declaration of a param for which only a value was given."""
    kind = {bool: "bool", int: "int", float: "float", str: "str"}.get(type(value))
    if kind is None or len(str(value)) > _LONGEST_VALUE or "$" in str(value) or (kind == "float" and not math.isfinite(value)):
        return "{type: int, default: 224}"
    return flow({"type": kind, "default": value})


def _convert(param: Param, value: Any) -> Any:
    """Converts a text from outside to the declared type; other values stay."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, tuple):
        value = list(value)
    if not isinstance(value, str) or param.type in ("str", "path", "choice"):
        return value
    if param.type == "bool" and value.lower() in ("1", "0"):
        return value == "1"
    if param.type == "list":
        read = compose(f"value: {value}", "value", Diagnostics())
        return value if read is None else read.value["value"]
    return resolve(value.strip()) if value.strip() else value


_REFERENCE = re.compile(r"\$(?:(\$)|([A-Za-z_][A-Za-z0-9_]*)|\{([^{}]*)\}|(\{))")
_SKIPPED = ("params", "extends", "pipegen")
_GUESSES = 50  # misspelt references that get a suggestion, for which all declared names are compared


class _TooLargeError(Exception):
    """Stops the substitution; the arguments are the message and the path."""


@dataclass(slots=True)
class Substitution:
    """The substitution of references to params in a tree."""

    values: dict[str, Value]  # the declared params
    locate: Locator  # the locator, which notes the values that come from params
    out: Diagnostics  # the collector of findings
    spoiled: set[KeyPath] = field(default_factory=set)  # paths with a reference without a value, where findings are suppressed
    used: set[str] = field(default_factory=set)  # the params with references
    meant: set[str] = field(default_factory=set)  # the params that misspelt references probably mean
    undeclared: set[str] = field(default_factory=set)  # the names of references without a declaration
    _size: int = 0
    _partial: bool = False

    def apply(self, tree: Tree) -> bool:
        """Replaces every reference outside of `params`, and reports unused params; returns `False` if the result is too large."""
        try:
            self._partial = tree.partial
            tree.value = {k: v if k in _SKIPPED else with_texts(v, self._filled, (k,)) for k, v in tree.value.items()}
        except _TooLargeError as large:
            message, path = large.args
            limit = "this limit protects against damaged and hostile files"
            self.out.add(make("PG003", message, self.locate.label(path), help=limit))
            tree.value, tree.partial = {}, True
            return False
        if tree.partial:
            return True
        for name in self.values:
            if name not in self.used | self.meant:
                help_ = (f"use it as `${name}`, or remove it",)
                self.out.add(make("PG107", f"the param `{name}` is never used", self.locate.label(("params", name), key=True), help=help_))
        return True

    def _filled(self, text: str, path: KeyPath) -> Any:
        """Replaces the references in a text; adds up the substituted text, and refuses too much of it."""
        if "$" not in text:
            return text
        value = self._text(text, path)
        size = sum(len(each) for _, each in scalars(value) if isinstance(each, str))
        self._size += size
        if size > MAX_SCALAR:
            raise _TooLargeError(f"with params filled in, one value is longer than {MAX_SCALAR // 1024} KiB", path)
        if self._size > MAX_BYTES:
            raise _TooLargeError(f"with params filled in, the spec is larger than {MAX_BYTES // 2**20} MiB", path)
        return value

    def _text(self, text: str, path: KeyPath) -> Any:
        whole = _REFERENCE.fullmatch(text)
        if whole is not None and not whole[1]:
            value = self._value(whole, path)
            return text if value is None else with_texts(value.value, lambda each, _: each)
        parts: list[str] = []
        end = size = 0
        known: dict[str, str] = {"$$": "$"}
        for match in _REFERENCE.finditer(text):
            if match[0] not in known:
                value = self._value(match, path)
                if value is not None and isinstance(value.value, list):
                    name = match[2] or match[3]
                    message = f"the param `{name}` is a list, which cannot be a part of a text"
                    self.out.add(make("PG106", message, self.locate.label(path), help=f"`${name}` stands alone, as the whole value"))
                    self.spoiled.add(path)
                plain = None if value is None else value.value
                known[match[0]] = match[0] if value is None else str(plain).lower() if isinstance(plain, bool) else str(plain)
            parts += [text[end : match.start()], known[match[0]]]
            size += len(known[match[0]])
            if size > MAX_BYTES:
                break  # `_filled` raises
            end = match.end()
        return "".join(parts) + text[end:]

    def _value(self, match: re.Match[str], path: KeyPath) -> Value | None:
        name = match[2] or match[3] or ""
        value = self.values.get(name)
        if value is None:
            self.spoiled.add(path)
            if not self._partial:
                self._undeclared(match, name, path)
            return None
        self.used.add(name)
        if value.ok and value.value is None:
            default = f"set `params: {{{name}: {{default: …}}}}` in the spec that extends this one"
            default = default if self.locate.in_shared_base(("params", name)) else "give it a `default`"
            help_ = (f"pass `--set {name}=VALUE` (`params={{{name!r}: ...}}` in Python), or {default}",)
            places = self.locate.label(path, "used here"), self.locate.label(("params", name), "declared here", key=True)
            self.out.add(make("PG108", f"the param `{name}` has no value", *places, help=help_))
        if not value.ok or value.value is None:
            self.spoiled.add(path)
            return None
        filled = Filled(name, value, match[0] == match.string and not value.mixed, match.start() == 0)
        self.locate.filled.setdefault(path, []).append(filled)
        return value

    def _undeclared(self, match: re.Match[str], name: str, path: KeyPath) -> None:
        at = self.locate.label(path)
        if match[0] not in masked_value(match.string):
            message = "a `$` in the secret of an address is read as a param, which is not declared"
            outside = "write a dollar as `$$`; or take the whole address from outside, by a param with `env`"
            self.out.add(make("PG106", message, at, help=outside))
            return
        dollar = "write a dollar as `$$`"
        if match[4] or (match[3] is not None and not NAME.fullmatch(name)):
            shown = shorten(match[0])
            help_ = ("write a param as `$name` or `${name}`", dollar)
            self.out.add(make("PG106", f"`{shown}` is not a valid reference to a param", at, help=help_))
            return
        self.undeclared.add(name)
        near = closest(name, list(self.values)) if len(self.undeclared) <= _GUESSES else None
        if near:
            self.meant.add(near)
            help_, fix = (f"did you mean `${near}`?", dollar), self._renamed(match, near, path)
        else:
            declared = f"the spec declares {one_of(self.values, 'and')}" if self.values else "declare it under `params`"
            help_, fix = (declared, dollar), None
        self.out.add(make("PG106", f"the param `{name}` is not declared", at, help=help_, fix=fix))

    def _renamed(self, match: re.Match[str], near: str, path: KeyPath) -> Fix | None:
        source = self.locate.source(path)
        span = self.locate.spans.values.get(path)
        if source is None or span is None or source.count(match[0]) != 1:
            return None
        new = f"${{{near}}}" if match[3] else f"${near}"
        # Not safe, as users choose these names: `$size1` beside `size2` and `size3` could be either.
        return Fix(f"write `{new}`", (Edit(span, source.replace(match[0], new)),), Applicability.SUGGESTION)
