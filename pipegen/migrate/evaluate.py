"""Evaluates expressions without running code. An uncertain value is `Unknown`, with the reason and the line."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from dataclasses import replace
from functools import cache, partial
from typing import cast

from pipegen.migrate.calling import bind, comprehension, defaults, first_round, handed_on, is_undecorated, returned_last, rounds, shown_name
from pipegen.migrate.calls import call_value, subscript
from pipegen.migrate.known import certain, combine, compare, either, negate, same, text_of, told, unknown
from pipegen.migrate.members import assignments_of, attribute, attributes_from_outside, given_below
from pipegen.migrate.nodes import Comprehension, Function, Position, Row, called, end, flattened, own_nodes, start
from pipegen.migrate.outside import Outside
from pipegen.migrate.scopes import ALWAYS, Binding, Node, changers_of, scope_of
from pipegen.migrate.signatures import is_keras
from pipegen.migrate.values import Const, Dotted, Flow, Frame, Generator, Instance, Local, Map, Parser, Seq, Table, Unknown, Value, Zipped

_DEPTH = 8
_MOST_FRAMES = 2000


class FileEvaluator:
    """Evaluates expressions of one parsed file."""

    def __init__(self, tree: ast.Module, whole: frozenset[int] = frozenset()) -> None:
        self.whole = whole  # ids of functions and loops that are not followed in each call and round
        self._given: dict[int, dict[str, Value]] = {}
        self._attributes = attributes_from_outside(tree)
        changers, classes = changers_of(tree), [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
        self._scope = cache(partial(scope_of, changers=changers))
        self.assignments = cache(partial(assignments_of, changers=changers))  # assignments of a class's methods to attributes of `self`
        self.given_below = cache(partial(given_below, classes=classes))
        """Attributes and methods of a class that derived classes may override."""
        self._frames: dict[tuple[int, int, int], Frame] = {}
        self.rounds: dict[tuple[int, int], list[Frame] | None] = {}
        """Frames of unrolled comprehensions and loops, by the ids of the node and the frame around it."""
        self.module = Frame(self._scope(tree))
        self.outside = Outside(self, tree)
        self.objects: dict[int, list[Instance]] = {}  # known objects of each plain class, by the id of its definition
        self.called: dict[int, Frame] = {}  # frame of the first known call of each function, by node id
        self.calls = Counter(called(n) for n in ast.walk(tree) if isinstance(n, ast.Call))
        """Number of calls of functions and methods, by name."""

    def is_assigned(self, name: str) -> bool:
        """True if code outside methods assigns this attribute on any object."""
        return name in self._attributes or "*" in self._attributes

    def frame(
        self, node: Node, parent: Frame, args: dict[str, Value], *, call: ast.AST | None = None, caller: Frame | None = None
    ) -> Frame:
        """Frame of a scope inside another; each call from a frame has one.

        A function without known calls has the defaults of its parameters, as values that a caller may replace.
        """
        key = (id(call or node), id(parent), id(caller))
        if key not in self._frames:
            if call is None and isinstance(node, Function):
                args = {**defaults(self, node, parent), **self._given.get(id(node), {}), **args}
            self._frames[key] = self.inner_frame(node, parent, args)
        return self._frames[key]

    def inner_frame(self, node: Node, parent: Frame, args: dict[str, Value]) -> Frame:
        """A new frame of a scope inside another."""
        of_class = parent if isinstance(parent.scope.node, ast.ClassDef) else parent.class_frame
        return Frame(self._scope(node), parent, args, parent.depth + 1, of_class)

    # Expressions

    def value(self, node: ast.expr, frame: Frame) -> Value:
        """Evaluates an expression in a frame."""
        key = id(node)
        if key not in frame.known:
            line = getattr(node, "lineno", 0)
            frame.known[key] = Unknown("it depends on itself", line)
            frame.known[key] = self._value(node, frame, line)
        return frame.known[key]

    def _value(self, node: ast.expr, frame: Frame, line: int) -> Value:
        if isinstance(node, ast.Constant):
            return Const(node.value)
        if isinstance(node, ast.Name):
            return self.name(node.id, start(node), frame)
        if isinstance(node, Row):
            return self._sequence(node, frame)
        if isinstance(node, ast.Dict):
            return self._map(node, frame)
        if isinstance(node, ast.Attribute):
            return attribute(self, node, frame)
        if isinstance(node, ast.Subscript):
            return subscript(self, node, frame)
        if isinstance(node, ast.Call):
            return call_value(self, node, frame)
        if isinstance(node, ast.Lambda):
            return Local(node, frame)
        if isinstance(node, ast.BinOp):
            return combine(node.op, self.value(node.left, frame), self.value(node.right, frame), line)
        return self._other(node, frame, line)

    def _other(self, node: ast.expr, frame: Frame, line: int) -> Value:
        if isinstance(node, ast.UnaryOp):
            return negate(node.op, self.value(node.operand, frame), line)
        if isinstance(node, ast.IfExp):
            test = certain(self.value(node.test, frame))
            if isinstance(test, Unknown):
                return Unknown("it depends on a condition that is known only at run time", line)
            return self.value(node.body if test else node.orelse, frame)
        if isinstance(node, ast.BoolOp):
            return either(node.op, [self.value(side, frame) for side in node.values], line)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right = (self.value(side, frame) for side in (node.left, node.comparators[0]))
            return compare(node.ops[0], left, right, line)
        if isinstance(node, ast.JoinedStr):
            parts = [piece.value if isinstance(piece, ast.FormattedValue) else piece for piece in node.values]
            return text_of(node, [self.value(part, frame) for part in parts])
        if isinstance(node, Comprehension):
            return comprehension(self, node, frame)
        return Unknown("it is computed at run time", line)

    def _sequence(self, node: Row, frame: Frame) -> Value:
        items: list[Value] = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                inner = self.value(element.value, frame)
                if not isinstance(inner, Seq):
                    return Unknown("a part of it is unpacked from an unknown value", element.lineno)
                items += inner.items
            else:
                items.append(self.value(element, frame))
        return Seq(tuple(items), isinstance(node, ast.List))

    def _map(self, node: ast.Dict, frame: Frame) -> Value:
        items: dict[str, Value] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            inner = self.value(value, frame)
            if key is None:
                if not isinstance(inner, Map):
                    return Unknown("a part of it is unpacked from an unknown value", value.lineno)
                items.update(inner.items)
                continue
            name = certain(self.value(key, frame))
            if not isinstance(name, str):
                return Unknown("a key is not a known text", key.lineno)
            items[name] = inner
        return Map(items)

    # Names

    def name(self, name: str, at: Position, frame: Frame, *, inside: bool = True) -> Value:
        """Looks up a name at a position of a frame."""
        scope = frame.scope
        if name in scope.module_names and frame.parent is not None:
            return self.name(name, at, frame.module, inside=False)
        bindings = scope.bindings.get(name, [])
        hidden = isinstance(scope.node, ast.ClassDef) and not inside
        # A name that a loop only changes belongs to the scope around it, which records these changes, too.
        if bindings and not hidden and not (isinstance(scope.node, ast.For) and all(b.kind == "changed" for b in bindings)):
            return self._bound(name, bindings, at, frame, inside)
        if frame.parent is not None:
            own = isinstance(scope.node, (Comprehension, ast.For))
            return self.name(name, at, frame.parent, inside=inside and own)
        for star in scope.stars:
            if is_keras(star) and name in ("ImageDataGenerator", "preprocess_input"):
                return Dotted(f"{star}.{name}")
        return Dotted(f"builtins.{name}") if hasattr(builtins, name) else Unknown(f"`{name}` is not defined in this file", at[0])

    def _bound(self, name: str, bindings: list[Binding], at: Position, frame: Frame, inside: bool) -> Value:
        base = self._run([b for b in bindings if b.kind != "changed"], frame)
        chosen: Value
        where: Position = (0, 0)
        prior = [b for b in base if b.after <= at]
        anew = next((b for b in base if b.after == ALWAYS), None)
        if anew is not None:
            return Unknown(f"`{name}` is assigned in a function, too", anew.line)
        if isinstance(frame.scope.node, ast.For) and not (inside and prior and prior[-1].straight):
            return Unknown(f"`{name}` gets its value in a loop", at[0])
        if len(base) == 1:
            chosen, where = self._one(base[0], frame), base[0].after
        elif inside and prior and prior[-1].straight and (frame.scope.is_once(at) or all(b.straight for b in base if b not in prior)):
            chosen, where = self._one(prior[-1], frame), prior[-1].after
        elif base and all(b.kind == "import" for b in base):
            chosen = imported(name, base)
        else:
            values = [self._one(b, frame) for b in base]
            several = Unknown(f"`{name}` is assigned {len(base)} times, and it is not certain which one counts", at[0])
            chosen = values[0] if values and all(same(values[0], v) for v in values[1:]) else several
        once = inside and frame.scope.is_once(at)  # then nothing later in the text runs earlier
        changes = [b for b in bindings if b.kind == "changed" and b.after > where]
        changes = [b for b in changes if not inside or b.after <= at or b.after == ALWAYS or not (b.straight or once)]
        going_on = inside and any(b.loop is not None and start(b.loop) <= at <= end(b.loop) for b in changes)
        made = None if going_on else filled(self, chosen, changes, frame)
        return made if made is not None else changed(name, chosen, changes)

    def _run(self, bindings: list[Binding], frame: Frame) -> list[Binding]:
        """Bindings without those of untaken branches; those of certainly taken branches count as straight."""
        if not any(b.conditions for b in bindings):
            return bindings
        found = []
        for binding in bindings:
            tests = [(certain(self.value(test, frame)), wanted) for test, wanted in binding.conditions or ()]
            if any(not isinstance(test, Unknown) and bool(test) != wanted for test, wanted in tests):
                continue
            taken = bool(tests) and not any(isinstance(test, Unknown) for test, _ in tests)
            found.append(replace(binding, straight=True) if taken else binding)
        return found

    def _one(self, binding: Binding, frame: Frame) -> Value:
        line = binding.after[0]
        if binding.kind == "import":
            return Dotted(binding.dotted)
        if binding.kind in ("def", "class"):
            return Local(cast("ast.FunctionDef", binding.node), frame)
        if binding.kind == "param":
            in_loop = isinstance(frame.scope.node, (Comprehension, ast.For))
            function = getattr(frame.scope.node, "name", "a function")
            how = "gets its value in a loop" if in_loop else f"is an argument of `{function}`"
            return frame.args.get(binding.name, Unknown(f"`{binding.name}` {how}", line or start(frame.scope.node)[0]))
        if binding.kind == "value" and binding.value is not None:
            value = self.value(binding.value, frame)
            for index in binding.path:
                if not isinstance(value, Seq) or index >= len(value.items):
                    return unknown(value, "it is unpacked from an unknown value", line)
                value = value.items[index]
            return value
        if isinstance(binding.node, ast.For) and id(binding.node) in self.whole:
            first = first_round(self, binding.node, frame)
            if binding.name in first:
                return first[binding.name]
        return Unknown(f"`{binding.name}` gets its value in a loop or a block, or step by step", line)

    # Functions of the file

    def returned(self, function: Local, call: ast.Call, frame: Frame) -> tuple[Frame | None, Value]:
        """Frame of a call, and its return value."""
        node = function.node
        if isinstance(node, ast.ClassDef) or self.is_too_deep(node, frame):
            return None, Unknown("its result is not followed", call.lineno)
        args = bind(self, node.args, call, frame, function.frame, method=function.bound is not None)
        if args is None:
            return None, Unknown("its arguments are unpacked from an unknown value", call.lineno)
        if id(node) in self.whole and not isinstance(node, ast.Lambda):
            self._given.setdefault(id(node), told(args, f"the caller of `{shown_name(node, function.frame)}`"))
            return None, Unknown(f"`{shown_name(node, function.frame)}` is called several times", call.lineno)
        if function.bound is not None and not isinstance(node, ast.Lambda) and node.args.args:
            args[node.args.args[0].arg] = function.bound
        inner = self.frame(node, function.frame, args, call=call, caller=frame)
        inner.depth = max(inner.depth, frame.depth + 1)
        self.called.setdefault(id(node), inner)
        if isinstance(node, ast.Lambda):
            return inner, self.value(node.body, inner)
        if not isinstance(node, Function) or not is_undecorated(node):
            return inner, Unknown(f"`{getattr(node, 'name', '')}` is decorated", call.lineno)
        returns = [n for n in own_nodes(node) if isinstance(n, ast.Return)]
        yields = any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in own_nodes(node))
        if not returns and not yields:
            return inner, Const(None)
        body = flattened(node.body)
        handed = handed_on(self, body, inner) if yields and not returns else None
        if handed is not None:
            return inner, handed
        if yields:
            return inner, Unknown(f"`{node.name}` is a generator", call.lineno)
        last = returned_last(self, body, inner)
        if last is None:
            return inner, Unknown(f"`{node.name}` has several `return` statements", call.lineno)
        return inner, self.value(last.value, inner) if last.value is not None else Const(None)

    def is_too_deep(self, node: ast.AST, frame: Frame) -> bool:
        """True if a call is not followed: it is recursive, or there are too many frames."""
        return len(self._frames) > _MOST_FRAMES or frame.depth > _DEPTH or any(here.scope.node is node for here in frame.outward)


_UNCHANGING = (Unknown, Const, Dotted, Generator, Flow, Local, Parser, Zipped)


def imported(name: str, imports: list[Binding]) -> Value:
    """Resolves a name that several statements import, such as in `try` and `except ImportError`."""
    of_keras = [b for b in imports if is_keras(b.dotted)]
    if not of_keras:
        return Dotted(imports[-1].dotted)
    last = of_keras[-1] if all(b.straight for b in imports) else of_keras[0]
    if any(b.dotted.split(".")[-2:] != last.dotted.split(".")[-2:] for b in of_keras) and not all(b.straight for b in imports):
        return Unknown(f"`{name}` is imported from several modules", last.after[0])
    return Dotted(last.dotted)


def changed(name: str, value: Value, changes: list[Binding]) -> Value:
    """Value of a name after changes in place."""
    a_class = isinstance(value, Local) and isinstance(value.node, ast.ClassDef)
    if not changes or (isinstance(value, _UNCHANGING) and not a_class):
        return value
    if isinstance(value, Table) and all(c.column is not None for c in changes):
        columns = {c.column or "": c.line or c.after[0] for c in changes if not _to_text(c.value)}
        return replace(value, changed={**value.changed, **columns})
    return Unknown(f"`{name}` is changed in place", changes[0].line or changes[0].after[0])


def _to_text(value: ast.expr | None) -> bool:
    """True if a new column is an old one as text, which keeps its name."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    first = value.args[0] if value.args else None
    return isinstance(first, ast.Name) and first.id == "str" and value.func.attr in ("astype", "map", "apply")


def filled(evaluator: FileEvaluator, value: Value, changes: list[Binding], frame: Frame) -> Map | Seq | None:
    """Applies changes in place to a dict or list, in the order of the code; `None` for other values and changes."""
    if not isinstance(value, (Map, Seq)) or not changes:
        return None
    held: Map | Seq | None = value
    for change in changes:
        frames = _frames(evaluator, change, frame)
        if not frames:
            return None
        for inner in frames:
            held = _changed(evaluator, held, change, inner) if held is not None else None
    return held


def _changed(evaluator: FileEvaluator, held: Map | Seq, change: Binding, frame: Frame) -> Map | Seq | None:
    if change.value is None:
        return None
    if change.key is not None:
        key = certain(evaluator.value(change.key, frame))
        named = isinstance(held, Map) and isinstance(key, str)
        return Map({**held.items, key: evaluator.value(change.value, frame)}) if named and isinstance(held, Map) else None
    call = change.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    if call.func.attr == "append" and isinstance(held, Seq) and held.is_list and len(call.args) == 1 and not call.keywords:
        return Seq((*held.items, evaluator.value(call.args[0], frame)), is_list=True)
    if call.func.attr != "update" or not isinstance(held, Map) or any(k.arg is None for k in call.keywords):
        return None
    given = [evaluator.value(a, frame) for a in call.args]
    more = {k.arg: evaluator.value(k.value, frame) for k in call.keywords if k.arg is not None}
    known = [v.items for v in given if isinstance(v, Map)]
    return Map({**held.items, **{key: v for items in known for key, v in items.items()}, **more}) if len(known) == len(given) else None


def _frames(evaluator: FileEvaluator, change: Binding, frame: Frame) -> list[Frame]:
    """Frames in which a statement runs: its own, or one for each round of its loop; empty if uncertain."""
    if change.straight:
        return [frame]
    if change.conditions:
        tests = [(certain(evaluator.value(test, frame)), wanted) for test, wanted in change.conditions]
        return [frame] if all(not isinstance(test, Unknown) and bool(test) == wanted for test, wanted in tests) else []
    if change.loop is None or any(isinstance(n, (ast.Break, ast.Continue, ast.Return)) for n in ast.walk(change.loop)):
        return []
    return rounds(evaluator, change.loop, frame) or []
