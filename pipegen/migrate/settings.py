"""Defaults that the command line or the environment may change: their params in the spec, and the remarks about them."""

from __future__ import annotations

import ast

from pipegen.migrate.amounts import Knob
from pipegen.migrate.findings import Findings
from pipegen.migrate.groups import Group
from pipegen.migrate.nodes import Row
from pipegen.migrate.steps import RANDOM
from pipegen.migrate.values import Flow, Generator, Seq, Table, Unknown, Value, origins_of, plain

_ONCE = ("batch_size", "target_size", "seed", "color_mode", "interpolation", "keep_aspect_ratio", "class_mode")
"""Arguments of iterators that a spec has once for all splits."""
_UNWRITTEN = ("save_to_dir", "save_prefix", "save_format", "validate_filenames", "ignore_class_split")
"""Arguments of iterators that have no form in a spec."""


def report_settings(group: Group, params: tuple[str, ...], knobs: tuple[Knob, ...], findings: Findings) -> None:
    """Reports the default of each argument that may change at run time, and its place in the spec."""
    told: set[tuple[str, ...]] = set()
    things: dict[int, Flow | Generator] = {id(f): f for f in group.flows}
    things.update({id(f.generator): f.generator for f in group.flows if isinstance(f.generator, Generator)})
    for thing in things.values():
        for name, argument in thing.args.items():
            origins = origins_of(argument.value)
            own = [knob.param for knob in knobs if knob.argument == name and thing is group.first.generator]
            here = params_of(group, thing, name, params) if isinstance(thing, Flow) else own
            key = (name, *origins, *(here if name in ("directory", "dataframe") else ()))
            if not origins or key in told or name in _UNWRITTEN:
                continue
            told.add(key)
            message = f"`{name}` is {_shown(argument.value)} unless {' or '.join(origins)} says otherwise"
            findings.add("PG613", argument.node.lineno, message, _help(group, thing, name, here))


def _help(group: Group, thing: Flow | Generator, name: str, here: list[str]) -> str:
    """Place of an argument in the spec, or what replaces it there."""
    if here:
        given = ", ".join(f'"{param}": …' for param in here)
        return f"the spec has it as the default of `{'` and `'.join(here)}`: `params={{{given}}}` gives another"
    own = thing is group.first or thing is group.first.generator
    if not own and isinstance(thing, Generator) and name in RANDOM:
        return "the spec augments the training split only, so it does not have this value"
    if not own and (isinstance(thing, Generator) or name in _ONCE):
        model = group.first.generator if isinstance(thing, Generator) and isinstance(group.first.generator, Generator) else group.first
        return f"the spec has one value for every split, that of line {model.line}"
    return "the spec has this value: if you run the code with another one, change it there"


def params_of(group: Group, flow: Flow, argument: str, params: tuple[str, ...]) -> list[str]:
    """Params of a spec that hold an argument of one of its iterators."""
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
    """Iterator whose seed is the spec's."""
    for flow in group.parts.values():
        seed = flow.get("seed")
        if isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0:
            return flow
    return None


def is_square(flow: Flow) -> bool:
    """True if the images of an iterator are square, whatever its options are at run time."""
    if "target_size" not in flow.args or sides(flow) is not None:
        return True
    argument = flow.args["target_size"]
    value, known = argument.value, plain(argument.value)
    if isinstance(known, Unknown):
        return isinstance(argument.node, Row) and len(argument.node.elts) != 2
    if not isinstance(known, (list, tuple)) or len(known) < 2 or known[0] != known[1]:
        return not isinstance(known, (list, tuple)) or len(known) < 2
    return not origins_of(value) or (isinstance(value, Seq) and value.items[0] is value.items[1])


def sides(flow: Flow) -> ast.expr | None:
    """Expression for both height and width, if there is one."""
    size = flow.args["target_size"].node if "target_size" in flow.args else None
    if not isinstance(size, Row) or len(size.elts) != 2 or ast.dump(size.elts[0]) != ast.dump(size.elts[1]):
        return None
    return size.elts[0]


def _shown(value: Value) -> str:
    known = value.path if isinstance(value, Table) else plain(value)
    return "known" if isinstance(known, Unknown) else repr(str(known) if isinstance(known, str) else known)
