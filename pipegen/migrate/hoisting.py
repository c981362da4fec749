"""Iterators that functions of the file make: the call stands for its iterator, or the function gets its own pipeline.

`train = make("a", True); val = make("b", False)` becomes `train = pipe.train; val = pipe.validation`. `make` is removed with its last call.
`extract_features(train_dir); extract_features(test_dir)` stays as it is; the function builds one pipeline, with the folder as a param.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from pipegen.migrate import values as v
from pipegen.migrate.evaluate import Evaluator
from pipegen.migrate.groups import Display, Group, Pair, displays_of, group_flows, owner_of
from pipegen.migrate.homes import of_function, up_to_function
from pipegen.migrate.interpret import Collected, Use, collect
from pipegen.migrate.nodes import Function, called, defaults_of, parameters, passing_loop, targets_of
from pipegen.migrate.steps import RANDOM

_Site = tuple[ast.Call, v.Frame]
_HARMLESS = ("print", "info", "debug", "fit")  # calls that a function may make as statements, and that may be dropped
_READING = (
    "os.path.", "os.listdir", "os.environ.", "os.getenv", "pandas.", "numpy.", "math.", "pathlib.", "glob.", "builtins.", "sklearn.",
    "time.",
)  # fmt: skip
"""Libraries whose functions compute values from their arguments."""
_METHODS = (
    "apply", "astype", "copy", "drop", "exists", "fillna", "format", "get", "isin", "items", "join", "joinpath", "keys", "map", "replace",
    "reset_index", "reshape", "sample", "split", "startswith", "strip", "tolist", "unique", "values",
)  # fmt: skip
"""Methods of tables, texts, dicts and paths without side effects."""
CALLER = "the caller of `"  # beginning of the origin of a value that a function of the file receives
_NUMBERS = ("directory", "target_size", "batch_size", "seed")


@dataclass
class Hoisted:
    """A group whose iterators are replaced by the calls that return them."""

    group: Group
    moved: list[tuple[v.Flow, v.Flow]] = field(default_factory=list)  # each exchanged iterator, with its replacement
    makers: list[Function] = field(default_factory=list)
    displays: list[Display] = field(default_factory=list)  # calls that return only iterators of the group, several each
    nodes: dict[int, ast.expr] = field(default_factory=dict)  # replacements of constructor arguments at the function's call, by node id
    pairs: list[tuple[v.Zipped, v.Zipped]] = field(default_factory=list)  # each `zip` of two iterators, with the call that replaces it

    def apply(self, found: Collected) -> None:
        """Replaces the iterators in the results."""
        new: dict[int, v.Flow | v.Zipped] = {id(old): after for old, after in self.moved}
        new.update({id(old): after for old, after in self.pairs})
        found.flows = [cast("v.Flow", new.get(id(f), f)) for f in found.flows]
        found.pairs = [cast("v.Zipped", new.get(id(p), p)) for p in found.pairs]
        gone = [u for u in found.uses if self.pairs and self._goes(u)]  # what the functions do with pairs is removed together with them
        found.uses = [replace(u, of=new.get(id(u.of), u.of)) for u in found.uses if u not in gone]
        found.names.update({id(after): found.names[id(old)] for old, after in self.moved if id(old) in found.names})

    def _goes(self, use: Use) -> bool:
        if isinstance(use.of, v.Zipped):
            return of_function(use.frame).scope.node in self.makers
        return use.kind == "zip" and any(use.of is old for old, _ in self.moved)


def hoisted(found: Collected, group: Group) -> Hoisted | None:
    """The group with calls in place of its iterators, or of each `zip` of images and masks; `None` if not needed, or if the meaning could
    change."""
    things: dict[str, v.Flow] | dict[str, v.Zipped] = {split: pair.zipped for split, pair in group.pairs.items()} or group.parts
    needed = not group.pairs and owner_of(group, found) is None
    several = len({id(of_function(thing.frame)) for thing in things.values()}) > 1
    if list(things) != list(group.parts) or not (several or needed or any(id(thing.node) in found.shared for thing in things.values())):
        return None
    places = [_places(found, thing, list(things.values()), stay=not needed and not group.pairs) for thing in things.values()]
    common = [key for key in places[0] if all(key in p for p in places[1:])]
    return next((made for key in common if (made := _at(found, group, things, [p[key] for p in places])) is not None), None)


def _places(found: Collected, thing: v.Flow | v.Zipped, things: Sequence[v.Flow | v.Zipped], *, stay: bool) -> dict[int, int]:
    """Functions in which an iterator can be placed, each with the index of its call; -1 for the place where it is made."""
    sites = found.sites.get(id(thing), [])
    frames = [id(of_function(frame)) for _, frame in sites]
    alone = [_gives_only(found, site, thing, things) for site in sites]
    places = {key: i for i, key in enumerate(frames) if frames.count(key) == 1 and alone[i]}
    if id(thing.node) not in found.shared and stay:
        places.setdefault(id(of_function(thing.frame)), -1)
    return places


def _gives_only(found: Collected, site: _Site, thing: v.Flow | v.Zipped, things: Sequence[v.Flow | v.Zipped]) -> bool:
    """True if a call always returns just an iterator, or a tuple of several of the same group."""
    value = found.evaluator.value(*site)
    given = list(value.items) if isinstance(value, v.Seq) else [value]
    others = [t for t in (*found.flows, *found.pairs) if any(site[0] is node for node, _ in found.sites.get(id(t), []))]
    inside = all(any(g is t for t in things) for g in given) and len({id(g) for g in given}) == len(given)
    return inside and any(g is thing for g in given) and len(others) == len(given)


def _at(found: Collected, group: Group, things: Mapping[str, v.Flow | v.Zipped], chosen: list[int]) -> Hoisted | None:
    made = Hoisted(group)
    parts, pairs = dict(group.parts), dict(group.pairs)
    for (split, thing), i in zip(things.items(), chosen, strict=True):
        if i < 0:
            continue
        sites = found.sites[id(thing)][i:]
        inner = [*(of_function(frame) for _, frame in sites[1:]), of_function(thing.frame)]
        if isinstance(thing, v.Zipped):
            flows, movable = [pairs[split].image, pairs[split].mask], all(of_function(f.frame) is inner[-1] for f in thing.flows)
        else:
            flows, movable = [thing], not any(of_function(u.frame) in inner for u in found.uses_of(thing))
        new = [_moved(found, flow, sites) for flow in flows] if movable and all(_only_makes(found, f) for f in inner) else [None]
        moved = [flow for flow in new if flow is not None]
        if len(moved) < len(new):
            return None
        made.moved += zip(flows, moved, strict=True)
        made.makers += [cast("Function", f.scope.node) for f in inner if f.scope.node not in made.makers]
        if flows[0] is group.first:
            made.nodes = _of_generator(found, group.first, inner, sites)
        parts[split] = moved[0]
        if isinstance(thing, v.Zipped):
            zipped = v.Zipped((moved[0], moved[1]) if thing.flows[0] is flows[0] else (moved[1], moved[0]), *sites[0])
            pairs[split] = Pair(moved[0], moved[1], zipped)
            made.pairs.append((thing, zipped))
    made.group = replace(group, parts=parts, pairs=pairs)
    for node in {id(flow.node): flow.node for _, flow in made.moved}.values():
        value = found.evaluator.value(node, next(f.frame for _, f in made.moved if f.node is node))
        if isinstance(value, v.Seq):
            returned = tuple(next(new for old, new in made.moved if old is item) for item in value.items)
            made.displays.append(Display(node, node, returned, None, is_tuple=True))
    found.kept += [made]
    return made


def _of_generator(found: Collected, flow: v.Flow, inner: list[v.Frame], sites: list[_Site]) -> dict[int, ast.expr]:
    """Constructor arguments as written at the call, if the generator is made in the same function as the iterator."""
    generator = flow.generator
    if not isinstance(generator, v.Generator) or of_function(generator.frame) is not inner[-1]:
        return {}
    made = {id(a.node): as_called(found.evaluator, a.node, generator.frame, sites) for a in generator.args.values()}
    return {key: node for key, node in made.items() if node is not None}


def _only_makes(found: Collected, frame: v.Frame) -> bool:
    """True if nothing of a function's work is needed except its return value."""
    node = frame.scope.node
    if not isinstance(node, Function):
        return False
    ends = passing_loop(node.body[-1]) is not None  # it yields pairs one by one
    return all(_is_missed_by_none(found, statement, frame) for statement in (node.body[:-1] if ends else node.body))


def _is_missed_by_none(found: Collected, statement: ast.stmt, frame: v.Frame) -> bool:
    if isinstance(statement, ast.If):
        blocks = (*statement.body, *statement.orelse)
        return _only_reads(found, statement.test, frame) and all(_is_missed_by_none(found, s, frame) for s in blocks)
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        parts = (n for t in targets_of(statement) for n in ast.walk(t))
        changes = any(isinstance(n, (ast.Attribute, ast.Subscript)) and isinstance(n.ctx, ast.Store) for n in parts)
        return not changes and (statement.value is None or _only_reads(found, statement.value, frame))
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant) or called(statement.value) in _HARMLESS
    if isinstance(statement, ast.Return):
        return statement.value is None or _only_reads(found, statement.value, frame)
    return isinstance(statement, (ast.Import, ast.ImportFrom, ast.Pass, ast.Assert, ast.Raise))


def _only_reads(found: Collected, node: ast.expr, frame: v.Frame) -> bool:
    """True if the calls in an expression only make generators and iterators, or compute values from their arguments."""
    for call in (n for n in ast.walk(node) if isinstance(n, ast.Call)):
        made, function = found.evaluator.value(call, frame), found.evaluator.value(call.func, frame)
        reads = isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS and not isinstance(function, (v.Class, v.Local))
        if isinstance(function, v.Dotted):
            reads = function.name.startswith(_READING) or function.name.rsplit(".", 1)[-1] in ("to_categorical", "deepcopy", "copy")
        if not reads and not isinstance(made, (v.Flow, v.Generator, v.Zipped, v.Seq)):
            return False
    return True


def _moved(found: Collected, flow: v.Flow, sites: list[_Site]) -> v.Flow | None:
    """An iterator as its call returns it; `None` if an argument varies at run time and cannot be named there."""
    node, frame = sites[0]
    args = dict(flow.args)
    for name, argument in flow.args.items():
        given = as_called(found.evaluator, argument.node, flow.frame, sites) if not argument.unpacked else None
        value = _without_callers(argument.value)
        array = name in ("x", "y", "sample_weight", "dataframe") and (flow.method == "flow" or not isinstance(value, v.Table))
        varies = isinstance(v.plain(value), v.Unknown) and not isinstance(value, v.Table)
        if given is not None and not array and not _only_reads(found, given, frame):
            given = None
        if given is None and (array or ((varies or v.origins_of(value)) and name in _NUMBERS)):
            return None
        args[name] = replace(argument, value=value, node=given if given is not None else argument.node, moved_from=argument.node.lineno)
    return replace(flow, args=args, node=node, frame=frame)


def _without_callers(value: v.Value) -> v.Value:
    """A value without the origins that are calls of functions of the file, since the actual calls count."""
    if isinstance(value, v.Seq):
        return v.Seq(tuple(map(_without_callers, value.items)), value.is_list)
    if not isinstance(value, v.Const):
        return value
    rest = tuple(origin for origin in value.origins if not origin.startswith(CALLER))
    return replace(value, origins=rest)


def unused(tree: ast.Module, makers: list[Function], calls: list[ast.Call]) -> list[Function]:
    """Functions that are no longer mentioned once some calls are gone."""
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


_DEEPEST = 6


def as_called(evaluator: Evaluator, node: ast.expr, frame: v.Frame, sites: Sequence[tuple[ast.Call, v.Frame]]) -> ast.expr | None:
    """Expression of a frame, rewritten for the outermost of the calls that lead there.

    The outermost call comes first. `None` if the expression depends on more than the arguments of the calls and names of the module.
    """
    found = copy.deepcopy(node)
    outside: dict[int, str] = {}
    for call, caller in reversed(sites):
        function = evaluator.value(call.func, caller)
        if not isinstance(function, v.Local):
            return None
        put = _Put(function, function.node.args, call, of_function(frame), outside)
        found, frame = put.visit(found), caller
        if put.failed:
            return None
    here = of_function(frame)
    if here.parent is not None and any(name in here.scope.bindings for name in outside.values()):
        return None
    for part in ast.walk(found):
        ast.copy_location(part, sites[0][0])
        part.made = True  # type: ignore[attr-defined]  # not in the source
    return found


class _Put(ast.NodeTransformer):
    """Replaces parameters, and variables made of them, by the values of a call.

    `outside` collects names from around the function, by node id; they do not belong to a caller.
    """

    def __init__(self, function: v.Local, spec: ast.arguments, call: ast.Call, frame: v.Frame, outside: dict[int, str]) -> None:
        self.frame = frame
        self.outside = outside
        self.depth = 0
        self.names = {a.arg for a in parameters(spec)}
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        self.given: dict[str, ast.expr] = {name: default for name, default in defaults_of(spec) if isinstance(default, ast.Constant)}
        if function.bound is not None and isinstance(call.func, ast.Attribute):
            self.given[names[0]] = call.func.value
            names = names[1:]
        self.failed = any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
        self.given.update(zip(names, call.args, strict=False))
        self.given.update({k.arg: k.value for k in call.keywords if k.arg is not None})

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replaces a parameter, a variable of the function, or a name from around it."""
        bindings = self.frame.scope.bindings.get(node.id, []) if self.frame.parent is not None else []
        if id(node) in self.outside:
            return node
        if not bindings:
            self.outside[id(node)] = node.id
            return node
        only = bindings[0]
        if len(bindings) == 1 and node.id in self.names:
            if node.id in self.given:
                return copy.deepcopy(self.given[node.id])
        elif len(bindings) == 1 and only.kind == "value" and only.straight and only.value is not None and not only.path:
            self.depth += 1
            if self.depth <= _DEEPEST:
                return self.visit(copy.deepcopy(only.value))
        self.failed = True
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Visits other nodes, except those with a scope of their own."""
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr)):
            self.failed = True
        return super().generic_visit(node)


_MOST_PASSES = 3
_GIVEN = ("directory", "dataframe", "target_size", "batch_size", "seed", "x", "y", "sample_weight")
_KNOBS = (*RANDOM, "rescale", "validation_split")


def collect_once(tree: ast.Module) -> tuple[Collected, list[Group]]:
    """Collects what a file does with `ImageDataGenerator`, and its groups; a function or loop of several pipelines counts once."""
    whole: frozenset[int] = frozenset()
    for _ in range(_MOST_PASSES):
        found = collect(tree, whole)
        groups = group_flows(found)
        more = frozenset(id(node) for group in groups for node in _repeated(found, group)) - whole
        if not more:
            break
        whole |= more
    return found, groups


def _repeated(found: Collected, group: Group) -> list[ast.AST]:
    """The function or loop whose rounds each make a group, if its code is the only form of them."""
    shared = [flow for flow in group.flows if id(flow.node) in found.shared]
    whole = {id(display.element) for display in displays_of(found, group, [])}
    if group.pairs or not shared or all(id(flow.node) in whole for flow in shared):
        return []
    if not all(_alike(flow, other) for flow in shared for other in found.flows if other.node is flow.node):
        return []
    if inside := [node for node in (_function_of(found, flow) for flow in shared) if node is not None]:
        return inside
    parts = any(f.node is g.node for f in group.flows for g in group.flows if f is not g)
    if parts or hoisted(found, group) is not None:
        return []  # the calls, or the rounds, are parts of one pipeline
    return [node for node in (_loop_of(found, flow) for flow in shared) if node is not None]


def _alike(flow: v.Flow, other: v.Flow) -> bool:
    """True if two iterators of the same code differ only in values that the call of `build` can pass."""
    one, two = flow.generator, other.generator
    both = isinstance(one, v.Generator) and isinstance(two, v.Generator) and one.node is two.node and _equal_but(one.args, two.args, _KNOBS)
    return _equal_but(flow.args, other.args, _GIVEN) and (one is two or both)


def _equal_but(one: dict[str, v.Argument], other: dict[str, v.Argument], names: tuple[str, ...]) -> bool:
    return set(one) == set(other) and all(v.same(one[n].value, other[n].value) for n in one if n not in names)


def _function_of(found: Collected, flow: v.Flow) -> ast.AST | None:
    """Function that makes an iterator in each call and has all of its uses."""
    function, uses = of_function(flow.frame), found.uses_of(flow)
    if not uses or function.parent is None or any(of_function(u.frame) is not function for u in uses):
        return None
    return None if id(flow) in found.sites else function.scope.node


def _loop_of(found: Collected, flow: v.Flow) -> ast.AST | None:
    """Loop whose rounds make and use an iterator, or call the function that does."""
    frames: list[v.Frame] = [flow.frame, *(frame for _, frame in reversed(found.sites.get(id(flow), [])))]
    for frame in frames if found.uses_of(flow) else ():
        loop = next((f.scope.node for f in up_to_function(frame) if isinstance(f.scope.node, ast.For)), None)
        if loop is not None:
            return loop
    return None
