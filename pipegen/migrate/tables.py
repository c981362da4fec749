"""DataFrames read from files, and their changes in the code; parts of tables, dicts and lists."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from pipegen.migrate.labels import of_rows
from pipegen.migrate.values import Const, Frame, Map, Options, Seq, Share, Table, Unknown, Value, origins_of, picked, plain, unknown

if TYPE_CHECKING:
    from pipegen.migrate.evaluator import Evaluator

_HARMLESS = ("dtype", "encoding", "engine", "low_memory", "usecols")
_KEEPING = ("sample", "reset_index", "copy", "astype", "sort_values", "sort_index")
"""Methods that keep the rows; their order does not matter once the data is shuffled and split again."""


def read_table(evaluator: Evaluator, node: ast.Call, frame: Frame, *, tab: bool) -> Value:
    """Evaluates `pandas.read_csv` of a known file."""
    args = {k.arg: evaluator.value(k.value, frame) for k in node.keywords if k.arg is not None}
    named = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "filepath_or_buffer"), None)
    if any(k.arg is None for k in node.keywords) or len(node.args) > 1:
        return Unknown("the table is read with arguments that are not followed", node.lineno)
    first = evaluator.value(node.args[0], frame) if node.args else args.pop("filepath_or_buffer", Unknown("no file is named", node.lineno))
    path = plain(first)
    origins = origins_of(first, *args.values())
    if not isinstance(path, str):
        return unknown(path, "the path of the table is not known", node.lineno)
    if path.lower().endswith((".gz", ".zip", ".bz2", ".xz", ".parquet")) or "://" in path:
        return Unknown("the table is compressed, or not a local text file", node.lineno)
    separator = plain(args.pop("sep", args.pop("delimiter", Const("\t" if tab else None))))
    if plain(args.pop("delim_whitespace", Const(False))) is True or separator in (r"\s+", r"\s*"):
        separator = "whitespace"
    header = plain(args.pop("header", Const("infer")))
    names = plain(args.pop("names", Const(None)))
    odd = next((k for k in args if k not in _HARMLESS), None)
    if odd is not None:
        return Unknown(f"the table is read with `{odd}`", node.lineno)
    if header not in (None, 0, "infer") or isinstance(names, Unknown) or not (separator is None or _is_separator(separator)):
        return Unknown("the table is read with arguments that have no equivalent", node.lineno)
    if "usecols" in args and (header is None or names is not None):
        return Unknown("the table is read with `usecols` and without a header", node.lineno)
    columns = tuple(str(n) for n in names) if isinstance(names, (list, tuple)) else None
    if columns is not None and header == 0:
        return Unknown("the table's header is replaced by other names", node.lineno)
    has_header = header in (0, "infer") and columns is None
    given = (named, frame) if named is not None else None
    return Table(path, None if separator == "," else separator, has_header, columns, origins=origins, named=given)


def _is_separator(text: object) -> bool:
    return isinstance(text, str) and (text == "whitespace" or (len(text) == 1 and text not in '"\r\n'))


def split_table(evaluator: Evaluator, node: ast.Call, frame: Frame, values: list[Value]) -> Value:
    """Evaluates `train_test_split` of one table."""
    if len(values) != 1 or not isinstance(values[0], Table) or values[0].split is not None:
        return Unknown("the data is split by `train_test_split`", node.lineno)
    args = {k.arg: k.value for k in node.keywords if k.arg is not None}
    test_given, train_given = (evaluator.value(args[n], frame) if n in args else Const(None) for n in ("test_size", "train_size"))
    test, train = plain(test_given), plain(train_given)
    if test is None and isinstance(train, float) and 0 < train < 1:
        test = round(1 - train, 6)
    if test is None and "test_size" not in args and "train_size" not in args:
        test = 0.25
    if isinstance(test, bool) or not isinstance(test, (int, float)) or not (0 < test < 1 or (isinstance(test, int) and test > 1)):
        return Unknown("the size of the split is not known", node.lineno)
    share = Share(node, test, "stratify" in args and not (isinstance(args["stratify"], ast.Constant) and args["stratify"].value is None))
    origins = origins_of(values[0], test_given, train_given)
    return Seq(tuple(replace(values[0], part=part, split=share, origins=origins) for part in ("train", "test")))


def table_method(table: Table, name: str, node: ast.Call) -> Value:
    """Evaluates a method of a DataFrame."""
    chooses = name == "sample" and any(k.arg in ("n", "replace") or (k.arg == "frac" and _is_share(k.value)) for k in node.keywords)
    if name in _KEEPING and not chooses and not (name == "sample" and node.args):
        return table
    return Unknown(f"`.{name}(…)` changes the table's rows or columns", node.lineno)


def _is_share(node: ast.expr) -> bool:
    return not (isinstance(node, ast.Constant) and node.value in (1, 1.0))


def subscript(evaluator: Evaluator, node: ast.Subscript, frame: Frame) -> Value:
    """Evaluates `owner[key]`."""
    owner = evaluator.value(node.value, frame)
    rows = of_rows(owner, node.slice)
    if rows is not None:
        return rows
    if isinstance(owner, Table):
        return owner if isinstance(node.slice, ast.List) else Unknown("its rows are selected by code", node.lineno)
    if not isinstance(owner, (Options, Seq, Map)):
        return unknown(owner, "an element of it is known only at run time", node.lineno)
    chosen_by = evaluator.value(node.slice, frame)
    key = plain(chosen_by)
    if isinstance(owner, Options) and owner.as_map and isinstance(key, str) and not origins_of(chosen_by):
        return evaluator.outside.option(key, node.lineno, fixed=owner.fixed)
    found: Value | None = None
    if isinstance(owner, Map) and isinstance(key, str):
        found = owner.items.get(key)
    elif isinstance(owner, Seq) and isinstance(key, int) and -len(owner.items) <= key < len(owner.items):
        found = owner.items[key]
    if found is None:
        return Unknown("an element of it is known only at run time", node.lineno)
    by = origins_of(chosen_by)
    return (picked(found, chosen_by) or Unknown(f"{by[0]} selects it", node.lineno)) if by else found
