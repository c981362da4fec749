"""Groups iterators, and pairs of those of images and masks, into pipelines; assigns each one to a split; what their data is."""

from __future__ import annotations

import ast
import posixpath
import re
from dataclasses import field
from typing import Any

from pipegen.frozen import dataclass
from pipegen.migrate.calls import form_of
from pipegen.migrate.homes import of_function
from pipegen.migrate.interpret import Collected
from pipegen.migrate.nodes import called
from pipegen.migrate.steps import Params, augments
from pipegen.migrate.values import Const, Flow, Frame, Generator, Table, Unknown, Zipped, origins_of, plain, same

_ROLES = {"training": "train", "validation": "validation"}


@dataclass(eq=False)
class Group:
    """The iterators of one pipeline."""

    parts: dict[str, Flow] = field(default_factory=dict)  # iterators by split, in the order train, validation, test
    fits: bool = False  # true if a call of `fit` takes them
    pairs: dict[str, Pair] = field(default_factory=dict)  # the parts with their masks by split, if they have masks
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
        return [*self.parts.values(), *(pair.mask for pair in self.pairs.values())]

    def split_of(self, flow: Flow) -> str:
        """The split that an iterator is."""
        return next(split for split, other in self.parts.items() if other is flow)


@dataclass(frozen=True, eq=False)
class Written:
    """A written spec."""

    group: Group
    file: str
    params: Params


def group_flows(found: Collected) -> list[Group]:
    """Groups the iterators of a file."""
    roles = {id(flow): _role(found, flow) for flow in found.flows}
    groups: list[Group] = []
    for pair in pairs_of(found):
        role = _role_of_pair(found, pair) or roles[id(pair.image)]
        home = next((g for g in groups if role not in g.parts and _go_together(g, pair)), None) or _added(groups)
        home.parts[role], home.pairs[role] = pair.image, pair
    for call in found.calls:
        if called(call.node) in ("fit", "fit_generator"):
            used = [u for u in found.uses if u.outer is call.node and u.frame is call.frame and u.kind == "model"]
            parts = {("validation" if u.name == "validation_data" else "train"): u.of for u in used if isinstance(u.of, Flow)}
            if parts:  # pairs have their own groups
                _join(groups, parts)
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
        order = ("train", "validation", "test")
        group.parts = {split: group.parts[split] for split in order if split in group.parts}
        group.pairs = {split: group.pairs[split] for split in order if split in group.pairs}
    return sorted(groups, key=lambda g: g.first.line)


def _added(groups: list[Group]) -> Group:
    groups.append(Group())
    return groups[-1]


def _go_together(group: Group, pair: Pair) -> bool:
    """True if a pair belongs to a group of pairs: from the same data if it takes a share, else of the same size."""
    first = next(iter(group.pairs.values()))
    if _size(first.image) != _size(pair.image):
        return False
    subsets = [p.image.get("subset") for p in (first, pair)]
    if None in subsets:
        return subsets == [None, None]
    one, other = ([(folder_of(f), data_key(f)) for f in (p.image, p.mask)] for p in (first, pair))
    return one == other


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


def _join(groups: list[Group], parts: dict[str, Flow]) -> None:
    """Adds the iterators of one `fit` to the group that has one of them, or to a new one."""
    if "train" in parts and len({flow.method for flow in parts.values()}) > 1:
        parts = {"train": parts["train"]}
    home = next((g for g in groups if any(g.parts.get(split) is flow for split, flow in parts.items())), None) or _added(groups)
    for split, flow in parts.items():
        home.parts.setdefault(split, flow)
    home.fits = True


def _fits(group: Group, flow: Flow, role: str) -> bool:
    if role in group.parts or group.method != flow.method or group.pairs:
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


UNLABELLED = (None, "input")
WITHOUT_CLASSES = ("raw", "other", "multi_output")  # class modes whose labels are numbers or several columns


def takes_share(flow: Flow) -> bool:
    """True if `subset` is less than all of the data, as far as known."""
    return not isinstance(flow.generator, Generator) or flow.generator.known("validation_split") not in (None, 0, False)


def class_mode(flow: Flow) -> Any:
    """Class mode of an iterator, in Keras' words; for `flow`, from its labels."""
    if flow.method == "flow":
        return "categorical" if form_of(flow.argument("y")) == "one-hot" else "sparse"
    return flow.get("class_mode", "categorical")


def weighted(flow: Flow) -> bool:
    """True if the examples have weights."""
    return flow.known({"flow": "sample_weight", "flow_from_dataframe": "weight_col"}.get(flow.method, "")) is not None


def folder_below(flow: Flow) -> str | None:
    """The one folder below `directory` that an iterator without labels reads; empty for all, `None` if unknown."""
    classes = flow.get("classes")
    if all_in_one(flow) or flow.known("classes") is None:
        return ""
    single = isinstance(classes, (list, tuple)) and len(classes) == 1 and isinstance(classes[0], str)
    return classes[0] if single else None


def names_folders(flow: Flow) -> bool:
    """True if an iterator reads only the folders in `classes`."""
    classes = flow.get("classes")
    named = isinstance(classes, (list, tuple)) and bool(classes) and all(isinstance(c, str) for c in classes)
    return flow.method == "flow_from_directory" and named and not all_in_one(flow)


def all_in_one(flow: Flow) -> bool:
    """True if a folder is read without classes: by `classes=['.']`, or as the only class of its parent."""
    classes = flow.get("classes")
    return flow.method == "flow_from_directory" and isinstance(classes, (list, tuple)) and list(classes) in (["."], [""])


_MASKS = re.compile(r"mask|annot|segm|(?:^|[^a-z])(?:label|gt(?:[^a-z]|$)|seg(?:[^a-z]|$))")  # names of iterators and folders of masks
_ALIKE = ("target_size", "batch_size", "seed", "shuffle", "subset")
_VALUES = ("rescale", "preprocessing_function", "dtype")
"""Arguments that may differ between images and masks, since they change values and not positions."""


@dataclass(frozen=True, eq=False)
class Pair:
    """The iterators of images and of their masks, and what joins them."""

    image: Flow
    mask: Flow
    zipped: Zipped


def pairs_of(found: Collected) -> list[Pair]:
    """Pairs of an image's and a mask's iterator with equal geometry; none for two images, of which neither is known to be a mask."""
    pairs = []
    for zipped in found.pairs:
        a, b = zipped.flows
        a_is, b_is = _is_mask(found, a, b), _is_mask(found, b, a)
        if a_is != b_is and _move_together(a, b):
            pairs.append(Pair(b, a, zipped) if a_is else Pair(a, b, zipped))
    return pairs


def _move_together(a: Flow, b: Flow) -> bool:
    """True if two iterators without labels draw the same numbers for their images."""
    if any(f.method != "flow_from_directory" or "**" in f.args or "class_mode" not in f.args for f in (a, b)):
        return False
    if any(f.known("class_mode") is not None or folder_of(f) is None for f in (a, b)):
        return False
    if a.get("seed") is None or any(not _equal(a, b, n) for n in _ALIKE):
        return False
    one, other = a.generator, b.generator
    if not isinstance(one, Generator) or not isinstance(other, Generator) or one.classes or other.classes:
        return False
    names = {*one.args, *other.args} - set(_VALUES)
    return "**" not in names and all(_equal(one, other, n) for n in names)


def _equal(a: Flow | Generator, b: Flow | Generator, name: str) -> bool:
    return same(a.argument(name) or Const(None), b.argument(name) or Const(None)) and not isinstance(a.known(name), Unknown)


def _is_mask(found: Collected, flow: Flow, other: Flow) -> bool:
    """True if an iterator, or a folder that it does not share with the other, is named like one of masks."""
    own, others = ((folder_of(f) or "").lower().split("/") for f in (flow, other))
    words = [found.name_of(flow).lower(), *(part for part in own if part not in others)]
    return any(_MASKS.search(word) for word in words)


def folder_of(flow: Flow) -> str | None:
    """Folder whose files an iterator without labels reads, if known."""
    folder, below = flow.known("directory"), folder_below(flow)
    if not isinstance(folder, str) or not folder or below is None:
        return None
    return posixpath.join(folder, below) if below else folder


def owner_of(group: Group, found: Collected) -> str | None:
    """Owner of the pipeline, so that every use of its iterators' members can reach it. Returns an empty text if a variable suffices, `self`
    if another method of the same class uses them, `None` if neither works."""
    home = of_function(group.first.frame)
    foreign = [of_function(u.frame) for f in group.flows for u in found.uses_of(f) if u.kind in ("member", "method")]
    foreign = [frame for frame in foreign if frame is not home]
    if not foreign or home.parent is None:
        return ""
    alike = all(frame.class_frame is not None and frame.class_frame is home.class_frame and _has_self(frame) for frame in foreign)
    return "self" if alike and _has_self(home) else None


def _has_self(frame: Frame) -> bool:
    args = getattr(frame.scope.node, "args", None)
    return isinstance(args, ast.arguments) and bool(args.args) and args.args[0].arg == "self"
