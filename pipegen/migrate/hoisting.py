"""Iterators that functions of the file make and return: the call that gives each of them stands for it, where all of a group meet.

`train = make("a", True); val = make("b", False)` becomes `train = pipe.train; val = pipe.validation`, and `make` goes with its last call.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from pipegen.migrate.homes import of_function
from pipegen.migrate.mutation import Function
from pipegen.migrate.values import Argument, Flow, Local, Seq, Setting, Table, Unknown, Value, origins_of, plain

if TYPE_CHECKING:
    from pipegen.migrate.collected import Collected
    from pipegen.migrate.groups import Group
    from pipegen.migrate.values import Frame

_Site = tuple[ast.Call, "Frame"]
_HARMLESS = ("print", "info", "debug", "fit")
"""Calls that a function may make as statements of their own, and that are not missed."""
CALLER = "the caller of `"
"""How the origin of a value begins that a function of the file is given."""


@dataclass
class Hoisted:
    """A group whose iterators are the calls that give them.

    Attributes:
        group: The group, with other iterators.
        moved: Each iterator that was exchanged, with what stands for it now.
        makers: The functions that make them.
    """

    group: Group
    moved: list[tuple[Flow, Flow]]
    makers: list[Function]

    def apply(self, found: Collected, *, back: bool = False) -> None:
        """Exchange the iterators in what was found, or undo that."""
        for old, new in ((b, a) if back else (a, b) for a, b in self.moved):
            found.flows = [new if f is old else f for f in found.flows]
            for use in found.uses:
                use.flow = new if use.flow is old else use.flow
            if id(old) in found.names:
                found.names[id(new)] = found.names[id(old)]


def hoisted(found: Collected, group: Group) -> Hoisted | None:
    """The group with its calls for iterators; `None` where that is not needed, or would not be sure to mean the same."""
    flows = list(group.parts.values())
    shared = any(id(f.node) in found.shared for f in flows)
    if group.masks or (not shared and len({id(of_function(f.frame)) for f in flows}) == 1):
        return None
    places = [_places(found, flow) for flow in flows]
    common = [key for key in places[0] if all(key in p for p in places[1:])]
    for key in common:
        made = _at(found, group, [p[key] for p in places])
        if made is not None:
            return made
    return None


def _places(found: Collected, flow: Flow) -> dict[int, int]:
    """The functions in which an iterator can be put, each with the place of the call in its list; -1 for where it is made."""
    sites = found.sites.get(id(flow), [])
    frames = [id(of_function(frame)) for _, frame in sites]
    alone = [sum(any(node is n for n, _ in other) for other in found.sites.values()) == 1 for node, _ in sites]
    places = {key: i for i, key in enumerate(frames) if frames.count(key) == 1 and alone[i]}
    if id(flow.node) not in found.shared:
        places.setdefault(id(of_function(flow.frame)), -1)
    return places


def _at(found: Collected, group: Group, chosen: list[int]) -> Hoisted | None:
    moved: list[tuple[Flow, Flow]] = []
    makers: list[Function] = []
    parts: dict[str, Flow] = {}
    for (split, flow), i in zip(group.parts.items(), chosen, strict=True):
        if i < 0:
            parts[split] = flow
            continue
        sites = found.sites[id(flow)]
        inner = [of_function(frame) for _, frame in sites[i + 1 :]] + [of_function(flow.frame)]
        functions = [frame.scope.node for frame in inner]
        if any(of_function(u.frame) in inner for u in found.uses_of(flow)) or not all(_only_makes(f) for f in functions):
            return None
        new = _moved(found, flow, sites[i], direct=i == len(sites) - 1)
        if new is None:
            return None
        parts[split] = new
        moved.append((flow, new))
        makers += [cast("Function", f) for f in functions if f not in makers]
    nodes = [id(flow.node) for flow in parts.values()]
    return Hoisted(replace(group, parts=parts), moved, makers) if len(set(nodes)) == len(nodes) else None


def _only_makes(node: ast.AST) -> bool:
    """Whether nothing is missed of a function's work but what it returns."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    return all(_is_missed_by_none(statement) for statement in node.body)


def _is_missed_by_none(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return all(map(_is_missed_by_none, (*statement.body, *statement.orelse)))
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return not any(isinstance(n, (ast.Attribute, ast.Subscript)) and isinstance(n.ctx, ast.Store) for t in targets for n in ast.walk(t))
    if isinstance(statement, ast.Expr):
        call = statement.value
        named = getattr(call.func, "attr", getattr(call.func, "id", "")) if isinstance(call, ast.Call) else ""
        return isinstance(call, ast.Constant) or named in _HARMLESS
    return isinstance(statement, (ast.Return, ast.Import, ast.ImportFrom, ast.Pass, ast.Assert, ast.Raise))


def _moved(found: Collected, flow: Flow, site: _Site, *, direct: bool) -> Flow | None:
    """An iterator as its call gives it; `None` where an argument is another at run time, and cannot be named there."""
    node, frame = site
    args: dict[str, Argument] = {}
    for name, argument in flow.args.items():
        given = _given(found, argument, flow, site) if direct else None
        value = _without_callers(argument.value)
        array = name in ("x", "y", "sample_weight") and flow.method == "flow"
        varies = isinstance(plain(value), Unknown) and not isinstance(value, Table)
        if given is None and (array or ((varies or origins_of(value)) and name in ("directory", "target_size", "batch_size", "seed"))):
            return None
        args[name] = replace(argument, value=value, node=given if given is not None else argument.node)
    return replace(flow, args=args, node=node, frame=frame)


def _given(found: Collected, argument: Argument, flow: Flow, site: _Site) -> ast.expr | None:
    """What a call gives for the parameter that an argument of the iterator is."""
    call, frame = site
    function = found.evaluator.value(call.func, frame)
    if (
        not isinstance(argument.node, ast.Name)
        or not isinstance(function, Local)
        or function.node is not of_function(flow.frame).scope.node
    ):
        return None
    if isinstance(function.node, ast.ClassDef) or argument.node.id in _stored(function.node):
        return None
    spec = function.node.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)][int(function.bound is not None) :]
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    given = {**dict(zip(names, call.args, strict=False)), **{k.arg: k.value for k in call.keywords if k.arg is not None}}
    return given.get(argument.node.id)


def _stored(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _without_callers(value: Value) -> Value:
    """A value without the origins that are calls of functions of the file, since the calls that there are count."""
    if isinstance(value, Seq):
        return Seq(tuple(map(_without_callers, value.items)), value.is_list)
    if not isinstance(value, Setting):
        return value
    rest = tuple(origin for origin in value.origins if not origin.startswith(CALLER))
    return replace(value, origins=rest)


def unused(tree: ast.Module, makers: list[Function], calls: list[ast.Call]) -> list[Function]:
    """The functions that nothing mentions any more once some calls are gone."""
    methods = {id(m) for n in ast.walk(tree) if isinstance(n, ast.ClassDef) for m in n.body}
    by_text = any(isinstance(n, ast.Name) and n.id in ("getattr", "globals", "eval") for n in ast.walk(tree))
    gone = list(makers)
    while True:
        inside = {id(n) for root in (*gone, *calls) for n in ast.walk(root)}
        left = [n for n in ast.walk(tree) if id(n) not in inside]
        texts = {n.value for n in left if by_text and isinstance(n, ast.Constant) and isinstance(n.value, str)}
        attributes = texts | {n.attr for n in left if isinstance(n, ast.Attribute)}
        names = texts | {n.id for n in left if isinstance(n, ast.Name)}
        kept = [f for f in gone if f.name not in (attributes if id(f) in methods else names)]
        if len(kept) == len(gone):
            return gone
        gone = kept
