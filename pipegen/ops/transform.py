"""Defines what every step has, whatever its family: its arguments, and what passes and the backend ask it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, PrivateAttr

from pipegen.errors import OpError
from pipegen.ops.arguments.geometry import Size
from pipegen.ops.arguments.magnitudes import Magnitude, Odd, Schedule, canonical, has_type, is_level, least, level_range, most, resolved
from pipegen.ops.kinds.registry import named_kinds
from pipegen.ops.model import Model
from pipegen.ops.traits import Example, Family, Traits

if TYPE_CHECKING:
    import tensorflow as tf
    from typing_extensions import Self

    from pipegen.ops.kinds.base import FeatureKind
    from pipegen.ops.lowering.windows import Box, Sides
    from pipegen.types import FeatureType

SplitName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$")]
_ID = r"[A-Za-z_][A-Za-z0-9_.-]*(#[1-9][0-9]*)?"
"""A name, or a name and which one of that name it is: ids that steps have by default may be written, too."""
When = Literal["train", "eval", "all"] | list[SplitName]


class Transform(Model):
    """One step. Subclass a family, not this: see `base.py`.

    An example's draws, `u`, are float64 `(..., num_draws)`, uniform in [0, 1).

    Class attributes:
        op: The name in a spec.
        kinds: The kinds of feature that it has a rule for, unless it moves things.
        moves: Whether it moves pixels and leaves what they say, so that it acts on whatever is moved with its image.
        random: Whether it draws numbers; such steps run on the training split only unless told otherwise.
        handles_probability: Whether it handles `probability` itself, by draws that `num_draws` counts; the backend then appends none.
        calls_python: Whether it calls Python for an example; `rarely` is for files that TensorFlow has no decoder for.
        factors: The magnitudes whose single number lies around 1, rather than around 0.
        later: Arguments that came later than the step: at their defaults they are no part of a spec's meaning, so that hashes stay.
        only_sizes: Whether only the size of images changes.
        family: How it composes, or what the list of steps calls its family.
        part: Of a part of a policy, which it is, in the text of a plan.
        examples: Worked examples, at least one.
    """

    op: ClassVar[str]
    kinds: ClassVar[frozenset[str]] = frozenset({"image"})
    moves: ClassVar[bool] = False
    random: ClassVar[bool] = False
    handles_probability: ClassVar[bool] = False
    calls_python: ClassVar[Literal["never", "rarely", "always"]] = "never"
    factors: ClassVar[frozenset[str]] = frozenset()
    later: ClassVar[frozenset[str]] = frozenset()
    only_sizes: ClassVar[bool] = False
    family: ClassVar[Family | str] = Family.ELEMENT
    part: ClassVar[str | None] = None
    examples: ClassVar[tuple[Example, ...]] = ()

    when: When | None = None
    """The splits that it runs on: `train`, `eval` (every split but train), `all`, or a list of names. Random steps default
    to `train`, others to every split."""
    feature: str | None = None
    """Act on this feature only, instead of on every feature of a kind that the step knows."""
    id: Annotated[str, Field(pattern=rf"^{_ID}(/{_ID})*$")] | None = None
    """A name that keys this step's random draws; by default the op's name and its occurrence, so that inserting
    another kind of step leaves the draws alone."""

    @classmethod
    def acts_on(cls, kind: FeatureKind) -> bool:
        """Returns whether it has a rule for features of a kind."""
        return kind.aligns if cls.moves else (kind.rules_of or kind.name) in cls.kinds

    def reaches(self, x: FeatureType) -> bool:
        """Returns whether it acts on a feature of type `x`, of a kind that it has a rule for, that is aligned with an image."""
        return self.moves

    @classmethod
    def known_kinds(cls) -> list[str]:
        """Returns the names of the kinds that it has a rule for, sorted."""
        return sorted(kind.name for kind in named_kinds() if cls.acts_on(kind))

    def traits(self, x: FeatureType) -> Traits:
        """Returns what passes may assume about the step on an input of type `x`."""
        return Traits(self.family)

    def infer(self, x: FeatureType) -> FeatureType:
        """The output type for the input type `x`; `OpError` if the step cannot run on that."""
        raise NotImplementedError

    def idle(self) -> bool:
        """Returns whether it acts on no example, or leaves every value as it is."""
        return most(getattr(self, "probability", 1.0)) == 0

    def is_identity(self, x: FeatureType) -> bool:
        """Returns whether the step provably changes nothing on inputs of type `x`."""
        return False

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        """Legal but unwise settings on an input of type `x`, as values: what is odd about one argument, unless a step knows more."""
        given = [(name, field, getattr(self, name)) for name, field in type(self).model_fields.items()]
        odd = [(find, name, v) for name, field, v in given if v is not None for find in field.metadata if isinstance(find, Odd)]
        order = [find.func for find, _, _ in odd]  # angles of several arguments, then distances, and so on
        return tuple(lint for find, name, v in sorted(odd, key=lambda one: order.index(one[0].func)) for lint in find(self.op, name, v))

    def lasting(self) -> bool:
        """Returns whether it gives the same in every process for the same arguments, so that its results may be kept on a disk."""
        return True

    def num_draws(self) -> int:
        """Returns how many numbers one example draws. The backend appends one for a `probability` below 1, unless the step
        `handles_probability`."""
        return 0

    def is_gated(self) -> bool:
        """Returns whether one more number is drawn for an example, which decides whether the step acts on it."""
        return not self.handles_probability and least(getattr(self, "probability", 1.0)) < 1.0

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """Turns an example's draws into the numbers that the step works with, by name.

        An amount has the name and the unit of the argument that gives its range: numbers, truth values or words `(...)`, or a list of
        them for each example `(..., k)`; NaN where an example has none. `probability` has no part in it, unless the step
        `handles_probability`.
        """
        return {}

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """`drawn`, and what follows from it for images of one height, width and number of channels; places and lengths are in pixels."""
        return self.drawn(u)

    def shown(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[Box, Sides]:
        """Returns which part of an image a step that crops or resizes shows, so that items can be moved with it: top, left, height and
        width, which may lie beyond it; and height and width of the output. All in pixels; the image's own are int32 scalars."""
        raise NotImplementedError

    def needed_size(self) -> tuple[int, int] | None:
        """The least `(height, width)` of what the step reads at which nothing is lost, in pixels: a decoder may hand over a picture
        (for a crop that resizes: a window) scaled down to no less. `None` means that every pixel counts."""
        return None

    def on(self, x: FeatureType) -> Transform:
        """The step as it acts on a feature of type `x`: on a mask it picks pixels and mixes none. By default itself."""
        return self

    def evaluation_form(self) -> tuple[Transform, ...]:
        """The steps that stand in for a random step that fixes the shape, on the other splits."""
        return ()

    _scheduled: Any = PrivateAttr(default=None)

    def schedules(self) -> dict[str, Schedule]:
        """The arguments that change over the epochs, by name."""
        given = {k: getattr(self, k) for k in type(self).model_fields}
        given |= {f"{k}[{i}]": one for k, v in given.items() if isinstance(v, tuple) for i, one in enumerate(v)}
        return {k: v for k, v in given.items() if isinstance(v, Schedule)}

    def at(self, epoch: tf.Tensor) -> Self:
        """The step as it is in one epoch, an integer scalar: its schedules become what they say, as tensors."""
        if not self.schedules():
            return self
        now: dict[str, Any] = {}
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if isinstance(value, Schedule):
                now[name] = resolved(field, value, epoch, factor=name in self.factors)
            elif isinstance(value, tuple):
                now[name] = tuple(one.at(epoch, level_range)[0] if isinstance(one, Schedule) else one for one in value)
        made = self.model_copy(update=now)
        made._scheduled = self
        return made

    def over_epochs(self) -> Self:
        """The step as it was before `at`: with its schedules, which tell of all epochs. A filter is as wide in each of them."""
        return self if self._scheduled is None else self._scheduled

    def parts(self) -> tuple[Part, ...]:
        """The steps that do the work of a policy, or of a step that takes its numbers from data, in the order of their meaning."""
        return ()

    def written(self) -> Transform:
        """The step as a user wrote it: for a part of a policy, the policy."""
        return self

    def waits(self) -> bool:
        """Returns whether the numbers that it needs have not been learned yet."""
        return False

    def inner_steps(self) -> tuple[Transform, ...]:
        """The steps that a user wrote inside this one, in that order."""
        return ()

    def meaning(self) -> dict[str, Any]:
        """Every argument but `id` as plain values, one form for each meaning: what the hash of a spec covers."""
        values = self.model_dump(mode="json", exclude={"id"})
        for name, field in type(self).model_fields.items():
            if name in self.later and getattr(self, name) == field.default:
                del values[name]
            value = values.get(name)
            if value is None or isinstance(value, (bool, str)):
                continue  # no number: its type, which takes a while, needs no look
            if has_type(field, Magnitude) or is_level(field) or isinstance(getattr(self, name), Schedule):
                values[name] = canonical(field, getattr(self, name), factor=name in self.factors)
            elif isinstance(value, list) and has_type(field, Size) and value[0] == value[1]:
                values[name] = value[0]
        if isinstance(self.when, list):
            values["when"] = "train" if set(self.when) == {"train"} else sorted(set(self.when))
        elif self.when is None and not self.evaluation_form():  # with one, `when: train` would say that nothing stands in
            values["when"] = "train" if self.random else "all"
        return values

    def plainest(self, x: FeatureType) -> Self:
        """Returns the step without the arguments that say of features of type `x` what holds anyway."""
        return self


@dataclass(frozen=True, slots=True)
class Part:
    """A step that does a part of a policy's work.

    Attributes:
        step: The step. It reads the policy's draws, unless it is `inner`.
        choice: Which of the policy's choices decides for each example whether it acts; `None` where it acts whenever the
            policy does.
        inner: Which of the policy's `inner_steps` it is; such a step has draws of its own.
    """

    step: Transform
    choice: int | None = None
    inner: int | None = None
