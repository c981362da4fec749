"""Evaluates expressions without running code, by a table of handlers; follows functions of the file, with a frame for each call.

An uncertain value is `Unknown`, with the reason and the line.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Protocol

from pipegen.migrate import nodes, scopes
from pipegen.migrate import values as v
from pipegen.migrate.signatures import is_keras

_DEPTH = 8
_MOST_FRAMES = 2000


class Declared(Protocol):
    """Values that a program gets from outside: options and environment; see `Outside`."""

    def option(self, name: str, line: int, *, fixed: bool = False) -> v.Value: ...
    def environment(self, name: v.Value, default: v.Value, line: int) -> v.Value: ...


class Evaluator:
    """Evaluates expressions of one parsed file; `handlers` are those of attributes, calls and subscripts."""

    def __init__(
        self,
        tree: ast.Module,
        handlers: Mapping[type[ast.expr], Handler],
        outside: Callable[[Evaluator, ast.Module], Declared],
    ) -> None:
        self._handlers = {**_HANDLERS, **handlers}
        self._attributes = scopes.attributes_from_outside(tree)
        changers, classes = scopes.changers_of(tree), [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
        self._scope = cache(partial(scopes.scope_of, changers=changers))
        self.assignments = cache(partial(scopes.assignments_of, changers=changers))
        """Assignments of a class's methods to attributes of `self`."""
        self.given_below = cache(partial(scopes.given_below, classes=classes))
        """Attributes and methods of a class that derived classes may override."""
        self._frames: dict[tuple[int, int, int], v.Frame] = {}
        self.module = v.Frame(self._scope(tree))
        self.outside = outside(self, tree)
        self.objects: dict[int, list[v.Instance]] = {}  # known objects of each plain class, by the id of its definition
        self.called: dict[int, v.Frame] = {}  # frame of the first known call of each function, by node id
        self.calls = Counter(nodes.called(n) for n in ast.walk(tree) if isinstance(n, ast.Call))
        """Number of calls of functions and methods, by name."""

    def is_assigned(self, name: str) -> bool:
        """True if code outside methods assigns this attribute on any object."""
        return name in self._attributes or "*" in self._attributes

    def frame(
        self, node: scopes.Node, parent: v.Frame, args: dict[str, v.Value], *, call: ast.AST | None = None, caller: v.Frame | None = None
    ) -> v.Frame:
        """Frame of a scope inside another; each call from a frame has one.

        A function without known calls has the defaults of its parameters, as values that a caller may replace.
        """
        key = (id(call or node), id(parent), id(caller))
        if key not in self._frames:
            if call is None and isinstance(node, nodes.Function):
                defaults = {name: self.value(default, parent) for name, default in nodes.defaults_of(node.args)}
                args = {**v.told(defaults, f"the caller of `{shown_name(node, parent)}`"), **args}
            of_class = parent if isinstance(parent.scope.node, ast.ClassDef) else parent.class_frame
            self._frames[key] = v.Frame(self._scope(node), parent, args, parent.depth + 1, of_class)
        return self._frames[key]

    # Expressions

    def value(self, node: ast.expr, frame: v.Frame) -> v.Value:
        """Evaluates an expression in a frame."""
        key = id(node)
        if key not in frame.known:
            line = getattr(node, "lineno", 0)
            frame.known[key] = v.Unknown("it depends on itself", line)
            handler = self._handlers.get(type(node))
            frame.known[key] = handler(self, node, frame) if handler is not None else v.Unknown("it is computed at run time", line)
        return frame.known[key]

    def truth(self, test: ast.expr, frame: v.Frame) -> bool | None:
        """Truth of a condition; `None` if uncertain."""
        known = v.certain(self.value(test, frame))
        return None if isinstance(known, v.Unknown) else bool(known)

    def taken(self, conditions: Sequence[scopes.Condition], frame: v.Frame) -> bool | None:
        """True if all conditions are as a branch requires, False if one is not; `None` if uncertain."""
        as_required = [None if (truth := self.truth(test, frame)) is None else truth == wanted for test, wanted in conditions]
        return False if False in as_required else None if None in as_required else True

    # Names

    def name(self, name: str, at: nodes.Position, frame: v.Frame, *, inside: bool = True) -> v.Value:
        """Looks up a name at a position of a frame."""
        scope = frame.scope
        if name in scope.module_names and frame.parent is not None:
            return self.name(name, at, frame.module, inside=False)
        bindings = scope.bindings.get(name, [])
        hidden = isinstance(scope.node, ast.ClassDef) and not inside
        if bindings and not hidden:
            return self._bound(name, bindings, at, frame, inside)
        if frame.parent is not None:
            own = isinstance(scope.node, nodes.Comprehension)
            return self.name(name, at, frame.parent, inside=inside and own)
        for star in scope.stars:
            if is_keras(star) and name in ("ImageDataGenerator", "preprocess_input"):
                return v.Dotted(f"{star}.{name}")
        return v.Dotted(f"builtins.{name}") if hasattr(builtins, name) else v.Unknown(f"`{name}` is not defined in this file", at[0])

    def _bound(self, name: str, bindings: list[scopes.Binding], at: nodes.Position, frame: v.Frame, inside: bool) -> v.Value:
        taken = [(b, self.taken(b.conditions, frame) if b.conditions else None) for b in bindings if b.kind != "changed"]
        base = [replace(b, straight=True) if sure else b for b, sure in taken if sure is not False]  # without untaken branches
        chosen: v.Value
        where: nodes.Position = (0, 0)
        prior = [b for b in base if b.after <= at]
        anew = next((b for b in base if b.after == scopes.ALWAYS), None)
        if anew is not None:
            return v.Unknown(f"`{name}` is assigned in a function, too", anew.line)
        if len(base) == 1:
            chosen, where = self._one(base[0], frame), base[0].after
        elif inside and prior and prior[-1].straight and (frame.scope.is_once(at) or all(b.straight for b in base if b not in prior)):
            chosen, where = self._one(prior[-1], frame), prior[-1].after
        elif base and all(b.kind == "import" for b in base):
            chosen = imported(name, base)
        else:
            values = [self._one(b, frame) for b in base]
            several = v.Unknown(f"`{name}` is assigned {len(base)} times, and it is not certain which one counts", at[0])
            chosen = values[0] if values and all(v.same(values[0], other) for other in values[1:]) else several
        once = inside and frame.scope.is_once(at)  # then nothing later in the text runs earlier
        changes = [b for b in bindings if b.kind == "changed" and b.after > where]
        changes = [b for b in changes if not inside or b.after <= at or b.after == scopes.ALWAYS or not (b.straight or once)]
        made = filled(self, chosen, changes, frame)
        return made if made is not None else changed(name, chosen, changes)

    def _one(self, binding: scopes.Binding, frame: v.Frame) -> v.Value:
        line = binding.after[0]
        if binding.kind == "import":
            return v.Dotted(binding.dotted)
        if isinstance(binding.node, ast.ClassDef):
            return v.Class(binding.node, frame)
        if isinstance(binding.node, nodes.Function):
            return v.Local(binding.node, frame)
        if binding.kind == "param":
            in_loop = isinstance(frame.scope.node, nodes.Comprehension)
            function = getattr(frame.scope.node, "name", "a function")
            how = "gets its value in a loop" if in_loop else f"is an argument of `{function}`"
            return frame.args.get(binding.name, v.Unknown(f"`{binding.name}` {how}", line or nodes.start(frame.scope.node)[0]))
        if binding.kind == "value" and binding.value is not None:
            value = self.value(binding.value, frame)
            for index in binding.path:
                if not isinstance(value, v.Seq) or index >= len(value.items):
                    return v.unknown(value, "it is unpacked from an unknown value", line)
                value = value.items[index]
            return value
        return v.Unknown(f"`{binding.name}` gets its value in a loop or a block, or step by step", line)

    # Functions of the file

    def returned(self, function: v.Local, call: ast.Call, frame: v.Frame) -> tuple[v.Frame | None, v.Value]:
        """Frame of a call, and its return value."""
        node = function.node
        if self.is_too_deep(node, frame):
            return None, v.Unknown("its result is not followed", call.lineno)
        args = bind(self, node.args, call, frame, function.frame, method=function.bound is not None)
        if args is None:
            return None, v.Unknown("its arguments are unpacked from an unknown value", call.lineno)
        if function.bound is not None and not isinstance(node, ast.Lambda) and node.args.args:
            args[node.args.args[0].arg] = function.bound
        inner = self.frame(node, function.frame, args, call=call, caller=frame)
        inner.depth = max(inner.depth, frame.depth + 1)
        self.called.setdefault(id(node), inner)
        if isinstance(node, ast.Lambda):
            return inner, self.value(node.body, inner)
        if not isinstance(node, nodes.Function) or not nodes.is_undecorated(node):
            return inner, v.Unknown(f"`{getattr(node, 'name', '')}` is decorated", call.lineno)
        returns = [n for n in nodes.own_nodes(node.body) if isinstance(n, ast.Return)]
        yields = any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in nodes.own_nodes(node.body))
        if not returns and not yields:
            return inner, v.Const(None)
        body = nodes.flattened(node.body)
        if yields:
            handed = None if returns else handed_on(self, body, inner)
            return inner, handed or v.Unknown(f"`{node.name}` is a generator", call.lineno)
        last = returned_last(self, body, inner)
        if last is None:
            return inner, v.Unknown(f"`{node.name}` has several `return` statements", call.lineno)
        return inner, self.value(last.value, inner) if last.value is not None else v.Const(None)

    def is_too_deep(self, node: ast.AST, frame: v.Frame) -> bool:
        """True if a call is not followed: it is recursive, or there are too many frames."""
        return len(self._frames) > _MOST_FRAMES or frame.depth > _DEPTH or any(here.scope.node is node for here in frame.outward)


Handler = Callable[[Evaluator, Any, v.Frame], v.Value]


def _chosen(evaluator: Evaluator, node: ast.IfExp, frame: v.Frame) -> v.Value:
    test = evaluator.truth(node.test, frame)
    if test is None:
        return v.Unknown("it depends on a condition that is known only at run time", node.lineno)
    return evaluator.value(node.body if test else node.orelse, frame)


def _sequence(evaluator: Evaluator, node: nodes.Row, frame: v.Frame) -> v.Value:
    items: list[v.Value] = []
    for element in node.elts:
        if isinstance(element, ast.Starred):
            inner = evaluator.value(element.value, frame)
            if not isinstance(inner, v.Seq):
                return v.Unknown("a part of it is unpacked from an unknown value", element.lineno)
            items += inner.items
        else:
            items.append(evaluator.value(element, frame))
    return v.Seq(tuple(items), isinstance(node, ast.List))


def _map(evaluator: Evaluator, node: ast.Dict, frame: v.Frame) -> v.Value:
    items: dict[str, v.Value] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        inner = evaluator.value(value, frame)
        if key is None:
            if not isinstance(inner, v.Map):
                return v.Unknown("a part of it is unpacked from an unknown value", value.lineno)
            items.update(inner.items)
            continue
        name = v.certain(evaluator.value(key, frame))
        if not isinstance(name, str):
            return v.Unknown("a key is not a known text", key.lineno)
        items[name] = inner
    return v.Map(items)


_UNCHANGING = (v.Unknown, v.Const, v.Dotted, v.Generator, v.Flow, v.Local, v.Parser, v.Zipped)


def imported(name: str, imports: list[scopes.Binding]) -> v.Value:
    """Resolves a name that several statements import, such as in `try` and `except ImportError`."""
    of_keras = [b for b in imports if is_keras(b.dotted)]
    if not of_keras:
        return v.Dotted(imports[-1].dotted)
    last = of_keras[-1] if all(b.straight for b in imports) else of_keras[0]
    if any(b.dotted.split(".")[-2:] != last.dotted.split(".")[-2:] for b in of_keras) and not all(b.straight for b in imports):
        return v.Unknown(f"`{name}` is imported from several modules", last.after[0])
    return v.Dotted(last.dotted)


def changed(name: str, value: v.Value, changes: list[scopes.Binding]) -> v.Value:
    """Value of a name after changes in place."""
    if not changes or isinstance(value, _UNCHANGING):
        return value
    if isinstance(value, v.Table) and all(c.column is not None for c in changes):
        return replace(value, changed=value.changed | {c.column or "" for c in changes if not _to_text(c.value)})
    return v.Unknown(f"`{name}` is changed in place", changes[0].line or changes[0].after[0])


def _to_text(value: ast.expr | None) -> bool:
    """True if a new column is an old one as text, which keeps its name."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    first = value.args[0] if value.args else None
    return isinstance(first, ast.Name) and first.id == "str" and value.func.attr in ("astype", "map", "apply")


def filled(evaluator: Evaluator, value: v.Value, changes: list[scopes.Binding], frame: v.Frame) -> v.Map | v.Seq | None:
    """Applies changes in place to a dict or list, in the order of the code; `None` for other values and changes."""
    if not isinstance(value, (v.Map, v.Seq)) or not changes:
        return None
    held: v.Map | v.Seq | None = value
    for change in changes:
        certain = change.straight or (change.conditions and evaluator.taken(change.conditions, frame))
        held = _changed(evaluator, held, change, frame) if held is not None and certain else None
    return held


def _changed(evaluator: Evaluator, held: v.Map | v.Seq, change: scopes.Binding, frame: v.Frame) -> v.Map | v.Seq | None:
    if change.value is None:
        return None
    if change.key is not None:
        key = v.certain(evaluator.value(change.key, frame))
        named = isinstance(held, v.Map) and isinstance(key, str)
        return v.Map({**held.items, key: evaluator.value(change.value, frame)}) if named and isinstance(held, v.Map) else None
    call = change.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    if call.func.attr == "append" and isinstance(held, v.Seq) and held.is_list and len(call.args) == 1 and not call.keywords:
        return v.Seq((*held.items, evaluator.value(call.args[0], frame)), is_list=True)
    if call.func.attr != "update" or not isinstance(held, v.Map) or any(k.arg is None for k in call.keywords):
        return None
    given = [evaluator.value(a, frame) for a in call.args]
    more = {k.arg: evaluator.value(k.value, frame) for k in call.keywords if k.arg is not None}
    known = [value.items for value in given if isinstance(value, v.Map)]
    return v.Map({**held.items, **{key: of for items in known for key, of in items.items()}, **more}) if len(known) == len(given) else None


def bind(
    evaluator: Evaluator, spec: ast.arguments, call: ast.Call, frame: v.Frame, home: v.Frame, *, method: bool = False
) -> dict[str, v.Value] | None:
    """Binds the arguments of a call to a function's parameters; `None` if they are unpacked from an unknown value.

    With `method`, the first parameter is the object itself and takes no argument.
    """
    names = tuple(a.arg for a in (*spec.posonlyargs, *spec.args))[int(method) :]
    found, extra = arguments(evaluator, call, frame, names, [a.arg for a in spec.kwonlyargs])
    if len(spec.defaults) > len(names) or "**" in found:
        return None
    bound = {name: argument.value for name, argument in found.items()}
    for name, default in nodes.defaults_of(spec):
        bound.setdefault(name, evaluator.value(default, home))
    if spec.kwarg is not None:
        bound[spec.kwarg.arg] = v.Map({argument.name: argument.value for argument in extra})
    if spec.vararg is not None:
        bound[spec.vararg.arg] = v.Seq(tuple(evaluator.value(arg, frame) for arg in call.args[len(names) :]))
    return bound


def shown_name(node: nodes.Function, parent: v.Frame) -> str:
    """Name of a function for its callers: the class, for a constructor."""
    around = parent.scope.node
    return around.name if node.name == "__init__" and isinstance(around, ast.ClassDef) else node.name


def taken_side(evaluator: Evaluator, statement: ast.stmt, frame: v.Frame) -> list[ast.stmt] | None:
    """Statements of the branch that runs in a frame; `None` for other statements, and if uncertain."""
    if not isinstance(statement, ast.If):
        return None
    test = evaluator.truth(statement.test, frame)
    return None if test is None else statement.body if test else statement.orelse


def returned_last(evaluator: Evaluator, body: list[ast.stmt], frame: v.Frame) -> ast.Return | None:
    """The `return` that ends a call, if it is certain which one."""
    for statement in body:
        if isinstance(statement, ast.Return):
            return statement
        if isinstance(statement, (ast.With, ast.AsyncWith)) or (isinstance(statement, ast.If) and nodes.is_main(statement.test)):
            continue  # its content is followed
        taken = taken_side(evaluator, statement, frame)
        if taken is not None:
            found = returned_last(evaluator, nodes.flattened(taken), frame)
            if found is not None:
                return found
            if any(nodes.ends(s) for s in taken):
                return None
        elif nodes.ends(statement):
            return None
    return None


def arguments(
    evaluator: Evaluator, node: ast.Call, frame: v.Frame, names: tuple[str, ...], by_name: Collection[str] = ()
) -> tuple[dict[str, v.Argument], tuple[v.Argument, ...]]:
    """Arguments of a call by name, and those that are not in the signature; `by_name` are names that take no positional argument.

    Arguments unpacked from an unknown value are under `**`.
    """
    found: dict[str, v.Argument] = {}
    wrong: list[v.Argument] = []
    for i, arg in enumerate(node.args):
        if isinstance(arg, ast.Starred):
            found["**"] = v.Argument("**", v.Unknown("arguments are unpacked from an unknown value", arg.lineno), arg)
            break
        if i < len(names):
            found[names[i]] = v.Argument(names[i], evaluator.value(arg, frame), arg, positional=True)
    for keyword in node.keywords:
        value = evaluator.value(keyword.value, frame)
        if keyword.arg is None and not isinstance(value, v.Map):
            reason = value if isinstance(value, v.Unknown) else v.Unknown("it is not a dict", keyword.value.lineno)
            found["**"] = v.Argument("**", reason, keyword.value)
            continue
        unpacked = value.items if keyword.arg is None and isinstance(value, v.Map) else {keyword.arg or "": value}
        for name, inner in unpacked.items():
            argument = v.Argument(name, inner, keyword.value, unpacked=keyword.arg is None)
            if name in names or name in by_name:
                found[name] = argument
            else:
                wrong.append(argument)
    return found, tuple(wrong)


def comprehension(evaluator: Evaluator, node: nodes.Comprehension, frame: v.Frame) -> v.Value:
    """Evaluates a comprehension: only one that passes the pairs of a `zip` on is followed."""
    if isinstance(node, ast.GeneratorExp) and nodes.hands_on(node):
        source = evaluator.value(node.generators[0].iter, frame)
        if isinstance(source, v.Zipped):
            return source
    return v.Unknown("it is computed at run time", node.lineno)


def handed_on(evaluator: Evaluator, body: list[ast.stmt], frame: v.Frame) -> v.Zipped | None:
    """The `zip` whose pairs a function yields unchanged, if that is all it does."""
    loop = nodes.passing_loop(body[-1])
    if loop is None or sum(isinstance(n, (ast.Yield, ast.YieldFrom)) for s in body for n in ast.walk(s)) != 1:
        return None
    value = evaluator.value(loop.iter, frame)
    return value if isinstance(value, v.Zipped) else None


_HANDLERS: dict[type[ast.expr], Handler] = {
    ast.Constant: lambda _evaluator, node, _frame: v.Const(node.value),
    ast.Name: lambda evaluator, node, frame: evaluator.name(node.id, nodes.start(node), frame),
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Dict: _map,
    ast.Lambda: lambda _evaluator, node, frame: v.Local(node, frame),
    ast.BinOp: lambda e, node, frame: v.combine(node.op, e.value(node.left, frame), e.value(node.right, frame), node.lineno),
    ast.UnaryOp: lambda evaluator, node, frame: v.negate(node.op, evaluator.value(node.operand, frame), node.lineno),
    ast.BoolOp: lambda evaluator, node, frame: v.either(node.op, [evaluator.value(side, frame) for side in node.values], node.lineno),
    ast.IfExp: _chosen,
    ast.Compare: lambda e, node, frame: v.compare(node, e.value(node.left, frame), e.value(node.comparators[0], frame)),
    ast.FormattedValue: lambda evaluator, node, frame: evaluator.value(node.value, frame),
    ast.JoinedStr: lambda evaluator, node, frame: v.text_of(node, [evaluator.value(piece, frame) for piece in node.values]),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp), comprehension),
}
