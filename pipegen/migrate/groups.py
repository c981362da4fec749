"""Groups iterators into pipelines, and assigns each one to a split; comprehensions and loops that make only one group's."""

from __future__ import annotations

import ast
from dataclasses import field
from typing import Any, cast

from pipegen.frozen import dataclass
from pipegen.migrate.interpret import Collected
from pipegen.migrate.known import certain, origins_of
from pipegen.migrate.nodes import Comprehension, called
from pipegen.migrate.pairs import Pair, folder_of, pairs_of
from pipegen.migrate.steps import Knob, augments
from pipegen.migrate.values import Flow, Generator, Table, Unknown, Zipped, plain

_ROLES = {"training": "train", "validation": "validation"}


@dataclass(eq=False)
class Group:
    """The iterators of one pipeline."""

    parts: dict[str, Flow] = field(default_factory=dict)  # iterators by split, in the order train, validation, test, predict
    fits: set[int] = field(default_factory=set)  # calls of `fit` that take them, by node id
    masks: dict[str, Flow] = field(default_factory=dict)  # iterators of the parts' masks by split, if they have masks
    zips: dict[str, Zipped] = field(default_factory=dict)  # the `zip` of each part's two iterators, by split
    drawn: bool = False  # true if code takes batches from the training iterator itself, and no `fit` takes it

    @property
    def first(self) -> Flow:
        """The training iterator, else the first one."""
        return self.parts.get("train") or next(iter(self.parts.values()))

    @property
    def method(self) -> str:
        """The method that makes all of them."""
        return self.first.method

    @property
    def flows(self) -> list[Flow]:
        """All of its iterators."""
        return [*self.parts.values(), *self.masks.values()]

    def split_of(self, flow: Flow) -> str:
        """The split that an iterator is."""
        return next(split for split, other in self.parts.items() if other is flow)


@dataclass(frozen=True, eq=False)
class Written:
    """A written spec."""

    group: Group
    file: str
    params: tuple[str, ...]
    knobs: tuple[Knob, ...] = ()  # those of them that are arguments of the constructor


def group_flows(found: Collected) -> list[Group]:
    """Groups the iterators of a file."""
    roles = {id(flow): _role(found, flow) for flow in found.flows}
    groups: list[Group] = []
    for pair in pairs_of(found):
        role = _role_of_pair(found, pair) or roles[id(pair.image)]
        home = next((g for g in groups if role not in g.parts and _go_together(g, pair)), None) or _added(groups)
        home.parts[role], home.masks[role], home.zips[role] = pair.image, pair.mask, pair.zipped
    for call in found.calls:
        if call.method in ("fit", "fit_generator"):
            used = [u for u in found.uses if u.outer is call.node and u.frame is call.frame and u.kind == "model"]
            parts = {("validation" if u.name == "validation_data" else "train"): u.of for u in used if isinstance(u.of, Flow)}
            if parts:  # pairs have their own groups
                _join(groups, parts, id(call.node))
    for flow in found.flows:
        if any(flow in g.flows for g in groups):
            continue
        role = roles[id(flow)]
        near = [g for g in groups if _fits(g, flow, role)]
        home = min(near, key=lambda g: abs(g.first.line - flow.line)) if near else _added(groups)
        home.parts[role] = flow
    for group in groups:
        train = group.parts.get("train") if not group.fits else None
        group.drawn = train is not None and (found.is_drawn_from(train) or any(u.kind == "loop" for u in found.uses_of(train)))
        order = ("train", "validation", "test", "predict")
        group.parts = {split: group.parts[split] for split in order if split in group.parts}
        group.masks = {split: group.masks[split] for split in order if split in group.masks}
    return sorted(groups, key=lambda g: g.first.line)


def _added(groups: list[Group]) -> Group:
    groups.append(Group())
    return groups[-1]


def _go_together(group: Group, pair: Pair) -> bool:
    """True if a pair belongs to a group of pairs: from the same data if it takes a share, else of the same size."""
    other = next(iter(group.parts))
    image, mask = group.parts[other], group.masks[other]
    if _size(image) != _size(pair.image):
        return False
    if image.get("subset") is None and pair.image.get("subset") is None:
        return True
    theirs = [(folder_of(f), data_key(f)) for f in (image, mask)]
    same_data = theirs == [(folder_of(f), data_key(f)) for f in (pair.image, pair.mask)]
    return same_data and None not in (image.get("subset"), pair.image.get("subset"))


def _role_of_pair(found: Collected, pair: Pair) -> str:
    """Split of a pair, from its uses; empty if uncertain."""
    subset = pair.image.get("subset")
    if isinstance(subset, str) and subset in _ROLES:
        return _ROLES[subset]
    uses = [u for u in found.uses_of(pair.zipped) if u.kind == "model"]
    if any(u.name == "validation_data" for u in uses):
        return "validation"
    methods = {called(u.outer) for u in uses}
    if methods & {"fit", "fit_generator"}:
        return "train"
    return "test" if methods else _by_name(found.name_of(pair.zipped))


def _join(groups: list[Group], parts: dict[str, Flow], call: int) -> None:
    """Adds the iterators of one `fit` to the group that has one of them, or to a new one."""
    if "train" in parts and len({flow.method for flow in parts.values()}) > 1:
        parts = {"train": parts["train"]}
    home = next((g for g in groups if any(g.parts.get(split) is flow for split, flow in parts.items())), None) or _added(groups)
    for split, flow in parts.items():
        home.parts.setdefault(split, flow)
    home.fits.add(call)


def _fits(group: Group, flow: Flow, role: str) -> bool:
    if role in group.parts or group.method != flow.method or group.masks:
        return False
    other = group.first
    if flow.method == "flow_from_dataframe" and _is_bare(other) != _is_bare(flow):
        return False
    if role in ("train", "validation") and flow.get("subset") is not None:
        return data_key(other) == data_key(flow) and other.get("subset") is not None
    if role == "train" and group.fits:
        return False
    if any(_is_share(f) for f in group.parts.values()) or _is_share(flow):
        return False
    return flow.method == "flow" or _size(other) == _size(flow)


def _is_bare(flow: Flow) -> bool:
    """True if the iterator reads no labels of a table's rows, so that they need a spec of their own."""
    return flow.known("class_mode", "") in (None, "input")


def _is_share(flow: Flow) -> bool:
    """True if an iterator takes a share of its data, by `subset` or `train_test_split`, which becomes `splits`."""
    table = flow.argument("dataframe") if flow.method == "flow_from_dataframe" else None
    return flow.get("subset") is not None or (isinstance(table, Table) and table.split is not None)


def _size(flow: Flow) -> Any:
    return flow.get("target_size", (256, 256))


def data_key(flow: Flow) -> Any:
    """Key that is equal for iterators of the same data."""
    name = {"flow": "x", "flow_from_directory": "directory", "flow_from_dataframe": "dataframe"}[flow.method]
    if name not in flow.args:
        return None
    given = flow.args[name].value
    if isinstance(given, Table):
        return ("table", given.path, given.part, given.origins)
    value = plain(given)
    if isinstance(value, Unknown):
        return ast.dump(flow.args[name].node)
    return (value, origins_of(given)) if origins_of(given) else value


def _role(found: Collected, flow: Flow) -> str:
    """Split of an iterator, from its `subset`, its uses or its name."""
    subset = flow.get("subset")
    if isinstance(subset, str) and subset in _ROLES:
        return _ROLES[subset]
    used = {(u.name, called(u.outer)) for u in found.uses_of(flow) if u.kind == "model"}
    if any(method in ("fit", "fit_generator") and name != "validation_data" for name, method in used):
        return "train"
    if any(name == "validation_data" for name, _ in used):
        return "validation"
    named = _by_name(found.name_of(flow)) or _by_name(flow.known("directory"))
    if used:
        return "test" if named != "validation" else "validation"
    if named:
        return named
    augmented = isinstance(flow.generator, Generator) and augments(flow.generator)
    return "test" if flow.get("shuffle") is False and not augmented else "train"


def _by_name(name: object) -> str:
    """Split that a name suggests; empty if none, or if it is not a text."""
    words = {"train": "train", "val": "validation", "dev": "validation", "test": "test"}
    return next((role for word, role in words.items() if isinstance(name, str) and word in name.lower()), "")


@dataclass(frozen=True)
class Display:
    """One comprehension, or one call in a loop."""

    node: Comprehension | ast.For | ast.Call  # the comprehension, or the loop
    element: ast.expr  # the call in it that makes each iterator
    flows: tuple[Flow, ...]  # the iterators, in order
    keys: tuple[str | int, ...] | None  # their keys in a dict; for a loop, the values of its variable
    name: str = ""  # the variable of a loop
    is_tuple: bool = False  # true for a call that returns a tuple


def displays_of(found: Collected, group: Group, left_out: list[Flow]) -> list[Display]:
    """Comprehensions that make only iterators of a group, each one a split of its own."""
    displays: dict[int, Display] = {}
    for flow in () if group.masks else group.parts.values():
        node, display = flow.frame.scope.node, None
        if isinstance(node, Comprehension):
            display = _display(found, node, flow)
        elif isinstance(node, ast.For):
            display = _in_loop(found, node, flow)
        if display is not None and all(f in group.parts.values() and f not in left_out for f in display.flows):
            displays.setdefault(id(display.element), display)
    return list(displays.values())


def _in_loop(found: Collected, node: ast.For, flow: Flow) -> Display | None:
    """A call in a loop of its function whose rounds a loop variable tells apart."""
    flows = tuple(f for f in found.flows if f.node is flow.node)
    frames = found.evaluator.rounds.get((id(node), id(flow.frame.parent)))
    if frames is None or any(f.frame not in frames for f in flows):
        return None
    for name in (n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)):
        keys = tuple(certain(f.frame.args.get(name)) for f in flows)
        known = all(isinstance(key, (str, int)) for key in keys)
        if known and len(set(keys)) == len(keys) and len(flow.frame.scope.bindings.get(name, [])) == 1:
            return Display(node, flow.node, flows, keys, name)
    return None


def _display(found: Collected, node: Comprehension, flow: Flow) -> Display | None:
    frames = found.evaluator.rounds.get((id(node), id(flow.frame.parent)))
    if frames is None or isinstance(node, ast.SetComp):
        return None
    element = node.value if isinstance(node, ast.DictComp) else node.elt
    flows = tuple(found.evaluator.value(element, frame) for frame in frames)
    made = [f for f in found.flows if f.node is element]
    if not all(isinstance(f, Flow) and f.node is element for f in flows) or len(made) != len(flows):
        return None
    keys = tuple(plain(found.evaluator.value(node.key, frame)) for frame in frames) if isinstance(node, ast.DictComp) else None
    return Display(node, element, cast("tuple[Flow, ...]", flows), keys)
