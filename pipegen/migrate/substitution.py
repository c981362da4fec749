"""An expression of a function as the function's caller would write it: with the arguments of the call for the parameters."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from pipegen.migrate.evaluate import Evaluator
from pipegen.migrate.homes import of_function
from pipegen.migrate.nodes import defaults_of, parameters
from pipegen.migrate.values import Frame, Local

_DEEPEST = 6


def as_called(evaluator: Evaluator, node: ast.expr, frame: Frame, sites: Sequence[tuple[ast.Call, Frame]]) -> ast.expr | None:
    """An expression of a frame as the outermost of the calls that lead there would write it, at its place.

    `None` where it depends on more than the arguments of the calls, the outermost of which comes first, and names of the module.
    """
    found = copy.deepcopy(node)
    outside: dict[int, str] = {}
    for call, caller in reversed(sites):
        function = evaluator.value(call.func, caller)
        if not isinstance(function, Local) or isinstance(function.node, ast.ClassDef):
            return None
        put = _Put(function, function.node.args, call, of_function(frame), outside)
        found = put.visit(found)
        frame = caller
        if put.failed:
            return None
    here = of_function(frame)
    if here.parent is not None and any(name in here.scope.bindings for name in outside.values()):
        return None
    for part in ast.walk(found):
        ast.copy_location(part, sites[0][0])
    return found


class _Put(ast.NodeTransformer):
    """Puts what a call gives in the place of parameters, and of variables that are made of them.

    `outside` takes the names from around the function, by the ids of their nodes, which are none of a caller's.
    """

    def __init__(self, function: Local, spec: ast.arguments, call: ast.Call, frame: Frame, outside: dict[int, str]) -> None:
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
        """A parameter, a variable of the function, or a name from around it."""
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
        """Anything else, but what has names of its own."""
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr)):
            self.failed = True
        return super().generic_visit(node)
