"""Walks over code in execution order and collects generators, iterators, pairs of them, and all their uses."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Literal, cast

from pipegen.migrate.calls import HANDLERS
from pipegen.migrate.evaluate import Evaluator, taken_side
from pipegen.migrate.members import Outside
from pipegen.migrate.nodes import DEFINITIONS, Comprehension, Function, called, given_to, name_of, targets_of
from pipegen.migrate.signatures import CONSTRUCTOR, FIT, FIT_GENERATOR, FITTED, FLOWS, RENAMED
from pipegen.migrate.values import Class, Dotted, Flow, Frame, Generator, Instance, Local, Seq, Unknown, Zipped, certain, plain, truth_of

UseKind = Literal["model", "member", "method", "len", "next", "item", "loop", "zip", "other"]


@dataclass(eq=False)
class Use:
    """One use of an iterator, or of two joined by `zip`."""

    kind: UseKind  # `model`: an argument of `fit` or similar; `member`, `method`: of the iterator; `other`: anything else
    name: str  # the argument, the member or the function
    node: ast.expr  # the expression of the iterator
    outer: ast.AST  # the expression or statement that uses it: the call, the attribute, the loop
    frame: Frame
    of: Flow | Zipped

    @property
    def flow(self) -> Flow:
        """The iterator of a use that is not one of a pair."""
        return cast("Flow", self.of)

    @property
    def line(self) -> int:
        """Line of the use."""
        return self.node.lineno

    @property
    def is_next(self) -> bool:
        """True for `next(it)` and `it.next()`."""
        return self.kind == "next" or (self.kind == "method" and self.name in ("next", "__next__"))

    @property
    def is_first(self) -> bool:
        """True for `it[0]`."""
        index = self.outer.slice if self.kind == "item" and isinstance(self.outer, ast.Subscript) else None
        return isinstance(index, ast.Constant) and index.value == 0


@dataclass(eq=False)
class ModelCall:
    """A call of `fit` or similar with iterators among its arguments, by name."""

    node: ast.Call
    args: dict[str, ast.expr]
    frame: Frame


@dataclass
class Collected:
    """All that concerns `ImageDataGenerator` in a file."""

    evaluator: Evaluator
    generators: list[Generator] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    pairs: list[Zipped] = field(default_factory=list)  # pairs of iterators joined by `zip`
    calls: list[ModelCall] = field(default_factory=list)
    fits: list[tuple[Generator, ast.Call]] = field(default_factory=list)
    members: list[tuple[Generator, str, int]] = field(default_factory=list)
    assigned: list[tuple[Generator, str, int]] = field(default_factory=list)
    """Constructor arguments and statistics that the code assigns to a generator later, with their lines."""
    names: dict[int, str] = field(default_factory=dict)  # variable of an iterator or a generator, by the object's id
    statements: dict[int, tuple[ast.stmt, Frame]] = field(default_factory=dict)
    """Assignment whose whole value is the call that makes an object, by the object's id."""
    shared: set[int] = field(default_factory=set)  # nodes that make several objects, since their function is called several times
    unsure: dict[int, ast.Attribute] = field(default_factory=dict)  # attributes of unknown values that may be iterators, by the node's id
    sites: dict[int, list[tuple[ast.Call, Frame]]] = field(default_factory=dict)
    """Calls of functions of the file that return an iterator, outermost first, each with its frame, by the iterator's id."""

    def uses_of(self, thing: Flow | Zipped) -> list[Use]:
        """The uses of one iterator, or of one pair."""
        return [u for u in self.uses if u.of is thing]

    def served_by(self, use: Use) -> list[Flow | Zipped]:
        """Iterators or pairs at the place of a use: several if a loop or function runs several times."""
        return list({id(u.of): u.of for u in self.uses if u.node is use.node}.values())

    def is_drawn_from(self, flow: Flow) -> bool:
        """True if code takes single batches from an iterator."""
        return any(u.kind in ("next", "item") or u.name in ("next", "__next__") for u in self.uses_of(flow))

    def only_drawn_from(self, flow: Flow) -> bool:
        """True if the only use of an iterator is taking batches by `next`."""
        uses = self.uses_of(flow)
        return bool(uses) and all(u.is_next for u in uses)

    def is_paired(self, flow: Flow) -> bool:
        """True if an iterator is joined with another: by `zip`, or by drawing batches side by side with the same seed."""
        if any(u.kind == "zip" for u in self.uses_of(flow)):
            return True
        others = [f for f in self.flows if f is not flow and f.frame is flow.frame and f.get("subset") == flow.get("subset")]
        beside = [f for f in others if f.get("seed") is not None and f.get("seed") == flow.get("seed")]
        return self.only_drawn_from(flow) and any(self.only_drawn_from(f) for f in beside)

    def name_of(self, thing: Flow | Generator | Zipped) -> str:
        """Variable of an object, or an empty text."""
        return self.names.get(id(thing), "")


MODEL_METHODS = ("fit", "fit_generator", "evaluate", "evaluate_generator", "predict", "predict_generator", "predict_classes")
_OBJECTS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.GeneratorExp)  # expressions that can be an iterator or a generator
_MOST_FRAMES = 500


def collect(tree: ast.Module) -> Collected:
    """Collects from a parsed file."""
    evaluator = Evaluator(tree, HANDLERS, Outside)
    mentions: dict[str, set[str]] = {}
    """Names mentioned by each function of the file, and by each class in its methods."""
    for inner in ast.walk(tree):
        if isinstance(inner, DEFINITIONS):
            mentions.setdefault(inner.name, set()).update(filter(None, map(name_of, ast.walk(inner))))
    walker = _Walker(Collected(evaluator), mentions)
    for statement in tree.body:
        walker.visit(statement, evaluator.module, ())
    waited: set[int] = set()
    while walker.pending:
        node, frame = walker.pending.pop(0)
        if id(node) in walker.entered:
            continue
        around = frame.scope.node
        names = {node.name, around.name} if isinstance(around, ast.ClassDef) else {node.name}  # by which code can call it
        if id(node) not in waited and any(names & mentions[n.name] for n, _ in walker.pending if n.name in walker.concerned):
            waited.add(id(node))  # its calls come first, and have the arguments
            walker.pending.append((node, frame))
            continue
        walker.enter(node, evaluator.frame(node, frame, {}))
    for single, frame in walker.lambdas:
        if id(single) not in walker.entered:
            walker.enter(single, evaluator.frame(single, frame, {}))
    return walker.found


class _Walker:
    def __init__(self, found: Collected, mentions: dict[str, set[str]]) -> None:
        self.found = found
        self.concerned = {"ImageDataGenerator", *FLOWS}
        """Functions that handle generators, or call one that does: they are followed at each call."""
        while more := {name for name, inner in mentions.items() if inner & self.concerned} - self.concerned:
            self.concerned |= more
        self.values = found.evaluator
        self.pending: list[tuple[ast.FunctionDef | ast.AsyncFunctionDef, Frame]] = []
        self.lambdas: list[tuple[ast.Lambda, Frame]] = []  # named lambdas, which are followed at each call, like functions
        self.entered: set[int] = set()
        self._frames: set[int] = set()
        self._made: dict[int, int] = {}
        self._objects: set[int] = set()

    def enter(self, node: ast.AST, frame: Frame) -> None:
        """Walks through a function in a frame."""
        self.entered.add(id(node))
        if id(frame) in self._frames or len(self._frames) > _MOST_FRAMES:
            return
        self._frames.add(id(frame))
        if isinstance(node, Function):
            self._run(node.body, frame)
        elif isinstance(node, ast.Lambda):
            self.visit(node.body, frame, ())

    def _run(self, statements: list[ast.stmt], frame: Frame) -> bool:
        """Walks through the statements of a call; True if the call certainly ends there."""
        for statement in statements:
            taken = taken_side(self.values, statement, frame) if frame.args else None
            if taken is not None and isinstance(statement, ast.If):
                self.visit(statement.test, frame, (statement,))
                if self._run(taken, frame):
                    return True
            else:
                self.visit(statement, frame, ())
            if isinstance(statement, (ast.Return, ast.Raise)):
                return True
        return False

    def visit(self, node: ast.AST, frame: Frame, above: tuple[ast.AST, ...]) -> None:
        if self._is_put_off(node, frame, above):
            return
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                self.visit(statement, self.values.frame(node, frame, {}), ())
            return
        if isinstance(node, ast.expr):
            self._expression(node, frame, above)
        if isinstance(node, Comprehension):
            self._comprehension(node, frame, (*above[-3:], node))
            return
        inside = self.values.frame(node, frame, {}) if isinstance(node, ast.Lambda) else frame
        for child in self._taken(node, frame) if isinstance(node, (ast.IfExp, ast.BoolOp)) else ast.iter_child_nodes(node):
            self.visit(child, inside, (*above[-3:], node))

    def _is_put_off(self, node: ast.AST, frame: Frame, above: tuple[ast.AST, ...]) -> bool:
        """Defers a function or a named lambda until it is called; True for such a node."""
        if isinstance(node, Function):
            self.pending.append((node, frame))
            for inner in (*node.decorator_list, *node.args.defaults):
                self.visit(inner, frame, (*above[-3:], node))
            return True
        if isinstance(node, ast.Lambda) and above and isinstance(above[-1], ast.Assign) and self._is_concerned(node):
            self.lambdas.append((node, frame))
            return True
        return False

    def _is_concerned(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Lambda):
            return bool({name_of(n) for n in ast.walk(node)} & self.concerned)
        return getattr(node, "name", "") in self.concerned

    def _taken(self, node: ast.IfExp | ast.BoolOp, frame: Frame) -> list[ast.expr]:
        """Condition and taken side of a branch, if known; else all sides."""
        in_call = bool(frame.args)
        if isinstance(node, ast.BoolOp):
            ends = (i for i, side in enumerate(node.values, 1) if truth_of(self.values.value(side, frame)) == isinstance(node.op, ast.Or))
            return node.values[: next(ends, None)] if in_call else node.values
        test = certain(self.values.value(node.test, frame)) if in_call else None
        sides = [node.body, node.orelse] if not in_call or isinstance(test, Unknown) else [node.body if test else node.orelse]
        return [node.test, *sides]

    def _comprehension(self, node: Comprehension, frame: Frame, above: tuple[ast.AST, ...]) -> None:
        """Walks through a comprehension, once for all its rounds."""
        first, *others = node.generators
        self.visit(first.iter, frame, (*above[-3:], first))
        inner = self.values.frame(node, frame, {})
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.visit(part, inner, above)
        for generator in node.generators:
            for part in (*generator.ifs, *([generator.iter] if generator in others else [])):
                self.visit(part, inner, (*above[-3:], generator))

    def _expression(self, node: ast.expr, frame: Frame, above: tuple[ast.AST, ...]) -> None:
        if not isinstance(node, _OBJECTS) or isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
            return
        value = self.values.value(node, frame)
        if isinstance(node, ast.Attribute) and isinstance(self.values.value(node.value, frame), Unknown):
            self.found.unsure[id(node)] = node
        if isinstance(node, ast.Call):
            for flow in value.items if isinstance(value, Seq) else (value,):
                if isinstance(flow, (Flow, Zipped)) and flow.node is not node:
                    self.found.sites.setdefault(id(flow), []).append((node, frame))
            self._call(node, frame)
        if isinstance(value, (Flow, Generator, Zipped)):
            self._object(value, node, frame, above)

    def _call(self, node: ast.Call, frame: Frame) -> None:
        function = self.values.value(node.func, frame)
        if isinstance(function, Local):
            given = [self.values.value(a, frame) for a in given_to(node) if not isinstance(a, ast.Starred)]
            if self._is_concerned(function.node) or any(isinstance(value, (Flow, Generator, Zipped)) for value in given):
                inner, _ = self.values.returned(function, node, frame)
                if inner is not None:
                    self.enter(function.node, inner)
        elif isinstance(function, Class) and "__init__" in self.concerned:
            made = self.values.value(node, frame)
            if isinstance(made, Instance) and made.made is not None:
                self.enter(made.made.scope.node, made.made)

    def _object(self, value: Flow | Generator | Zipped, node: ast.expr, frame: Frame, above: tuple[ast.AST, ...]) -> None:
        if id(value) not in self._objects:
            self._objects.add(id(value))
            kept = self.found.flows if isinstance(value, Flow) else self.found.pairs if isinstance(value, Zipped) else self.found.generators
            kept.append(value)  # type: ignore[arg-type]
            if self._made.setdefault(id(value.node), id(value)) != id(value):
                self.found.shared.add(id(value.node))
        parent = above[-1] if above else None
        self._name(value, node, frame, parent)
        if isinstance(parent, (ast.Assign, ast.AnnAssign)) and parent.value is node:
            if value.node is node and (not isinstance(parent, ast.Assign) or len(parent.targets) == 1):
                self.found.statements[id(value)] = (parent, frame)
            return
        if isinstance(value, (Flow, Zipped)):
            self._use(value, node, frame, above)
        elif isinstance(parent, ast.Attribute):
            outer = above[-2] if len(above) > 1 else None
            if parent.attr == "fit" and isinstance(outer, ast.Call) and outer.func is parent:
                self.found.fits.append((value, outer))
            else:
                self.found.members.append((value, parent.attr, node.lineno))
                if parent.attr in (*CONSTRUCTOR, *FITTED) and isinstance(parent.ctx, ast.Store):
                    self.found.assigned.append((value, parent.attr, node.lineno))

    def _name(self, value: Flow | Generator | Zipped, node: ast.expr, frame: Frame, parent: ast.AST | None) -> None:
        """Records the name of an object: its variable, attribute or key in a dict."""
        name: object = name_of(node) if isinstance(node, ast.Name) else ""
        if isinstance(parent, (ast.Assign, ast.AnnAssign)) and parent.value is node:
            target = targets_of(parent)[0]
            name = plain(self.values.value(target.slice, frame)) if isinstance(target, ast.Subscript) else name_of(target)
        elif isinstance(parent, ast.Dict) and node in parent.values:
            key = parent.keys[parent.values.index(node)]
            name = str(key.value) if isinstance(key, ast.Constant) else ""
        elif isinstance(parent, ast.DictComp) and node is parent.value:
            name = plain(self.values.value(parent.key, frame))
        if name and isinstance(name, str):
            self.found.names.setdefault(id(value), name)

    def _use(self, thing: Flow | Zipped, node: ast.expr, frame: Frame, above: tuple[ast.AST, ...]) -> None:
        parent = above[-1] if above else None
        outer = above[-2] if len(above) > 1 else None
        kind, name, about = _usage(node, parent, outer)
        if kind == "":
            return
        if kind == "call":
            call = cast("ast.Call", about)
            argument = self._model_call(call, node, frame)
            callee = self.values.value(call.func, frame)
            if argument is not None:
                kind, name = "model", argument
            elif isinstance(callee, Local):
                return  # the function is followed instead
            else:
                name = callee.name.rsplit(".", 1)[-1] if isinstance(callee, Dotted) else called(call)
                kind = name if name in ("len", "next", "zip") else "other"
        self.found.uses.append(Use(kind, name, node, about, frame, thing))  # type: ignore[arg-type]

    def _model_call(self, call: ast.Call, node: ast.expr, frame: Frame) -> str | None:
        """Argument of `fit` or similar that a node is; `None` for other calls."""
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in MODEL_METHODS:
            return None
        known = next((c for c in self.found.calls if c.node is call and c.frame is frame), None)
        if known is None:
            known = ModelCall(call, named_arguments(call), frame)
            self.found.calls.append(known)
        return next((name for name, value in known.args.items() if value is node), "other")


def named_arguments(call: ast.Call) -> dict[str, ast.expr]:
    """Arguments of a call of `fit` or similar, by their names in Keras 3."""
    method = called(call)
    order = {"fit": FIT, "fit_generator": FIT_GENERATOR}.get(method, ("x", "steps" if method.endswith("_generator") else "y"))
    found = {name: arg for name, arg in zip(order, call.args, strict=False) if not isinstance(arg, ast.Starred)}
    for keyword in call.keywords:
        if keyword.arg is not None:
            found[RENAMED.get(keyword.arg, keyword.arg)] = keyword.value
    return found


def _usage(node: ast.expr, parent: ast.AST | None, outer: ast.AST | None) -> tuple[str, str, ast.AST]:
    """Use of an expression, from the code around it; an empty kind if it is not a use."""
    if isinstance(parent, ast.Attribute):
        called = isinstance(outer, ast.Call) and outer.func is parent
        return ("method" if called else "member"), parent.attr, (outer if called and outer is not None else parent)
    if isinstance(parent, ast.Call) and parent.func is not node:
        return "call", "", parent
    if isinstance(parent, ast.keyword) and isinstance(outer, ast.Call):
        return "call", "", outer
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return "item", "", parent
    if isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is node:
        return "loop", "", parent
    if parent is None or isinstance(parent, (ast.Return, ast.Expr, ast.Tuple, ast.List, ast.Assign, ast.Dict, ast.IfExp, Comprehension)):
        return "", "", node
    return "other", "", parent
