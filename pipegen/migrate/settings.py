"""Defaults that the command line or the environment may change: which param of the spec each is, and what is said about them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pipegen.migrate.values import Flow, Generator, Seq, Table, Unknown, Value, origins_of, plain

if TYPE_CHECKING:
    from pipegen.migrate.findings import Findings
    from pipegen.migrate.groups import Group


def report_settings(group: Group, params: tuple[str, ...], findings: Findings) -> None:
    """Say of each argument that may be another at run time what its default is, and where the spec has it."""
    told: set[tuple[str, ...]] = set()
    things: dict[int, Flow | Generator] = {id(f): f for f in group.flows}
    things.update({id(f.generator): f.generator for f in group.flows if isinstance(f.generator, Generator)})
    for thing in things.values():
        for name, argument in thing.args.items():
            origins = origins_of(argument.value)
            here = params_of(group, thing, name, params) if isinstance(thing, Flow) else []
            key = (name, *origins, *(here if name in ("directory", "dataframe") else ()))
            if not origins or key in told:
                continue
            told.add(key)
            message = f"`{name}` is {_shown(argument.value)} unless {' or '.join(origins)} says otherwise"
            help_ = "the spec has this value: put another there where the code is run with another"
            if here:
                given = ", ".join(f'"{param}": …' for param in here)
                help_ = f"the spec has it as the default of `{'` and `'.join(here)}`: `params={{{given}}}` gives another"
            findings.add("PG613", argument.node.lineno, message, help_)


def params_of(group: Group, flow: Flow, argument: str, params: tuple[str, ...]) -> list[str]:
    """The params of a spec that hold an argument of one of its iterators."""
    split = next((s for s, f in (*group.parts.items(), *group.masks.items()) if f is flow), "")
    if argument == "directory":
        what = "masks" if flow in group.masks.values() else "images"
        names = [what, f"{split}_{what}"] if group.masks or flow.method == "flow_from_dataframe" else ["data", split]
    elif argument == "dataframe":
        names = ["table", f"{split}_table"]
    elif argument == "seed":
        names = ["seed"] if flow is seeded_flow(group) else []
    elif flow is group.first:
        names = {"target_size": ["size", "height", "width"], "batch_size": ["batch"]}.get(argument, [])
    else:
        names = []
    return [name for name in names if name in params]


def seeded_flow(group: Group) -> Flow | None:
    """The iterator whose seed is the spec's."""
    for flow in group.parts.values():
        seed = flow.get("seed")
        if isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0:
            return flow
    return None


def is_square(flow: Flow) -> bool:
    """Whether the images of an iterator are as high as they are wide, whatever is said at run time."""
    if "target_size" not in flow.args or sides(flow) is not None:
        return True
    argument = flow.args["target_size"]
    value, known = argument.value, plain(argument.value)
    if isinstance(known, Unknown):
        return not isinstance(argument.node, (ast.Tuple, ast.List)) or len(argument.node.elts) != 2
    if not isinstance(known, (list, tuple)) or len(known) < 2 or known[0] != known[1]:
        return not isinstance(known, (list, tuple)) or len(known) < 2
    return not origins_of(value) or (isinstance(value, Seq) and value.items[0] is value.items[1])


def sides(flow: Flow) -> ast.expr | None:
    """The expression that is height and width alike, if there is one."""
    size = flow.args["target_size"].node if "target_size" in flow.args else None
    if not isinstance(size, (ast.Tuple, ast.List)) or len(size.elts) != 2 or ast.dump(size.elts[0]) != ast.dump(size.elts[1]):
        return None
    return size.elts[0]


def _shown(value: Value) -> str:
    known = value.path if isinstance(value, Table) else plain(value)
    return "known" if isinstance(known, Unknown) else repr(str(known) if isinstance(known, str) else known)
