"""`Transform`, the base of all steps: common arguments, and the properties that passes and the backend read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, PrivateAttr

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.ops.arguments.geometry import ConstantFill, Size
from pipegen.ops.arguments.magnitudes import Odd, Probability, Schedule, as_pair, canonical, has_type, is_amount, least, most, resolved
from pipegen.ops.kinds.base import FeatureKind, Geometry, PixelValues, Samples, kind_of, named_kinds
from pipegen.ops.model import Model
from pipegen.ops.traits import Example, Family, Traits
from pipegen.types import FeatureType, times

if TYPE_CHECKING:
    import tensorflow as tf
    from typing_extensions import Self

    from pipegen.ops.lowering.windows import Box, Sides

SplitName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$")]
_ID = r"[A-Za-z_][A-Za-z0-9_.-]*(#[1-9][0-9]*)?"
"""A name, optionally with its number among equal names: default ids of steps may be written, too."""
When = Literal["train", "eval", "all"] | list[SplitName]


class Transform(Model):
    """One step. Subclass a family, not this: see `step_bases.py`.

    An example's draws, `u`, are float64 `(..., num_draws)`, uniform in [0, 1)."""

    op: ClassVar[str]  # the name in a spec
    kinds: ClassVar[frozenset[str]] = frozenset({"image"})  # the kinds of feature that it supports, unless it moves pixels
    moves: ClassVar[bool] = False  # whether it moves pixels and keeps their values, so that it acts on all features aligned with its image
    random: ClassVar[bool] = False  # whether it draws numbers; by default, such steps run only on the training split
    draws: ClassVar[int] = 0  # the numbers that one example draws, unless `num_draws` depends on the arguments
    handles_probability: ClassVar[bool] = False
    """Whether it handles `probability` itself, by draws that `num_draws` counts; the backend then appends none."""
    calls_python: ClassVar[Literal["never", "rarely", "always"]] = "never"
    """Whether it calls Python for an example; `rarely` is for files that TensorFlow has no decoder for."""
    factors: ClassVar[frozenset[str]] = frozenset()  # the magnitudes whose single number is a range around 1, not around 0
    pairs: ClassVar[frozenset[str]] = frozenset()  # arguments of one number or two, where one stands for both
    of_some_kinds: ClassVar[frozenset[str]] = frozenset()  # arguments of only some of its kinds, which a single value does not stand for
    only_sizes: ClassVar[bool] = False  # whether it changes only the size of images
    moves_time: ClassVar[bool] = False  # whether it moves the samples of a sound along time, and what happens in it
    family: ClassVar[Family | str] = Family.ELEMENT  # the way it composes, or its family in the list of steps
    part: ClassVar[str | None] = None  # the name of a part of a policy, in the text of a plan
    examples: ClassVar[tuple[Example, ...]] = ()  # worked examples, at least one

    when: When | None = None
    """The splits that it runs on: `train`, `eval` (every split but train), `all`, or a list of names. Random steps default to `train`,
    others to every split."""
    feature: str | None = None
    """Act on this feature only, not on every feature of a kind that the step supports."""
    draw: Literal["example", "group"] = "example"
    """Whether each `example` has random numbers of its own, or each `group` of 8 consecutive examples of the epoch's order shares them."""
    id: Annotated[str, Field(pattern=rf"^{_ID}(/{_ID})*$")] | None = None
    """A name that keys this step's random draws; by default the op's name and its occurrence, so that inserting another kind of step does
    not change the draws."""

    @classmethod
    def acts_on(cls, kind: FeatureKind) -> bool:
        """Checks that it supports features of a kind."""
        return kind.has(PixelValues, Geometry) if cls.moves else (kind.rules_of or kind.name) in cls.kinds

    def reaches(self, x: FeatureType) -> bool:
        """Checks that it acts on a feature of type `x`, of a supported kind, that is aligned with an image."""
        return self.moves

    @classmethod
    def known_kinds(cls) -> list[str]:
        """Lists the names of the supported kinds, sorted."""
        return sorted(kind.name for kind in named_kinds() if cls.acts_on(kind))

    def traits(self, x: FeatureType) -> Traits:
        """Returns the properties that passes rely on, for an input of type `x`."""
        return Traits(self.family)

    def infer(self, x: FeatureType) -> FeatureType:
        """Infers the output type for the input type `x`; raises `OpError` if the step cannot run on it."""
        raise NotImplementedError

    def idle(self) -> bool:
        """Checks whether it never acts, or changes no value."""
        return most(getattr(self, "probability", 1.0)) == 0

    def is_identity(self, x: FeatureType) -> bool:
        """Checks whether the step provably changes no value of inputs of type `x`; the output type can still differ."""
        return self.idle()

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        """Lists legal but unwise settings on an input of type `x`; by default odd values of single arguments."""
        given = [(name, field, getattr(self, name)) for name, field in type(self).model_fields.items()]
        odd = [(find, name, v) for name, field, v in given if v is not None for find in field.metadata if isinstance(find, Odd)]
        order = [find.func for find, _, _ in odd]  # angles of several arguments, then distances, and so on
        return tuple(lint for find, name, v in sorted(odd, key=lambda one: order.index(one[0].func)) for lint in find(self.op, name, v, x))

    def changes(self) -> float:
        """Estimates the share of the examples that it changes, of those that it acts on."""
        return 1.0

    def lasting(self) -> bool:
        """Checks whether its results are the same in every process for the same arguments, so that they may be cached on disk."""
        return True

    def changes_times(self) -> bool:
        """Tests if it changes when things happen in a sound, with these arguments."""
        return self.moves_time

    def shares_draws(self, kind: str) -> bool:
        """Tests if the features of a kind share the draws of the first one in a record; by default each has draws of its own."""
        return any(step.shares_draws(kind) for step in self.inner_steps())

    def num_draws(self) -> int:
        """Counts the numbers that one example draws, with these arguments. The backend appends one for a `probability` below 1, unless the
        step `handles_probability`."""
        return self.draws

    def is_gated(self) -> bool:
        """Checks whether one more number is drawn for an example, which decides if the step acts on it."""
        return not self.handles_probability and least(getattr(self, "probability", 1.0)) < 1.0

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """Converts an example's draws to the numbers that the step uses, by name.

        An amount has the name and the unit of the argument with its range: numbers, booleans or strings `(...)`, or a list of them for
        each example `(..., k)`; NaN for none. `probability` is ignored, unless the step `handles_probability`.
        """
        return {}

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """Like `drawn`, with numbers that depend on the height, width and channels of the image; positions and lengths are in pixels."""
        return self.drawn(u)

    def shown(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[Box, Sides]:
        """Returns the part of an image that a step that crops or resizes shows, to move items with it: top, left, height and width, which
        may reach outside; and height and width of the output. All in pixels; the image's own size is int32 scalars."""
        raise NotImplementedError

    def needed_size(self) -> tuple[int, int] | None:
        """Returns the least `(height, width)` of the input, in pixels, to which a decoder may scale an image (for a crop that resizes: a
        window) down. `None` means that every pixel counts."""
        return None

    def on(self, x: FeatureType) -> Transform:
        """Returns the step for a feature of type `x`: for a mask or a dense map that it moves, one that reads the nearest pixel, or
        bilinearly, and fills with the feature's `ignore` in place of a constant."""
        pixels = kind_of(x).pixels
        reads = pixels.interpolation(x) if self.moves and pixels is not None else None
        if reads is None:
            return self
        fields = type(self).model_fields
        changes: dict[str, Any] = {"interpolation": reads} if "interpolation" in fields else {}
        if "antialias" in fields:
            changes |= {"method": reads} | ({"antialias": False} if reads == "nearest" else {})
        if isinstance(getattr(self, "fill", None), ConstantFill):
            changes["fill"] = ConstantFill(constant=x.ignore)
        return self.model_copy(update=changes) if changes else self

    def beside(self, aligned: Sequence[FeatureType]) -> Transform:
        """Returns the step for images with which features of these types are aligned."""
        return self

    def evaluation_form(self) -> tuple[Transform, ...]:
        """Lists the steps that replace a random step that fixes the shape, on the other splits."""
        return ()

    _scheduled: Any = PrivateAttr(default=None)

    def schedules(self) -> dict[str, Schedule]:
        """Returns the arguments that change over the epochs, by name."""
        given = {k: getattr(self, k) for k in type(self).model_fields}
        given |= {f"{k}[{i}]": one for k, v in given.items() if isinstance(v, tuple) for i, one in enumerate(v)}
        return {k: v for k, v in given.items() if isinstance(v, Schedule)}

    def at(self, epoch: tf.Tensor) -> Self:
        """Evaluates the schedules at an epoch, an integer scalar, as tensors."""
        if not self.schedules():
            return self
        now: dict[str, Any] = {}
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if isinstance(value, Schedule):
                now[name] = resolved(field, value, epoch, factor=name in self.factors)
            elif isinstance(value, tuple):
                now[name] = tuple(one.level(epoch) if isinstance(one, Schedule) else one for one in value)
        made = self.model_copy(update=now)
        made._scheduled = self
        return made

    def over_epochs(self) -> Self:
        """Undoes `at`: returns the step with its schedules, for sizes of filters, which are the same in all epochs."""
        return self if self._scheduled is None else self._scheduled

    def parts(self) -> tuple[Part, ...]:
        """Lists the steps that do the work of a policy, or of a step that learns from data, in order."""
        return ()

    def written(self) -> Transform:
        """Returns the step as the user wrote it: for a part of a policy, the policy."""
        return self

    def waits(self) -> bool:
        """Checks whether the numbers that it needs have not been learned yet."""
        return False

    def inner_steps(self) -> tuple[Transform, ...]:
        """Lists the steps that a user wrote inside this one, in order."""
        return ()

    def meaning(self) -> dict[str, Any]:
        """Returns a canonical form of all arguments but `id`, as plain values, for the hash of a spec."""
        values = self.model_dump(mode="json", exclude={"id"} if self.draw == "group" else {"id", "draw"})
        for name, field in type(self).model_fields.items():
            if name in self.pairs:
                values[name] = list(as_pair(getattr(self, name)))
                continue
            value = values.get(name)
            if value is None or isinstance(value, (bool, str)):
                continue  # not a number: skip the slow check of its type
            if is_amount(field) or isinstance(getattr(self, name), Schedule):
                values[name] = canonical(field, getattr(self, name), factor=name in self.factors)
            elif isinstance(value, list) and has_type(field, Size) and value[0] == value[1]:
                values[name] = value[0]
        if isinstance(self.when, list):
            values["when"] = "train" if set(self.when) == {"train"} else sorted(set(self.when))
        elif self.when is None and not self.evaluation_form():  # with one, `when: train` would mean no replacement
            values["when"] = "train" if self.random else "all"
        return values

    def plainest(self, x: FeatureType) -> Self:
        """Drops arguments that make no difference for features of type `x`."""
        return self


@dataclass(frozen=True, slots=True)
class Part:
    """A step that does a part of a policy's work. It reads the policy's draws, unless it is `inner`: then this is its number in the
    policy's `inner_steps`, and it has draws of its own. `choice` is the number of the policy's choice that decides for each example if it
    acts; `None` if it acts whenever the policy does."""

    step: Transform
    choice: int | None = None
    inner: int | None = None


class Policy(Transform):
    """A step whose parts do its work. Subclasses define the parts, and which of them the draws of an example choose."""

    family = Family.POLICY

    random = True

    probability: Probability = 1.0
    """The share of examples that the policy changes."""

    def chosen(self, u: tf.Tensor, number: int) -> tf.Tensor:
        """Whether an example gets the choice of a number, as in the parts: bool `(...)`, from draws float64 `(..., num_draws)`, uniform in
        [0, 1)."""
        raise NotImplementedError

    def share(self, number: int) -> float:
        """The expected share of the examples that get one of the choices."""
        raise NotImplementedError

    def picks_one(self) -> bool:
        """Checks whether an example that it changes gets exactly one of the `inner_steps`."""
        return False

    def shape_after(self, x: FeatureType) -> tuple[int | None, ...]:
        """Returns the shape that all images of type `x` leave it with; raises `OpError` if that depends on what is chosen."""
        return x.shape

    def infer(self, x: FeatureType) -> FeatureType:
        for part in self.parts():
            y = part.step.infer(x)
            require_same_shape(part.step, x, y)
            x = y
        return x

    def is_identity(self, x: FeatureType) -> bool:
        return most(self.probability) == 0 and all(part.step.infer(x) == x for part in self.parts())


def require_same_shape(step: Transform, x: FeatureType, y: FeatureType) -> None:
    """Rejects, as `PG226`, a part that changes the shape, or an unknown length: examples with and without it could not be stacked."""
    made = f"`{step.op}` makes {times(y.shape)} of {times(x.shape)}" if x.shape != y.shape else None
    if made is None and kind_of(x).has(Samples) and x.shape[0] is None:
        long = x.with_(shape=(LONG, *x.shape[1:]))
        made = f"`{step.op}` changes the length" if step.infer(long).shape != long.shape else None
    if made is not None:
        raise OpError("PG226", f"{made}, and a policy does it to some examples only")


LONG = 1 << 22  # the length of an example that is long enough for every step
