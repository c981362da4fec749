"""Alignment of features: a mask or a depth map moves with its image; an image that is aligned with no other has its own draws."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.ops.arguments.geometry import ConstantFill, Fill
from pipegen.ops.families.combining import CombiningTransform, acted_on, anchor
from pipegen.ops.families.crops import ItemCrop, window_name
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.kinds.base import Levels, Timeline, Values, having, kind_of, kinds
from pipegen.ops.stage import Computes, Path, Stage, StepRef
from pipegen.ops.step_bases import GeometricTransform
from pipegen.ops.transform import Transform
from pipegen.plan import stages as s
from pipegen.plan.nodes import Element, Kernel, Node
from pipegen.plan.outputs import meant_feature
from pipegen.spec.drafts import UnknownStep
from pipegen.types import FLOATING, INTEGER_RANGES, ElementType, FeatureType

Act = tuple[StepRef, tuple[str, ...]]  # a use of a step, and the features that it acts on


def anchors(type_: ElementType) -> tuple[str, ...]:
    """The features with draws of their own, in order."""
    return tuple(name for name in having(type_, Values) if anchor(type_, name) == name)


def left_behind(step: Transform, type_: ElementType) -> str | None:
    """A feature that would no longer match its image, since `feature` narrows a step that moves pixels to another one."""
    if step.feature is None or step.feature not in type_ or not (step.random or isinstance(step, GeometricTransform)):
        return None
    home = anchor(type_, step.feature)
    if step.feature != home and not (step.reaches(type_[step.feature]) or isinstance(step, CombiningTransform)):
        return None  # it does not move with the others
    near = ((name, t) for name, t in type_.items() if name != step.feature and anchor(type_, name) == home)
    if isinstance(step, CombiningTransform):
        return next((name for name, _ in near), None)
    in_time = step.feature == home  # what happens in a sound moves whenever the sound does
    return next((name for name, t in near if step.reaches(t) and not (in_time and kind_of(t).has(Timeline))), None)


def in_order(type_: ElementType, leading: Collection[str] = ()) -> tuple[str, ...]:
    """Sorts features into the order of planning: aligned ones before their image, whose file is still encoded then.

    Among them come first the `leading` ones, by which a crop chooses its window, and then boxes.
    """

    def place(name: str) -> tuple[bool, bool, bool]:
        return anchor(type_, name) == name, name not in leading, not kind_of(type_[name]).guides("boxes")

    return tuple(sorted((name for name, _ in type_.items()), key=place))


class Guides:
    """The features that guide crops, which choose windows by them; `home` maps a view to the feature of the record."""

    def __init__(self, home: Callable[[str], str]) -> None:
        self._home = home
        self._windows: set[str] = set()

    def of(self, ref: StepRef, features: tuple[str, ...], type_: ElementType) -> dict[str, str | None]:
        """Maps each image that a crop cuts to the feature that guides it, if any."""
        if not isinstance(ref.step, ItemCrop):
            return {}
        return {image: self._guide(ref.step, image, type_) for image in (anchor(type_, feature) for feature in features)}

    def _guide(self, step: ItemCrop, image: str, type_: ElementType) -> str | None:
        lying = [name for name in type_ if anchor(type_, name) == image and step.leader() in (None, self._home(name))]
        return next((name for form in step.led_by for name in lying if kind_of(type_[name]).guides(form)), None)

    def leading(self, acts: list[Act], type_: ElementType) -> set[str]:
        """The features that guide a crop of a run."""
        return {name for ref, features in acts for name in self.of(ref, features, type_).values() if name is not None}

    def parts(self, acts: list[Act], type_: ElementType) -> Iterator[list[Act]]:
        """Splits a run so that one feature guides all crops of an image."""
        part: list[Act] = []
        leading: dict[str, str | None] = {}
        for ref, features in acts:
            own = self.of(ref, features, type_)
            if any(leading.get(image, feature) != feature for image, feature in own.items()):
                yield part
                part, leading = [], {}
            part.append((ref, features))
            leading |= own
        yield part

    def decided(self, ref: StepRef) -> bool:
        """Tests if the window of a crop is chosen."""
        return window_name(ref) in self._windows

    def claim(self, ref: StepRef, feature: str, type_: ElementType) -> bool:
        """Claims the choice of a crop's window for a feature; returns False if it is chosen, or if another feature guides the crop."""
        if self.decided(ref) or feature not in self.of(ref, (feature,), type_).values():
            return False
        self._windows.add(window_name(ref))
        return True


def _wrong_leader(step: Transform, type_: ElementType) -> OpError | None:
    if not isinstance(step, ItemCrop) or (wanted := step.leader()) is None:
        return None
    if wanted not in type_:
        return OpError("PG217", f"unknown feature `{wanted}`", field="around", help=meant_feature(wanted, type_))
    if kind_of(type_[wanted]).guides(*step.led_by):
        return None
    able = sorted(kind.name for kind in kinds() if kind.guides(*step.led_by))
    message = f"`{step.op}` cannot crop around `{wanted}`, a feature of kind `{type_[wanted].kind}`"
    help_ = f"name a feature of kind {', '.join(f'`{name}`' for name in able)}, or leave `around` out"
    return OpError("PG203", message, field="around", help=help_)


def chosen(ref: StepRef, type_: ElementType, written: Sequence[Transform]) -> tuple[tuple[str, ...], OpError | None]:
    """Selects the features that a use of a step acts on, and the error in that choice, if any; `written` are all steps of the spec."""
    step = ref.step
    wrong = _wrong_leader(step, type_)
    if wrong is not None:
        return (), wrong
    if step.feature is not None:
        if step.feature not in type_:
            help_ = meant_feature(step.feature, type_)
            return (), OpError("PG217", f"unknown feature `{step.feature}`", field="feature", help=help_)
        left = left_behind(step, type_)
        if left is None:
            return (step.feature,), None
        message = f"`{step.op}` moves `{step.feature}` alone, but not `{left}`, which is aligned with it"
        return (step.feature,), OpError("PG203", message, help="leave `feature` out, so that both move")
    found = acted_on(step, type_)
    if ref.path == ("transforms",):  # the implicit decode skips arrays, and what a written one decodes
        decoded = {t.feature for t in written if isinstance(t, DecodeTransform)}
        found = tuple(name for name in found if name not in decoded and type_[name].encoded)
    if found or isinstance(step, UnknownStep):
        return found, None
    kinds_ = " or ".join(f"`{kind}`" for kind in step.known_kinds())
    from pipegen.spec.translate import instead_of_our_own

    meant = instead_of_our_own(step.op, step.model_dump(mode="json", exclude_unset=True))
    help_ = "leave the step out" if meant is None else meant
    return (), OpError("PG203", f"`{step.op}` needs a feature of kind {kinds_}, and the source has none", help=help_)


def own_draws(ref: StepRef, place: Callable[[Transform], tuple[int, str]]) -> StepRef:
    """The use of a step on one of several images: its draws begin at an offset, and the image's name is part of their key; `place` returns
    both for a step, and for a policy.

    Without a name it is the first image, whose draws the step's id alone keys.
    """
    choice = ref.choice and replace(ref.choice, policy=own_draws(ref.choice.policy, place))
    offset, name = place(ref.step)
    return replace(ref, start=ref.start + offset, id=f"{ref.id}@{name}" if name else ref.id, choice=choice)


def marked(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Marks the stages whose floats are rounded later as `exact`; each node has one stage."""
    exact: dict[int, Node] = {place: replace(node, stages=(replace(stage, exact=True),)) for place, node, stage in _rounded(nodes)}
    return tuple(exact.get(place, node) for place, node in enumerate(nodes))


def unmarked(nodes: Sequence[Node]) -> list[Stage]:
    """The stages that `marked` would mark and that are not `exact`."""
    return [stage for _, _, stage in _rounded(nodes) if not stage.exact]


def _rounded(nodes: Sequence[Node]) -> Iterator[tuple[int, Element | Kernel, Computes]]:
    """Yields the stages whose floats are rounded by them or later, with place and node, from last to first."""
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
    """The lint on a geometric step whose fill or interpolation differs from that of the steps before, `before`."""
    field = "fill" if before is None or getattr(ref.step, "fill", None) != before[0] else "interpolation"
    message = f"`{ref.step.op}` has another `{field}` than the geometric steps before it, so the image is resampled once more"
    help_ = ("give the steps of one run the same `fill` and `interpolation`", write("exact: true", "arguments", "or write {}"))
    return OpError("PG502", message, field=field, help=help_)


class Fills:
    """A check that a constant fill means the same on an image and on the images aligned with it.

    Masks are exempt, since they are filled with their `ignore`, and so is 0, which means nothing in every unit.
    """

    def __init__(self) -> None:
        self._met: dict[tuple[Path, int], tuple[StepRef, float, dict[str, FeatureType]]] = {}

    def note(self, ref: StepRef, feature: str, x: FeatureType) -> None:
        """Notes the type that enters a use of a step."""
        fill = getattr(ref.step, "fill", None)
        if kind_of(x).has(Levels) and isinstance(fill, ConstantFill) and fill.constant:
            self._met.setdefault((ref.path, ref.start), (ref, fill.constant, {}))[2][feature] = x

    def apart(self, record: ElementType) -> Iterator[tuple[StepRef, OpError]]:
        """Yields the uses whose constant means something else on an aligned image."""
        for ref, value, images in self._met.values():
            for feature, x in images.items():
                home = images.get(anchor(record, feature), x)
                # Two images have one unit if they have one range of values, or one integer dtype.
                if home.interval != x.interval and (home.dtype != x.dtype or x.dtype not in INTEGER_RANGES):
                    both = f"`{anchor(record, feature)}` ({home}) and `{feature}` ({x}), aligned with it"
                    message = f"`{ref.step.op}` fills with {value:g}, which differs in meaning between {both}"
                    help_ = "use `fill: {constant: 0}`, which means nothing in both units, or `fill: reflect`"
                    yield ref, OpError("PG207", message, field="fill", help=help_)
