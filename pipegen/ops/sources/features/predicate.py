"""Expressions over columns, which run no code: predicates select rows by comparisons, and arithmetic computes a number for each row."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, compress
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NoReturn, TypeAlias

from pydantic import AfterValidator, Field

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.fields.labels import LIST

if TYPE_CHECKING:
    Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
    Reader: TypeAlias = Callable[[str], Any]
    """Converts a cell to a value that can be compared. Raises `ValueError` with the word for what the cell should be."""
    Cells: TypeAlias = Callable[[str, Sequence[int]], tuple[Sequence[str], Callable[[int], str]]]
    """Returns the texts of a column in some rows, and a function that describes the place of a row."""

_FIELD = "where"
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
Literal: TypeAlias = bool | int | float | str


@dataclass(frozen=True)
class Column:
    """A column by name, or by number for a table without a header."""

    name: str

    def __str__(self) -> str:
        return f"`{self.name}`"


@dataclass(frozen=True)
class Predicate:
    """A condition that selects rows."""

    columns: tuple[str, ...]  # the columns that it reads
    select: Callable[[Cells, Sequence[int]], Sequence[int]]
    """Selects the rows for which it holds; `PG452` for a cell that cannot be compared."""


def _test(sides: tuple[Column | Literal, ...], read: Reader, holds: Callable[..., bool]) -> Predicate:
    """Tests the values of columns and constants in a row by `holds`; `read` converts the cells of the columns."""

    def select(cells: Cells, rows: Sequence[int]) -> Sequence[int]:
        values = [_values(side, cells, rows, read) for side in sides]
        return list(compress(rows, map(holds, *values)))

    return Predicate(tuple(side.name for side in sides if isinstance(side, Column)), select)


def _compare(left: Column | Literal, symbol: str, right: Column | Literal) -> Predicate:
    """Compares two sides, at least one of them a column. Compared with a number or a truth value, cells are parsed as such; with a text,
    they stay text. Two columns are compared as numbers by `<` and similar, as texts by `==` and `!=`."""
    other = next((side for side in (left, right) if not isinstance(side, Column)), None)
    of_columns = _as_text if symbol in ("==", "!=") else _as_number
    return _test((left, right), of_columns if other is None else _reader_beside(other), _COMPARE[symbol])


def _not(part: Predicate) -> Predicate:
    def select(cells: Cells, rows: Sequence[int]) -> Sequence[int]:
        out = set(part.select(cells, rows))
        return [row for row in rows if row not in out]

    return Predicate(part.columns, select)


def _all(parts: Sequence[Predicate]) -> Predicate:
    """Predicates that must all hold; later ones are tested only on rows for which earlier ones hold."""

    def select(cells: Cells, rows: Sequence[int]) -> Sequence[int]:
        for part in parts:
            rows = part.select(cells, rows)
        return rows

    return Predicate(tuple(chain.from_iterable(part.columns for part in parts)), select)


def _any(parts: Sequence[Predicate]) -> Predicate:
    """Predicates of which one must hold; later ones are tested only on rows for which no earlier one holds."""

    def select(cells: Cells, rows: Sequence[int]) -> Sequence[int]:
        found: set[int] = set()
        for part in parts:
            found.update(part.select(cells, [row for row in rows if row not in found]))
        return [row for row in rows if row in found]

    return Predicate(tuple(chain.from_iterable(part.columns for part in parts)), select)


def _reader_beside(literal: Literal) -> Reader:
    if isinstance(literal, bool):
        return _as_truth
    return _as_text if isinstance(literal, str) else _as_number


def _values(side: Column | Literal, cells: Cells, rows: Sequence[int], read: Reader) -> Sequence[Any]:
    """Converts one side of a comparison for some rows; `PG452` for an unsuitable cell."""
    if not isinstance(side, Column):
        return [side] * len(rows)
    texts, place = cells(side.name, rows)
    values: dict[str, Any] = {}
    for row, cell in zip(rows, texts, strict=True):
        if cell in values:
            continue
        try:
            values[cell] = read(cell)
        except ValueError as error:
            raise _not_comparable(side, cell, place(row), str(error)) from None
    return [values[cell] for cell in texts]


def _not_comparable(column: Column, cell: str, place: str, due: str) -> OpError:
    if cell.startswith(LIST):
        return OpError("PG452", f"{place} holds a list in the column {column}; `where` compares single values", field=_FIELD)
    if not cell:
        message = f"{place} has an empty cell in the column {column}; `where` compares it with {due}"
        said = f"use `{column.name} != '' and …` to leave such rows out, `{column.name} == '' or …` to keep them"
        return OpError("PG452", message, field=_FIELD, help=said)
    message = f"{place} has {cell!r} in the column {column}; `where` compares it with {due}"
    helps = ("put the value in quotes to compare text", f"or leave such rows out with `{column.name} != {cell!r} and …`")
    return OpError("PG452", message, field=_FIELD, help=helps)


def _as_text(cell: str) -> str:
    if cell.startswith(LIST):
        raise ValueError("texts")
    return cell


def _as_number(cell: str) -> int | float:
    try:
        value = int(cell) if cell.lstrip("+-").isdigit() and len(cell) < 40 else float(cell.replace("_", "x"))
    except ValueError:
        raise ValueError("numbers") from None
    if value != value:
        raise ValueError("numbers")
    return value


def _as_truth(cell: str) -> bool:
    """Parses a truth value: `true`, `yes` and `1`, or `false`, `no` and `0`, in any case."""
    if cell.lower() not in _TRUTH:
        raise ValueError("true or false")
    return _TRUTH[cell.lower()]


@dataclass(frozen=True)
class Arithmetic:
    """A number for each row."""

    columns: tuple[str, ...]  # the columns that it reads
    compute: Callable[[Mapping[str, Floats]], Floats]
    """Computes it from the numbers of the columns, float64 `(rows,)` each; not finite where it has no value, as for 1 / 0."""


def _computed(symbol: str, parts: Sequence[Arithmetic]) -> Arithmetic:
    apply, columns = _COMPUTE[symbol], tuple(chain.from_iterable(part.columns for part in parts))
    return Arithmetic(columns, lambda values: apply(*(part.compute(values) for part in parts)))


_COMPUTE: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow, "negative": operator.neg,
}  # fmt: skip
_LONGEST = 10_000
_DEEPEST = 50
_TOKENS = r"""\s*(?:
    (?P<number>SIGN(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
  | (?P<text>'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*")
  | (?P<quoted>`[^`]+`)
  | (?P<word>[^\W\d]\w*(?:\.\w+)*)
  | (?P<symbol>==|!=|<=|>=|<>|&&|\|\||[<>=!&|()\[\],]OPERATORS)
  | (?P<end>$)
    )"""
_TOKEN = re.compile(_TOKENS.replace("SIGN", "[+-]?").replace("OPERATORS", ""), re.VERBOSE)
_OF_ARITHMETIC = re.compile(_TOKENS.replace("SIGN", "").replace("OPERATORS", r"|\*\*|[-+*/]"), re.VERBOSE)
_COMPARISONS = ("==", "!=", "<=", ">=", "<", ">")
_WORDS = frozenset({"and", "or", "not", "in", "true", "false"})
_INSTEAD = {"=": "==", "<>": "!=", "&&": "and", "&": "and", "||": "or", "|": "or", "!": "not"}  # operators of other languages, and ours


@dataclass(frozen=True)
class _Token:
    """A token: kind, text and start."""

    kind: str
    text: str
    at: int


def parse_predicate(text: str) -> Predicate:
    """Parses a predicate. Raises `ValueError` if it is invalid; the message names the character and what to write."""
    return _Parser(text).whole()


def parse_arithmetic(text: str) -> Arithmetic:
    """Parses arithmetic; for errors see `parse_predicate`."""
    return _ArithmeticParser(text).number()


def _readable(parse: Callable[[str], Any], text: str) -> str:
    parse(text)
    return text


Where: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(partial(_readable, parse_predicate))]  # the text of a predicate
Computed: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(partial(_readable, parse_arithmetic))]  # the text of arithmetic


class _Parser:
    """A recursive-descent parser."""

    called: ClassVar[str] = "a predicate"
    pattern: ClassVar[re.Pattern[str]] = _TOKEN

    def __init__(self, text: str) -> None:
        if len(text) > _LONGEST:
            raise ValueError(f"{self.called} can have at most {_LONGEST:,} characters; this one has {len(text):,}")
        self._tokens = _tokens(text, self.pattern, self.called)
        self._next = 0
        self._depth = 0

    def whole(self) -> Predicate:
        found = self._either()
        if self._token.kind != "end":
            self._refuse(self._token, "must end or go on with `and` or `or`")
        return found

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _either(self) -> Predicate:
        return self._series("or", lambda: self._series("and", self._negation, _all), _any)

    def _series(self, word: str, part: Callable[[], Predicate], joined: Callable[[Sequence[Predicate]], Predicate]) -> Predicate:
        """Parses one part, or several with a word between them."""
        parts = [part()]
        while self._take("word", word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else joined(parts)

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        """Counts a level of nesting; `ValueError` if there are too many."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError(f"{self.called} can be nested at most {_DEEPEST} deep")
        yield
        self._depth -= 1

    def _negation(self) -> Predicate:
        with self._deeper():
            if self._take("word", "not"):
                return _not(self._negation())
            if self._take("symbol", "("):
                inner = self._either()
                self._need(")", "needs a closing `)`")
                return inner
            return self._comparison()

    def _comparison(self) -> Predicate:
        start = self._token
        left = self._side()
        negated = self._token.text == "not" and self._tokens[self._next + 1].text == "in"
        if negated:
            self._next += 1
        if self._take("word", "in"):
            if not isinstance(left, Column):
                self._refuse(start, "needs a column before `in`")
            values = self._list()
            among = _test((left,), _reader_beside(values[0]), frozenset(values).__contains__)
            return _not(among) if negated else among
        parts: list[Predicate] = []
        while (token := self._token).kind == "symbol" and token.text in _COMPARISONS:
            self._next += 1
            right = self._side()
            if not isinstance(left, Column) and not isinstance(right, Column):
                self._refuse(start, "must compare a column")
            if token.text not in ("==", "!=") and isinstance(left if isinstance(right, Column) else right, bool):
                self._refuse(token, "can compare `true` and `false` by `==` and `!=` only")
            parts.append(_compare(left, token.text, right))
            left = right
        if parts:
            return parts[0] if len(parts) == 1 else _all(parts)
        if isinstance(left, Column) and self._token.text not in _INSTEAD:
            return _test((left,), _as_truth, bool)
        return self._refuse(self._token, f"must go on with {', '.join(f'`{c}`' for c in _COMPARISONS)} or `in`")

    def _side(self) -> Column | Literal:
        token = self._token
        if token.kind == "quoted":
            self._next += 1
            return Column(token.text[1:-1])
        if token.kind == "word" and token.text not in _WORDS:
            self._next += 1
            if self._token.text == "(":
                self._refuse(token, "cannot call functions")
            return Column(token.text)
        return self._literal("needs a column, a number or a text in quotes")

    def _literal(self, due: str) -> Literal:
        token = self._token
        self._next += 1
        if token.kind == "number":
            whole = token.text.lstrip("+-").isdigit()
            return int(token.text) if whole else float(token.text)
        if token.kind == "text":
            return re.sub(r"\\(.)", r"\1", token.text[1:-1])
        if token.text in ("true", "false"):
            return token.text == "true"
        return self._refuse(token, due)

    def _list(self) -> tuple[Literal, ...]:
        first, values = self._token, list[Literal]()
        self._need("[", "needs a list after `in`, such as `['a', 'b']`")
        while not values or self._take("symbol", ","):
            values.append(self._literal("needs a list of numbers, or of texts in quotes"))
        self._need("]", "needs a closing `]`")
        if len({type(value) if isinstance(value, (bool, str)) else float for value in values}) > 1:
            self._refuse(first, "cannot list both numbers and texts")
        return tuple(values)

    def _take(self, kind: str, text: str) -> bool:
        taken = (self._token.kind, self._token.text) == (kind, text)
        self._next += taken
        return taken

    def _need(self, symbol: str, due: str) -> None:
        if not self._take("symbol", symbol):
            self._refuse(self._token, due)

    def _refuse(self, token: _Token, due: str) -> NoReturn:
        instead = _INSTEAD.get(token.text) if token.kind == "symbol" else None
        if instead is not None:
            raise ValueError(f"{self.called} needs `{instead}` instead of `{token.text}` at character {token.at + 1}")
        here = f"got {token.text!r} at character {token.at + 1}" if token.kind != "end" else "it ends here"
        raise ValueError(f"{self.called} {due}; {here}")


class _ArithmeticParser(_Parser):
    """A parser of `+`, `-`, `*`, `/`, `**`, brackets, numbers and columns."""

    called = "an expression"
    pattern = _OF_ARITHMETIC

    def number(self) -> Arithmetic:
        """Parses the whole text."""
        found = self._sum()
        if self._token.kind != "end":
            self._refuse(self._token, "must end or go on with `+`, `-`, `*`, `/` or `**`")
        if not found.columns:
            raise ValueError("an expression needs a column; this one is the same number for every record")
        return found

    def _sum(self) -> Arithmetic:
        return self._chain(("+", "-"), lambda: self._chain(("*", "/"), self._power))

    def _chain(self, symbols: Sequence[str], part: Callable[[], Arithmetic]) -> Arithmetic:
        found = part()
        while self._token.kind == "symbol" and (symbol := self._token.text) in symbols:
            self._next += 1
            found = _computed(symbol, (found, part()))
        return found

    def _power(self) -> Arithmetic:
        """Parses a signed number; `**` binds more closely than a sign before it, and less than one behind it."""
        with self._deeper():
            if self._take("symbol", "-"):
                return _computed("negative", (self._power(),))
            base = self._single()
            return _computed("**", (base, self._power())) if self._take("symbol", "**") else base

    def _single(self) -> Arithmetic:
        if self._take("symbol", "("):
            inner = self._sum()
            self._need(")", "needs a closing `)`")
            return inner
        start, side = self._token, self._side()
        if isinstance(side, Column):
            name = side.name
            return Arithmetic((name,), lambda values: values[name])
        if isinstance(side, (bool, str)):
            self._refuse(start, "needs a column or a number")
        return Arithmetic((), lambda _: np.float64(side))


def _tokens(text: str, pattern: re.Pattern[str], called: str) -> list[_Token]:
    """Splits a text into tokens; the last two are its end, so that one can look ahead. Raises `ValueError` if a character begins no
    token."""
    found: list[_Token] = []
    at = 0
    while True:
        match = pattern.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            rest = text[at:]
            if rest[0] in "'\"`":
                raise ValueError(f"{called} needs a closing {rest[0]} for character {at + 1}")
            help_ = "; put column names that are not plain words in backticks, such as `` `first name` ``"
            raise ValueError(f"{called} cannot have {rest[:12]!r} at character {at + 1}{help_}")
        kind = str(match.lastgroup)
        found.append(_Token(kind, match[kind], match.start(kind)))
        at = match.end()
        if kind == "end":
            return [*found, found[-1]]
