"""Which iterators belong to one pipeline, and which of its splits each of them is."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipegen.migrate.pairs import pairs_of
from pipegen.migrate.values import Flow, Generator, Table, Unknown, plain

if TYPE_CHECKING:
    from pipegen.migrate.interpret import Collected

_ROLES = {"training": "train", "validation": "validation"}


@dataclass(eq=False)
class Group:
    """The iterators of one pipeline.

    Attributes:
        parts: By split, in the order train, validation, test, predict.
        fits: The calls of `fit` that take them, by the id of the node.
        mask: The iterator of the masks of the only part, if it has masks.
    """

    parts: dict[str, Flow] = field(default_factory=dict)
    fits: set[int] = field(default_factory=set)
    mask: Flow | None = None

    @property
    def first(self) -> Flow:
        """The training iterator, or the first there is."""
        return self.parts.get("train") or next(iter(self.parts.values()))

    @property
    def method(self) -> str:
        """The method that all of them are made by."""
        return self.first.method

    def split_of(self, flow: Flow) -> str:
        """The split that an iterator is."""
        return next(split for split, other in self.parts.items() if other is flow)


def group_flows(found: Collected) -> list[Group]:
    """Put the iterators of a file together."""
    roles = {id(flow): _role(found, flow) for flow in found.flows}
    groups = [Group({roles[id(image)]: image}, mask=mask) for image, mask in pairs_of(found)]
    for call in found.calls:
        if call.method in ("fit", "fit_generator"):
            used = [(u.name, u.flow) for u in found.uses if u.outer is call.node and u.frame is call.frame and u.kind == "model"]
            _join(groups, {("validation" if name == "validation_data" else "train"): flow for name, flow in used}, id(call.node))
    for flow in found.flows:
        if any(flow in (*g.parts.values(), g.mask) for g in groups):
            continue
        role = roles[id(flow)]
        near = sorted((g for g in groups if _fits(g, flow, role)), key=lambda g: abs(g.first.line - flow.line))
        home = near[0] if near else None
        if home is None:
            groups.append(Group({role: flow}))
        else:
            home.parts[role] = flow
    for group in groups:
        order = ("train", "validation", "test", "predict")
        group.parts = {split: group.parts[split] for split in order if split in group.parts}
    return sorted(groups, key=lambda g: g.first.line)


def _join(groups: list[Group], parts: dict[str, Flow], call: int) -> None:
    """Put the iterators of one `fit` into the group that has one of them, or into a new one."""
    train, validation = parts.get("train"), parts.get("validation")
    if train is not None and validation is not None and train.method != validation.method:
        parts = {"train": train}
    home = next((g for g in groups if any(g.parts.get(split) is flow for split, flow in parts.items())), None)
    if home is None:
        home = Group()
        groups.append(home)
    for split, flow in parts.items():
        home.parts.setdefault(split, flow)
    home.fits.add(call)


def _fits(group: Group, flow: Flow, role: str) -> bool:
    if role in group.parts or group.method != flow.method or group.mask is not None:
        return False
    other = group.first
    if role in ("train", "validation") and flow.get("subset") is not None:
        return data_key(other) == data_key(flow) and other.get("subset") is not None
    if role == "train" and group.fits:
        return False
    if any(_is_share(f) for f in group.parts.values()) or _is_share(flow):
        return False
    return flow.method == "flow" or _size(other) == _size(flow)


def _is_share(flow: Flow) -> bool:
    """Whether an iterator takes a part of its data, which a spec says with `splits`, and beside them no other data."""
    table = flow.argument("dataframe") if flow.method == "flow_from_dataframe" else None
    return flow.get("subset") is not None or (isinstance(table, Table) and table.split is not None)


def _size(flow: Flow) -> Any:
    return flow.get("target_size", (256, 256))


def data_key(flow: Flow) -> Any:
    """What tells whether two iterators read the same data."""
    name = {"flow": "x", "flow_from_directory": "directory", "flow_from_dataframe": "dataframe"}[flow.method]
    if name not in flow.args:
        return None
    given = flow.args[name].value
    if isinstance(given, Table):
        return ("table", given.path, given.part)
    value = plain(given)
    return ast.dump(flow.args[name].node) if isinstance(value, Unknown) else value


def _role(found: Collected, flow: Flow) -> str:
    """The split that an iterator is, by its `subset`, by what it is used for, or by its name."""
    subset = flow.get("subset")
    if isinstance(subset, str) and subset in _ROLES:
        return _ROLES[subset]
    used = {(u.name, getattr(getattr(u.outer, "func", None), "attr", "")) for u in found.uses_of(flow) if u.kind == "model"}
    if any(method in ("fit", "fit_generator") and name != "validation_data" for name, method in used):
        return "train"
    if any(name == "validation_data" for name, _ in used):
        return "validation"
    named = _by_name(found.name_of(flow)) or _by_name(_text(plain(flow.argument("directory"))))
    if used:
        return "test" if named != "validation" else "validation"
    if named:
        return named
    return "train" if _augments(flow.generator) else "test" if flow.get("shuffle") is False else "train"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _by_name(name: str) -> str:
    lowered = name.lower()
    return next(
        (role for word, role in (("train", "train"), ("val", "validation"), ("dev", "validation"), ("test", "test")) if word in lowered), ""
    )


def _augments(generator: object) -> bool:
    from pipegen.migrate.steps import augments

    return isinstance(generator, Generator) and augments(generator)
