"""Functions and loops that make and use iterators repeatedly: their own form is migrated, equal for each call.

`extract_features(train_dir); extract_features(test_dir)` stays as it is; the function builds one pipeline, with the folder as a param.
"""

from __future__ import annotations

import ast

from pipegen.migrate.collected import Collected
from pipegen.migrate.displays import displays_of
from pipegen.migrate.groups import Group, group_flows
from pipegen.migrate.hoisting import hoisted
from pipegen.migrate.homes import of_function, up_to_function
from pipegen.migrate.interpret import collect
from pipegen.migrate.refusals import owner_of
from pipegen.migrate.steps import RANDOM
from pipegen.migrate.values import Argument, Flow, Frame, Generator, same

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
    if group.masks or not shared or all(id(flow.node) in whole for flow in shared):
        return []
    if not all(_alike(flow, other) for flow in shared for other in found.flows if other.node is flow.node):
        return []
    inside = [node for node in (_function_of(found, flow) for flow in shared) if node is not None]
    if inside:
        return inside
    parts = any(f.node is g.node for f in group.flows for g in group.flows if f is not g)
    if parts or hoisted(found, group, needed=owner_of(group, found) is None) is not None:
        return []  # the calls, or the rounds, are parts of one pipeline
    return [node for node in (_loop_of(found, flow) for flow in shared) if node is not None]


def _alike(flow: Flow, other: Flow) -> bool:
    """True if two iterators of the same code differ only in values that the call of `build` can pass."""
    one, two = flow.generator, other.generator
    if not _equal_but(flow.args, other.args, _GIVEN):
        return False
    if not isinstance(one, Generator) or not isinstance(two, Generator):
        return one is two
    return one is two or (one.node is two.node and _equal_but(one.args, two.args, _KNOBS))


def _equal_but(one: dict[str, Argument], other: dict[str, Argument], names: tuple[str, ...]) -> bool:
    """True if arguments are equal, apart from those of some names."""
    if set(one) != set(other):
        return False
    return all(same(one[n].value, other[n].value) or one[n].value is other[n].value for n in one if n not in names)


def _function_of(found: Collected, flow: Flow) -> ast.AST | None:
    """Function that makes an iterator in each call and has all of its uses."""
    function, uses = of_function(flow.frame), found.uses_of(flow)
    if not uses or function.parent is None or any(of_function(u.frame) is not function for u in uses):
        return None
    return None if id(flow) in found.sites else function.scope.node


def _loop_of(found: Collected, flow: Flow) -> ast.AST | None:
    """Loop whose rounds make and use an iterator, or call the function that does."""
    frames: list[Frame] = [flow.frame, *(frame for _, frame in reversed(found.sites.get(id(flow), [])))]
    for frame in frames if found.uses_of(flow) else ():
        loop = next((f.scope.node for f in up_to_function(frame) if isinstance(f.scope.node, ast.For)), None)
        if loop is not None:
            return loop
    return None
