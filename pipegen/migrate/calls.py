"""Evaluates calls and subscripts: objects of Keras and of the file, tables of pandas, arrays of labels, records, paths and plain values."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import partial
from typing import Literal, cast

from pipegen.migrate import values as v
from pipegen.migrate.evaluate import Evaluator, Handler, arguments, bind
from pipegen.migrate.members import attribute, from_outside, is_plain_class, parsed
from pipegen.migrate.nodes import Row, called, flattened, start
from pipegen.migrate.signatures import CONSTRUCTOR, FLOWS, is_keras

_MOST_CLASSES = 20


def call_value(evaluator: Evaluator, node: ast.Call, frame: v.Frame) -> v.Value:
    """Evaluates a call."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in FLOWS:
        owner = evaluator.value(node.func.value, frame)
        if isinstance(owner, v.Generator) or (node.func.attr != "flow" and not isinstance(owner, (v.Class, v.Dotted, v.Local))):
            args, wrong = arguments(evaluator, node, frame, FLOWS[node.func.attr])
            generator = owner if isinstance(owner, (v.Generator, v.Unknown)) else v.Unknown("it is not an ImageDataGenerator", node.lineno)
            return v.Flow(node.lineno, args, node, frame, wrong, node.func.attr, generator)
    if (labels := of_call(evaluator, node, frame)) is not None:
        return labels
    function = evaluator.value(node.func, frame)
    if isinstance(function, v.Class):
        return _instance(evaluator, node, frame, function)
    if isinstance(function, v.Local):
        return evaluator.returned(function, node, frame)[1]
    if isinstance(function, v.Dotted):
        return _of_library(evaluator, node, frame, function.name)
    if isinstance(node.func, ast.Attribute):
        return _method(evaluator, node, frame)
    return v.Unknown("it is the result of a call", node.lineno)


def _instance(evaluator: Evaluator, node: ast.Call, frame: v.Frame, of: v.Class) -> v.Value:
    """Object of a class of the file: a generator, if the class is a subclass that keeps the constructor."""
    classes = _generator_classes(evaluator, of)
    if not classes:
        return _made(evaluator, node, frame, of) or v.Unknown(f"it is an object of `{of.node.name}`", node.lineno)
    if any(isinstance(m, ast.FunctionDef) and m.name == "__init__" for c in classes for m in c.body):
        return v.Unknown(f"`{of.node.name}` is a subclass of ImageDataGenerator with a constructor of its own", node.lineno)
    args, wrong = arguments(evaluator, node, frame, CONSTRUCTOR)
    return v.Generator(node.lineno, args, node, frame, wrong, classes)


def _generator_classes(evaluator: Evaluator, of: v.Class, depth: int = 0) -> tuple[ast.ClassDef, ...]:
    """A class of the file and its bases up to `ImageDataGenerator`; empty if it does not derive from that."""
    for base in (evaluator.value(b, of.frame) for b in of.node.bases):
        if isinstance(base, v.Dotted) and _is_generator(base.name):
            return (of.node,)
        if isinstance(base, v.Class) and depth < _MOST_CLASSES and (above := _generator_classes(evaluator, base, depth + 1)):
            return (of.node, *above)
    return ()


def _is_generator(name: str) -> bool:
    return name.endswith(".ImageDataGenerator") and is_keras(name)


def _of_library(evaluator: Evaluator, node: ast.Call, frame: v.Frame, name: str) -> v.Value:
    if _is_generator(name):
        args, wrong = arguments(evaluator, node, frame, CONSTRUCTOR)
        return v.Generator(node.lineno, args, node, frame, wrong)
    last = name.rsplit(".", 1)[-1]
    values = [evaluator.value(a, frame) for a in node.args if not isinstance(a, ast.Starred)]
    if last in ("read_csv", "read_table") and name.split(".")[0] == "pandas":
        return read_table(evaluator, node, frame, tab=last == "read_table")
    if last == "train_test_split" and name.split(".")[0] == "sklearn" and not are_several(values, node):
        return split_table(evaluator, node, frame, values)
    given = of_arrays(name, values, node) or from_outside(evaluator, node, name, values)
    if given is not None:
        return given
    if name == "builtins.zip" and len(values) == len(node.args) == 2 and not node.keywords:
        first, second = values
        if isinstance(first, v.Flow) and isinstance(second, v.Flow) and first is not second:
            return v.Zipped((first, second), node, frame)
    starts = [value.items for value in values if isinstance(value, v.Map)]
    if name == "builtins.dict" and len(starts) == len(node.args) <= 1:
        found = _keywords(evaluator, node, frame)
        if found is not None:
            return v.Map({**(starts[0] if starts else {}), **found})
    return v.plain_call(name, values, node)


def _keywords(evaluator: Evaluator, node: ast.Call, frame: v.Frame) -> dict[str, v.Value] | None:
    """Keywords of a call, also of a known dict; `None` if they are not all known by name."""
    names = tuple({k.arg or "" for k in node.keywords})
    found, wrong = arguments(evaluator, ast.Call(node.func, [], node.keywords), frame, names)
    return None if "**" in found or wrong else {name: argument.value for name, argument in found.items()}


def _method(evaluator: Evaluator, node: ast.Call, frame: v.Frame) -> v.Value:
    attribute = cast("ast.Attribute", node.func)
    owner, name = evaluator.value(attribute.value, frame), attribute.attr
    if isinstance(owner, v.Table):
        all_rows = [k for k in node.keywords if k.arg == "frac" and isinstance(k.value, ast.Constant) and k.value.value in (1, 1.0)]
        chooses = node.args or any(k.arg in ("n", "replace", "frac") and k not in all_rows for k in node.keywords)
        keeps = name in _KEEPING and not (name == "sample" and chooses)
        return owner if keeps else v.Unknown(f"`.{name}(…)` changes the table's rows or columns", node.lineno)
    if isinstance(owner, v.Parser):
        return parsed(evaluator, node, frame, name)
    if name == "copy" and not node.args and not node.keywords and isinstance(owner, (v.Map, v.Seq)):
        return owner
    values = [evaluator.value(a, frame) for a in node.args if not isinstance(a, ast.Starred)]
    return v.plain_method(owner, name, values, node)


def _made(evaluator: Evaluator, node: ast.Call, frame: v.Frame, of: v.Class) -> v.Value | None:
    """Object of a class of the file, if its attributes can be followed; else `None`."""
    fields = _fields(evaluator, of)
    if fields is not None:
        return _record(evaluator, node, frame, fields, of.node)
    if not is_plain_class(evaluator, of):
        return None
    constructor = next((m for m in of.node.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None)
    seen = evaluator.objects.setdefault(id(of.node), [])
    if constructor is None and (node.args or node.keywords):
        return None
    if constructor is None:
        seen.append(v.Instance(of))
        return seen[-1]
    args = bind(evaluator, constructor.args, node, frame, of.frame, method=True)
    if constructor.decorator_list or args is None or evaluator.is_too_deep(constructor, frame):
        return None
    made = evaluator.frame(constructor, evaluator.frame(of.node, of.frame, {}), args, call=node, caller=frame)
    made.depth = max(made.depth, frame.depth + 1)
    found = v.Instance(of, made)
    seen.append(found)
    for statement in flattened(constructor.body):
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            evaluator.value(statement.value, made)  # a method that sets attributes is called before they are read
    return found


def _fields(evaluator: Evaluator, of: v.Class) -> list[tuple[str, v.Value | None]] | None:
    """Fields of a data class or a `NamedTuple` with their defaults, in order; `None` for other classes."""
    bases = [getattr(evaluator.value(b, of.frame), "name", "") for b in of.node.bases]
    made_by = [evaluator.value(d.func if isinstance(d, ast.Call) else d, of.frame) for d in of.node.decorator_list]
    data_class = not bases and [getattr(d, "name", "") for d in made_by] == ["dataclasses.dataclass"]
    if not data_class and not (bases == ["typing.NamedTuple"] and not made_by):
        return None
    odd = ("__init__", "__new__", "__getattr__", "__getattribute__", "__setattr__", "__post_init__")
    if any(isinstance(m, ast.FunctionDef) and m.name in odd for m in of.node.body):
        return None
    inner = evaluator.frame(of.node, of.frame, {})
    found: list[tuple[str, v.Value | None]] = []
    for statement in of.node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            if any(word in ast.dump(statement.annotation) for word in ("ClassVar", "InitVar", "KW_ONLY")):
                return None
            found.append((statement.target.id, _default(evaluator, statement.value, inner)))
    return found


def _default(evaluator: Evaluator, node: ast.expr | None, inner: v.Frame) -> v.Value | None:
    if node is None:
        return None
    if not isinstance(node, ast.Call) or getattr(evaluator.value(node.func, inner), "name", "") != "dataclasses.field":
        return evaluator.value(node, inner)
    given = {k.arg: k.value for k in node.keywords}
    if set(given) <= {"default", "repr", "compare", "hash", "metadata"} and "default" in given:
        return evaluator.value(given["default"], inner)
    factory = given.get("default_factory")
    if set(given) == {"default_factory"} and isinstance(factory, ast.Lambda):
        return evaluator.value(factory.body, inner)
    return v.Unknown("its field has a default that is not followed", node.lineno) if factory is not None or "default" in given else None


def _record(
    evaluator: Evaluator, node: ast.Call, frame: v.Frame, fields: list[tuple[str, v.Value | None]], definition: ast.ClassDef | None = None
) -> v.Value | None:
    names = tuple(name for name, _ in fields)
    given, wrong = arguments(evaluator, node, frame, names)
    if "**" in given or wrong or len(node.args) > len(names):
        return None
    missing = v.Unknown("no value is given", node.lineno)
    items: dict[str, v.Value] = {name: given[name].value if name in given else default or missing for name, default in fields}
    changed = evaluator.assignments(definition) if definition is not None else {}
    return v.Record({**items, **{name: v.Unknown("a method assigns it, too", node.lineno) for name in items if name in changed}})


_HARMLESS = ("dtype", "encoding", "engine", "low_memory", "usecols")
_KEEPING = ("sample", "reset_index", "copy", "astype", "sort_values", "sort_index")
"""Methods that keep the rows; their order does not matter once the data is shuffled and split again."""


def read_table(evaluator: Evaluator, node: ast.Call, frame: v.Frame, *, tab: bool) -> v.Value:
    """Evaluates `pandas.read_csv` of a known file."""
    args = {k.arg: evaluator.value(k.value, frame) for k in node.keywords if k.arg is not None and k.arg != "filepath_or_buffer"}
    named = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "filepath_or_buffer"), None)
    if any(k.arg is None for k in node.keywords) or len(node.args) > 1:
        return v.Unknown("the table is read with arguments that are not followed", node.lineno)
    first = evaluator.value(named, frame) if named is not None else v.Unknown("no file is named", node.lineno)
    path = v.plain(first)
    origins = v.origins_of(first, *args.values())
    if not isinstance(path, str):
        return v.unknown(path, "the path of the table is not known", node.lineno)
    if path.lower().endswith((".gz", ".zip", ".bz2", ".xz", ".parquet")) or "://" in path:
        return v.Unknown("the table is compressed, or not a local text file", node.lineno)
    separator = v.plain(args.pop("sep", args.pop("delimiter", v.Const("\t" if tab else None))))
    if v.plain(args.pop("delim_whitespace", v.Const(False))) is True or separator in (r"\s+", r"\s*"):
        separator = "whitespace"
    header = v.plain(args.pop("header", v.Const("infer")))
    names = v.plain(args.pop("names", v.Const(None)))
    odd = next((k for k in args if k not in _HARMLESS), None)
    if odd is not None:
        return v.Unknown(f"the table is read with `{odd}`", node.lineno)
    single = isinstance(separator, str) and len(separator) == 1 and separator not in '"\r\n'
    if header not in (None, 0, "infer") or isinstance(names, v.Unknown) or not (single or separator in (None, "whitespace")):
        return v.Unknown("the table is read with arguments that have no equivalent", node.lineno)
    if "usecols" in args and (header is None or names is not None):
        return v.Unknown("the table is read with `usecols` and without a header", node.lineno)
    columns = tuple(str(n) for n in names) if isinstance(names, (list, tuple)) else None
    if columns is not None and header == 0:
        return v.Unknown("the table's header is replaced by other names", node.lineno)
    has_header = header in (0, "infer") and columns is None
    given = (named, frame) if named is not None else None
    return v.Table(path, None if separator == "," else separator, has_header, columns, origins=origins, named=given)


def split_table(evaluator: Evaluator, node: ast.Call, frame: v.Frame, values: list[v.Value]) -> v.Value:
    """Evaluates `train_test_split` of one table."""
    if len(values) != 1 or not isinstance(values[0], v.Table) or values[0].split is not None:
        return v.Unknown("the data is split by `train_test_split`", node.lineno)
    args = {k.arg: k.value for k in node.keywords if k.arg is not None}
    test_given, train_given = (evaluator.value(args[n], frame) if n in args else v.Const(None) for n in ("test_size", "train_size"))
    test, train = v.plain(test_given), v.plain(train_given)
    if test is None and isinstance(train, float) and 0 < train < 1:
        test = round(1 - train, 6)
    if test is None and "test_size" not in args and "train_size" not in args:
        test = 0.25
    if isinstance(test, bool) or not isinstance(test, (int, float)) or not (0 < test < 1 or (isinstance(test, int) and test > 1)):
        return v.Unknown("the size of the split is not known", node.lineno)
    share = v.Share(node, test, "stratify" in args and not (isinstance(args["stratify"], ast.Constant) and args["stratify"].value is None))
    origins = v.origins_of(values[0], test_given, train_given)
    return v.Seq(tuple(replace(values[0], part=part, split=share, origins=origins) for part in ("train", "test")))


def subscript(evaluator: Evaluator, node: ast.Subscript, frame: v.Frame) -> v.Value:
    """Evaluates `owner[key]`."""
    owner = evaluator.value(node.value, frame)
    if isinstance(owner, v.Labels) and (owner.form == "indices" or not isinstance(node.slice, ast.Tuple)):
        return owner  # some rows; a column of one-hot rows is not followed
    if isinstance(owner, v.Table):
        return owner if isinstance(node.slice, ast.List) else v.Unknown("its rows are selected by code", node.lineno)
    if not isinstance(owner, (v.Options, v.Seq, v.Map)):
        return v.unknown(owner, "an element of it is known only at run time", node.lineno)
    chosen_by = evaluator.value(node.slice, frame)
    key = v.plain(chosen_by)
    if isinstance(owner, v.Options) and owner.as_map and isinstance(key, str) and not v.origins_of(chosen_by):
        return evaluator.outside.option(key, node.lineno, fixed=owner.fixed)
    found: v.Value | None = None
    if isinstance(owner, v.Map) and isinstance(key, str):
        found = owner.items.get(key)
    elif isinstance(owner, v.Seq) and isinstance(key, int) and -len(owner.items) <= key < len(owner.items):
        found = owner.items[key]
    if found is None:
        return v.Unknown("an element of it is known only at run time", node.lineno)
    by = v.origins_of(chosen_by)
    return (v.picked(found, chosen_by) or v.Unknown(f"{by[0]} selects it", node.lineno)) if by else found


_KEEPING_FORM = ("array", "asarray", "astype", "copy", "concatenate")
"""Functions of NumPy and methods of arrays that keep the form of labels."""
_ENCODERS = ("sklearn.preprocessing.LabelEncoder", "sklearn.preprocessing._label.LabelEncoder")


def form_of(value: v.Value | None) -> Literal["one-hot", "indices"] | None:
    """Form of labels of a value, if known."""
    return value.form if isinstance(value, v.Labels) else None


def of_call(evaluator: Evaluator, node: ast.Call, frame: v.Frame) -> v.Value | None:
    """Labels that a function or a method of an array returns; `None` for other calls."""
    name = called(node)
    if name in ("fit_transform", "transform") and isinstance(node.func, ast.Attribute):
        return v.Labels("indices") if _is_encoder(evaluator, node.func.value, frame) else None
    if name not in _KEEPING_FORM:
        return None
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if name in ("astype", "copy") and owner is not None and form_of(evaluator.value(owner, frame)) is not None:
        return evaluator.value(owner, frame)
    joined = name == "concatenate" and len(node.args) == 1 and not node.keywords and isinstance(node.args[0], Row)
    parts = node.args[0].elts if joined and isinstance(node.args[0], Row) else node.args[: name != "concatenate"]
    values = [evaluator.value(part, frame) for part in parts]
    forms = {form_of(value) for value in values}
    return values[0] if len(forms) == 1 and None not in forms else None


def _is_encoder(evaluator: Evaluator, node: ast.expr, frame: v.Frame) -> bool:
    if isinstance(node, ast.Call):
        return getattr(evaluator.value(node.func, frame), "name", "") in _ENCODERS
    bindings, around = frame.bound(node.id) if isinstance(node, ast.Name) else ([], frame)
    return len(bindings) == 1 and isinstance(bindings[0].value, ast.Call) and _is_encoder(evaluator, bindings[0].value, around)


def of_arrays(name: str, values: list[v.Value], node: ast.Call) -> v.Value | None:
    """Labels and arrays that functions of Keras and scikit-learn return; `None` for other functions."""
    last, several = name.rsplit(".", 1)[-1], are_several(values, node)
    if is_keras(name) and last == "to_categorical":
        return v.Labels("one-hot")
    if is_keras(name) and last == "load_data":
        pair = v.Seq((v.Unknown("it is a dataset of Keras", node.lineno), v.Labels("indices")))
        return v.Seq((pair, pair))
    if last in ("shuffle", "resample") and name.split(".")[0] == "sklearn" and values and len(values) == len(node.args):
        return values[0] if len(values) == 1 else v.Seq(tuple(values), is_list=True)  # each array with the same content, in another order
    if last == "train_test_split" and name.split(".")[0] == "sklearn" and several:  # two parts of each
        split = v.Unknown("the data is split by `train_test_split`", node.lineno)
        return v.Seq(tuple(value if form_of(value) is not None else split for value in values for _ in range(2)), is_list=True)
    return None


def are_several(values: list[v.Value], node: ast.Call) -> bool:
    """True if a call has several arrays and no table."""
    return len(values) > 1 and len(values) == len(node.args) and not any(isinstance(value, v.Table) for value in values)


_READS = ("pandas.read_csv", "pandas.read_table", "pandas.read_excel", "pandas.DataFrame")
_OF_TABLES = ("drop", "sample", "head", "tail", "copy", "reset_index", "dropna", "sort_values", "sort_index", "iloc", "loc", "T")
"""Methods and attributes of tables that keep the cells."""
_TO_ARRAY = ("values", "to_numpy", "as_matrix")
_METHODS = ("reshape", "copy", "squeeze", "transpose")
_FUNCTIONS = ("array", "asarray", "reshape", "expand_dims", "squeeze", "vstack", "stack", "transpose")
"""Functions and methods that keep the dtype of an array."""
_DEPTH = 30


def hold_table_numbers(evaluator: Evaluator, node: ast.expr, frame: v.Frame, *, table: bool = False, depth: int = 0) -> bool:
    """True if an array has the integers of a table, as far as known: not divided or cast. With `table`, true for the table itself."""
    if depth > _DEPTH:
        return False
    found = partial(hold_table_numbers, evaluator, frame=frame, depth=depth + 1)
    if isinstance(node, ast.Subscript):
        return found(node.value, table=table)
    if isinstance(node, ast.Attribute):
        return node.attr in (_OF_TABLES if table else _TO_ARRAY) and found(node.value, table=True)
    if isinstance(node, ast.Name):
        value, around = _assigned(node, frame)
        return value is not None and hold_table_numbers(evaluator, value, around, table=table, depth=depth + 1)
    if not isinstance(node, ast.Call) or (not table and any(k.arg == "dtype" for k in node.keywords)):
        return False
    name, function = called(node), evaluator.value(node.func, frame)
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if table and isinstance(function, v.Dotted):
        return function.name in _READS
    if table:
        return owner is not None and name in _OF_TABLES and found(owner, table=True)
    if owner is not None and ((name in _TO_ARRAY and found(owner, table=True)) or (name in _METHODS and found(owner))):
        return True
    if not node.args or name not in _FUNCTIONS or not isinstance(function, v.Dotted) or not function.name.startswith("numpy."):
        return False
    if len(node.args) > 1 and name in ("array", "asarray"):
        return False  # the second argument is a dtype
    return found(node.args[0]) or found(node.args[0], table=True)


def _assigned(node: ast.Name, frame: v.Frame) -> tuple[ast.expr | None, v.Frame]:
    """Value of the last assignment to a name before it, and its frame: a plain one, or a split of arrays into two parts each."""
    bindings, around = frame.bound(node.id)
    prior = [b for b in bindings if around is not frame or b.after <= start(node)]
    if not prior or prior[-1].kind != "value":
        return None, around
    value, path = prior[-1].value, prior[-1].path
    if path and isinstance(value, Row) and path[0] < len(value.elts):
        value, path = value.elts[path[0]], path[1:]
    if not path:
        return value, around
    splits = isinstance(value, ast.Call) and called(value) == "train_test_split" and len(path) == 1 and path[0] < 2 * len(value.args)
    return value.args[path[0] // 2] if splits and isinstance(value, ast.Call) else None, around


HANDLERS: dict[type[ast.expr], Handler] = {ast.Attribute: attribute, ast.Call: call_value, ast.Subscript: subscript}
"""Handlers of an evaluator, beside its own."""
