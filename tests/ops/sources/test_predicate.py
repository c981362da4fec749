"""Predicates over columns: what they keep, what they refuse, and that they are trees of comparisons and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipegen.errors import OpError
from pipegen.ops.fields.labels import LIST
from pipegen.ops.sources.features.predicate import parse_predicate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COLUMNS = {
    "age": ["3", "18", "65", "18.0", "-2"],
    "site": ["a", "b", "a", "c c", ""],
    "ok": ["true", "No", "1", "FALSE", "yes"],
    "first name": ["x", "it's", "y", "z", "x"],
    "m.site": ["3", "3", "4", "20", "18"],
    "gap": ["1", "", "x", "2", "3"],
    "many": ["1", "", "x", "2", f"{LIST}1"],
}


class Cells:
    """A table that notes which cells were looked at."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []

    def cells(self, column: str, rows: Sequence[int]) -> tuple[list[str], Callable[[int], str]]:
        self.seen += [(column, row) for row in rows]
        return [COLUMNS[column][row] for row in rows], lambda row: f"row {row}"


def kept(text: str) -> list[int]:
    return parse_predicate(text).select(Cells().cells, range(5))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("age >= 18", [1, 2, 3]),
        ("age == 18", [1, 3]),
        ("age == '18'", [1]),
        ("18 <= age < 65", [1, 3]),
        ("3 == age or 65 == age", [0, 2]),
        ("site in ['a', 'b']", [0, 1, 2]),
        ("site not in ['a', 'b']", [3, 4]),
        ("age in [18, -2]", [1, 3, 4]),
        ("ok", [0, 2, 4]),
        ("not ok", [1, 3]),
        ("ok == false", [1, 3]),
        ("`first name` == 'it\\'s' or `first name` == \"y\"", [1, 2]),
        ("site != '' and not (site == 'a' or site > 'b')", [1]),
        ("age < m.site", [3, 4]),
        ("age == m.site", [0]),  # as texts: 18.0 and 18 differ
        ("not not ok and age>1e1", [2]),
    ],
)
def test_what_is_kept(text: str, rows: list[int]) -> None:
    assert kept(text) == rows


def test_what_the_left_side_has_settled_is_not_asked_of_the_right() -> None:
    for text, asked in (("site == 'a' and age > 1", [0, 2]), ("site == 'a' or age > 1", [1, 3, 4])):
        table = Cells()
        parse_predicate(text).select(table.cells, range(5))
        assert [row for column, row in table.seen if column == "age"] == asked


@pytest.mark.parametrize(
    ("text", "says", "advice"),
    [
        (
            "gap > 0",
            "row 1 has an empty cell in the column `gap`; `where` compares it with numbers",
            "use `gap != '' and …` to leave such rows out",
        ),
        ("gap != '' and gap > 0", "row 2 has 'x' in the column `gap`; `where` compares it with numbers", "in quotes"),
        ("site", "row 0 has 'a' in the column `site`; `where` compares it with true or false", "in quotes"),
        ("many == 'x'", "row 4 holds a list in the column `many`", None),
    ],
)
def test_a_cell_that_cannot_be_compared_is_named(text: str, says: str, advice: str | None) -> None:
    with pytest.raises(OpError) as caught:
        kept(text)
    assert (caught.value.code, caught.value.field) == ("PG452", "where")
    assert says in caught.value.message
    assert advice is None or advice in caught.value.lines[0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a = 1", "needs `==` instead of `=` at character 3"),
        ("a && b", "needs `and` instead of `&&`"),
        ("!a", "needs `not` instead of `!`"),
        ("len(a) > 3", "cannot call functions"),
        ("__import__('os')", "cannot call functions"),
        ("('os').system", "at character 7"),
        ("a.b.c()", "cannot call functions"),
        ("a[0] == 1", r"got '\[' at character 2"),
        ("a in (1, 2)", r"a list after `in`, such as `\['a', 'b'\]`"),
        ("a in [1, 'b']", "cannot list both numbers and texts"),
        ("a in []", "needs a list of numbers, or of texts in quotes"),
        ("'a' in b", "a column before `in`"),
        ("1 < 2", "must compare a column"),
        ("a >", "it ends here"),
        ("a == 'x", "needs a closing ' for character 6"),
        ("a == $b", r"cannot have '\$b'.*backticks"),
        ("a == 1 b", "must end or go on with `and` or `or`"),
        ("(a", r"needs a closing `\)`"),
        ("a < true", "by `==` and `!=` only"),
        ("(" * 51 + "a", "nested at most 50 deep"),
        ("not " * 60 + "a", "nested at most 50 deep"),
        ("a or " * 3000 + "a", "at most 10,000 characters"),
        ("", "it ends here"),
    ],
)
def test_what_is_no_predicate(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_predicate(text)


@given(st.text(alphabet="ab1 .'\"`()[]<>=!,andortin\\", max_size=30))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    said = ""
    try:
        parse_predicate(text)
    except ValueError as error:
        said = str(error)
    assert not said or said.startswith("a predicate ")


NUMBERS = st.lists(st.integers(-3, 3), min_size=6, max_size=6)
LEAVES = st.one_of(
    st.tuples(st.sampled_from("xy"), st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), st.integers(-3, 3)).map(
        lambda t: f"{t[0]} {t[1]} {t[2]}"
    ),
    st.tuples(st.sampled_from("xy"), st.sampled_from(["in", "not in"]), st.lists(st.integers(-3, 3), min_size=1, max_size=3)).map(
        lambda t: f"{t[0]} {t[1]} {t[2]}"
    ),
    st.just("x < y"),
    st.just("-1 <= x < 2"),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map("not {}".format), inner.map("({})".format), st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join)
    ),
    max_leaves=8,
)


@settings(max_examples=150)
@given(TREES, NUMBERS, NUMBERS)
def test_it_means_what_the_same_text_means_in_python(text: str, x: list[int], y: list[int]) -> None:
    class Table:
        def cells(self, column: str, rows: Sequence[int]) -> tuple[list[str], Callable[[int], str]]:
            values: Any = {"x": x, "y": y}[column]
            return [str(values[row]) for row in rows], str

    expected = [row for row in range(6) if eval(text, {"x": x[row], "y": y[row]})]
    assert parse_predicate(text).select(Table().cells, range(6)) == expected
