"""Features aligned with another one: a mask or a depth map moves with its image, and images aligned with none draw for themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.ops.acting import acted_on, anchor
from pipegen.ops.arguments.geometry import ConstantFill, Fill
from pipegen.ops.base import GeometricTransform
from pipegen.ops.families.crops import ItemCrop
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.kinds.registry import kind_of, kinds
from pipegen.ops.stage import Computes, Path, Stage, StepRef
from pipegen.ops.transform import Transform
from pipegen.plan import stages as s
from pipegen.plan.nodes import Element, Kernel, Node
from pipegen.plan.outputs import meant_feature
from pipegen.spec.mismatch import UnknownStep
from pipegen.types import FLOATING, INTEGER_RANGES, ElementType, FeatureType


def anchors(type_: ElementType) -> tuple[str, ...]:
    """The features that draw for themselves, in order."""
    return tuple(name for name, t in type_.items() if kind_of(t).pictured and anchor(type_, name) == name)


def followed(type_: ElementType) -> frozenset[str]:
    """Returns the features that others are aligned with."""
    return frozenset(anchor(type_, name) for name, _ in type_.items() if anchor(type_, name) != name)


def left_behind(step: Transform, type_: ElementType) -> str | None:
    """A feature that a step narrowed to one feature would leave behind: it is aligned with the same image, and the step moves pixels at
    random, or by a matrix."""
    if (
        step.feature is None
        or step.feature not in type_
        or not all(step.acts_on(kind) for kind in kinds() if kind.pictured)
        or not (step.random or isinstance(step, GeometricTransform))
    ):
        return None
    home = anchor(type_, step.feature)
    return next((name for name, _ in type_.items() if name != step.feature and anchor(type_, name) == home), None)


def in_order(type_: ElementType, leading: Collection[str] = ()) -> tuple[str, ...]:
    """Returns every feature, aligned ones first: its file is still at hand then. Of these, those by which a step chooses its window come
    before what is cut to that, and boxes before what else there is."""

    def place(name: str) -> tuple[bool, bool, bool]:
        return anchor(type_, name) == name, name not in leading, kind_of(type_[name]).crop_guide != "boxes"

    return tuple(sorted((name for name, _ in type_.items()), key=place))


def leader(step: ItemCrop, type_: ElementType, image: str, home: Callable[[str], str]) -> str | None:
    """Returns the feature on an image that a crop chooses its window by; `None` where there is none.

    Args:
        step: The crop.
        type_: The type of an example.
        image: The feature that it crops.
        home: Names the feature of a record that one is a view of.
    """
    wanted = step.leader()
    able = [n for n, t in type_.items() if anchor(type_, n) == image and kind_of(t).crop_guide in step.led_by and wanted in (None, home(n))]
    return min(able, key=lambda name: step.led_by.index(kind_of(type_[name]).crop_guide), default=None)


def _wrong_leader(step: Transform, type_: ElementType) -> OpError | None:
    """Returns what is wrong with the feature that a crop is to choose its window by."""
    wanted = step.leader() if isinstance(step, ItemCrop) else None
    if wanted is None or not isinstance(step, ItemCrop):
        return None
    if wanted not in type_:
        return OpError("PG217", f"there is no feature `{wanted}`", field="around", help=meant_feature(wanted, type_))
    if kind_of(type_[wanted]).crop_guide in step.led_by:
        return None
    able = sorted(kind.name for kind in kinds() if kind.crop_guide in step.led_by)
    message = f"`{step.op}` has no window around `{wanted}`, which is a feature of kind `{type_[wanted].kind}`"
    return OpError("PG203", message, field="around", help=f"name one of kind {', '.join(f'`{name}`' for name in able)}, or none")


def chosen(ref: StepRef, type_: ElementType, written: Sequence[Transform]) -> tuple[tuple[str, ...], OpError | None]:
    """Returns the features that a use of a step acts on, of those that enter it, and what is wrong with that; `written` are the spec's
    steps."""
    step = ref.step
    wrong = _wrong_leader(step, type_)
    if wrong is not None:
        return (), wrong
    if step.feature is not None:
        if step.feature not in type_:
            help_ = meant_feature(step.feature, type_)
            return (), OpError("PG217", f"there is no feature `{step.feature}`", field="feature", help=help_)
        left = left_behind(step, type_)
        if left is None:
            return (step.feature,), None
        message = f"`{step.op}` moves `{step.feature}` alone, and `{left}` belongs to it"
        return (step.feature,), OpError("PG203", message, help="leave `feature` out: a mask moves with its image")
    found = acted_on(step, type_)
    if ref.path == ("transforms",):  # the step that the spec does not write leaves alone what another one decodes
        found = tuple(name for name in found if name not in {t.feature for t in written if isinstance(t, DecodeTransform)})
    if found or isinstance(step, UnknownStep):
        return found, None
    message = f"`{step.op}` works on features of kind {' or '.join(f'`{kind}`' for kind in step.known_kinds())}, and there is none"
    return (), OpError("PG203", message, help="leave the step out")


def own_draws(ref: StepRef, offset: int, name: str) -> StepRef:
    """The use of a step on another image than the first of those that draw for themselves: its numbers begin at `offset`, and its name
    keys them beside the step's id. Without a name it is the first."""
    if not name:
        return ref
    choice = ref.choice and replace(ref.choice, policy=own_draws(ref.choice.policy, offset, name))
    return replace(ref, start=ref.start + offset, id=f"{ref.id}@{name}", choice=choice)


def marked(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Returns the nodes, of one stage each, in which every stage says whether its floats are rounded later."""
    exact: dict[int, Node] = {place: replace(node, stages=(replace(stage, exact=True),)) for place, node, stage in _meant(nodes)}
    return tuple(exact.get(place, node) for place, node in enumerate(nodes))


def unmarked(nodes: Sequence[Node]) -> list[Stage]:
    """Returns the stages, in nodes of one stage each, that do not say that their floats are rounded later."""
    return [stage for _, _, stage in _meant(nodes) if not stage.exact]


def _meant(nodes: Sequence[Node]) -> Iterator[tuple[int, Element | Kernel, Computes]]:
    """Yields the stages that compute floats which are rounded later, or that round them, with their nodes and the places of those; the
    last one first."""
    rounded: set[str] = set()
    for place in range(len(nodes) - 1, 0, -1):
        node = nodes[place]
        if not isinstance(node, (Element, Kernel)):
            continue
        (stage,) = node.stages
        feature = stage.feature
        if isinstance(stage, s.Fork):
            rounded |= {feature} if rounded & {*stage.names} else set()
            continue
        before, after = _dtype(nodes[place - 1].out, feature), _dtype(node.out, feature)
        if before in FLOATING and after not in FLOATING:
            rounded.add(feature)
        computing = stage.stage if isinstance(stage, s.Branch) else stage
        if feature in rounded and isinstance(computing, Computes):
            yield place, node, computing
        if before not in FLOATING:
            rounded.discard(feature)


def _dtype(edge: ElementType, feature: str) -> str | None:
    known = edge.get(feature)
    return None if known is None else known.dtype


def another_fill(ref: StepRef, before: tuple[Fill, str] | None) -> OpError:
    """Returns the lint on a geometric step that does not fill or read as those before it, given by fill and interpolation."""
    field = "fill" if before is None or getattr(ref.step, "fill", None) != before[0] else "interpolation"
    message = f"`{ref.step.op}` has another `{field}` than the geometric steps before it, so the image is resampled once more"
    help_ = ("give the steps of one run the same `fill` and `interpolation`", write("exact: true", "arguments", "or write {}"))
    return OpError("PG502", message, field=field, help=help_)


class Fills:
    """The images that enter each use of a step that fills with a constant. A mask is filled with its `ignore`, and 0 is nothing in
    every unit, so neither is of interest."""

    def __init__(self) -> None:
        self._met: dict[tuple[Path, int], tuple[StepRef, float, dict[str, FeatureType]]] = {}

    def note(self, ref: StepRef, feature: str, x: FeatureType) -> None:
        """Keep what enters a use of a step."""
        fill = getattr(ref.step, "fill", None)
        if kind_of(x).levels and isinstance(fill, ConstantFill) and fill.constant:
            self._met.setdefault((ref.path, ref.start), (ref, fill.constant, {}))[2][feature] = x

    def apart(self, record: ElementType) -> Iterator[tuple[StepRef, OpError]]:
        """Returns the uses whose constant means something else on an image than on one aligned with it."""
        for ref, value, images in self._met.values():
            for feature, x in images.items():
                home = anchor(record, feature)
                if home != feature and home in images and not _alike(images[home], x):
                    message = (
                        f"`{ref.step.op}` fills with {value:g}, and `{home}` ({images[home]}) and `{feature}` ({x}), "
                        "which is aligned with it, have different units"
                    )
                    help_ = "`{constant: 0}` means nothing in both, and `reflect` shows what is there"
                    yield ref, OpError("PG207", message, field="fill", help=help_)


def _alike(a: FeatureType, b: FeatureType) -> bool:
    """Returns whether a number means the same in two images: both hold the same whole numbers, or values of one range."""
    return a.interval == b.interval or (a.dtype == b.dtype and a.dtype in INTEGER_RANGES)
