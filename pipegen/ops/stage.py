"""Defines what a plan says of steps: one use of a step, and the stage that does its work.

A family of steps whose stage is its own has both in its file: the base of its steps (a `StagedTransform`) and the stage (a
frozen dataclass derived from `Stage`). All that passes, costs and explanations want to know, the stage says of itself, so they
need not know the family; `backend/kernels/lower.py` has a table of what TensorFlow does for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, cast

from pipegen.errors import InternalError
from pipegen.ops.arguments.magnitudes import most
from pipegen.ops.families.policies import Policy
from pipegen.ops.transform import Transform

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipegen.types import ElementType, FeatureType


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    F = TypeVar("F", bound=Transform, default=Transform, covariant=True)
    G = TypeVar("G", bound=Transform)
else:
    from typing import TypeVar

    F = TypeVar("F", covariant=True)

Path = tuple[str | int, ...]
"""A key path in the spec, such as `("transforms", 2, "random_flip")`."""


@dataclass(frozen=True, slots=True)
class StepRef(Generic[F]):
    """One use of a step, of a family where that is known.

    Attributes:
        step: The op.
        id: What keys its draws.
        path: Where it stands in the spec.
        start: Its first number in the example's vector of draws.
        gated: Whether the number after its own decides, by `probability`, if it acts at all.
        choice: What else decides that: the policy that the step is a part of.
    """

    step: F
    id: str
    path: Path
    start: int
    gated: bool
    choice: Choice | None = None

    def of(self, family: type[G]) -> StepRef[G]:
        """Returns the same use, as one of a family, of which it has to be."""
        if not isinstance(self.step, family):
            raise InternalError(f"`{self.step.op}` is no {family.__name__}")
        return cast("StepRef[G]", self)

    @property
    def num_draws(self) -> int:
        """Numbers in the example's vector, the gate included."""
        return self.step.num_draws() + self.gated

    @property
    def conditional(self) -> bool:
        """Returns whether it leaves some examples as they are, whatever its own numbers are."""
        return self.gated or self.choice is not None

    @property
    def is_random(self) -> bool:
        """Returns whether what it does depends on the example's draws."""
        return bool(self.num_draws) or self.choice is not None

    @property
    def probability(self) -> float:
        """The share of the examples that its own gate lets it act on, at most where a schedule changes it."""
        return most(getattr(self.step, "probability", 1.0)) if self.gated else 1.0

    @property
    def share(self) -> float:
        """The expected share of the examples that it acts on."""
        if self.choice is None:
            return self.probability
        policy, number = self.choice.policy, self.choice.number
        return self.probability * policy.share * (policy.of(Policy).step.share(number) if number is not None else 1.0)

    @property
    def end(self) -> int:
        """Returns how much of the example's vector of draws the stage needs."""
        return max(self.start + self.num_draws, self.choice.policy.end if self.choice is not None else 0)


@dataclass(frozen=True, slots=True)
class Choice:
    """Holds what a policy decides about one of its parts, for each example.

    Attributes:
        policy: The use of the policy, or of another step that is done by its parts.
        number: Which of the policy's choices; `None` where the part acts whenever the policy does.
    """

    policy: StepRef
    number: int | None


class Stage:
    """Says what is done to one feature of an example or a batch. Subclasses are frozen dataclasses, with the feature first.

    `exact` says of a stage that computes floats that a later one rounds them to whole numbers, so that every bit counts: see
    `plan/followers.py`. Stages know nothing of TensorFlow.

    Class attributes:
        one_example: Whether it works on one example at a time, whatever its shape, and not on batches.
        mixes: Whether it reads other examples of the batch.
        cheap: Whether computing it again costs less than storing what it gives.
        compilable: Whether XLA compiles it in a kernel; for a few numbers an example that is not worth it.
        from_memory: Whether it reads images in place, from the memory that they are stored in, so that nobody reads them before.
        branches: Whether it may run on those examples alone that it acts on, where it leaves the others as they are.
        ns_per_value: Nanoseconds of one core for each value (pixel × channel) that it writes.
        former: The name that it once had, and keeps in the keys of caches and in explanations as JSON.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # of the subclasses
        __dataclass_fields__: ClassVar[dict[str, Any]]

        @property
        def feature(self) -> str:
            """Names what it acts on."""

    one_example: ClassVar[bool] = False
    mixes: ClassVar[bool] = False
    cheap: ClassVar[bool] = False
    compilable: ClassVar[bool] = True
    from_memory: ClassVar[bool] = False
    branches: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 0.5
    former: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """The name that others know it by, which stays."""
        return self.former or type(self).__name__

    def uses(self) -> tuple[StepRef, ...]:
        """Returns the uses of steps in it, in the spec's order: its `refs`, or its one `ref`."""
        found: tuple[StepRef, ...] = (self.ref,) if hasattr(self, "ref") else getattr(self, "refs", ())
        return found

    def touches(self) -> tuple[str, ...]:
        """The features that it reads and changes."""
        return (self.feature,)

    def needs(self) -> tuple[str, ...]:
        """Returns the features beside its own that it reads as they are then, so that they are made even if nobody else wants them."""
        return ()

    def edge(self, entry: ElementType, after: ElementType) -> ElementType:
        """Returns the type of the edge behind it where `entry` is the one before it; what it touches is as it is in `after`."""
        return entry.replace(**{name: after[name] for name in self.touches()})

    def says(self) -> str:
        """Says what it does, in a line of a plan, without the name of its feature."""
        raise NotImplementedError

    def leads(self) -> bool:
        """Returns whether what computes its input has to be done with before it starts: it reads whole images first, or pixels at
        other places than it writes."""
        return False

    def rereads(self, before: Sequence[Stage]) -> bool:
        """Returns whether XLA on a CPU would compute what stands before it in a kernel again and again: the stages on the same feature
        that are not `cheap`."""
        return False

    def mirrors_only(self) -> bool:
        """Returns whether reversing axes is all that it does."""
        return False

    def commutes_with_mirrors(self, x: FeatureType) -> bool:
        """Returns whether mirroring inputs of type `x` before it and after it gives the same bits."""
        return False

    def is_identity(self, x: FeatureType, y: FeatureType) -> bool:
        """Returns whether it provably changes nothing, from inputs of type `x` to outputs of type `y`."""
        return False

    def ns(self, x: FeatureType) -> float:
        """Nanoseconds for each value that it writes, on inputs of type `x`."""
        return self.ns_per_value

    def decode_us(self, file_bytes: float) -> float:
        """Microseconds that it takes to decode a file of so many bytes."""
        return 0.0


class Computes(Stage):
    """A stage that computes floats, and can do so exactly."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def exact(self) -> bool:
            """Returns whether what it computes is rounded to whole numbers later."""


class StagedTransform(Transform):
    """A step whose family has a stage of its own."""

    def stage(self, feature: str, ref: StepRef[Any], x: FeatureType) -> Stage:
        """The stage of a use of this step on a feature, which enters as type `x`."""
        raise NotImplementedError


def only_identities(uses: Sequence[StepRef], x: FeatureType, y: FeatureType) -> bool:
    """Returns whether the types are alike and every step changes nothing."""
    return x == y and all(ref.step.is_identity(x) for ref in uses)


def weight_ns(ref: StepRef, kind: float, x: FeatureType) -> float:
    """Nanoseconds for each value of one step, of what a `kind` of stage takes; a step that resizes is like a function of its own."""
    traits = ref.step.traits(x)
    return (RESIZING_NS if traits.resizes else kind) * traits.weight


RESIZING_NS = 2.8
"""Nanoseconds for each value of a function of one example, such as a resize."""


WAITING = "with numbers of split train, which `pipegen fit` finds"


def step_kwargs(step: Transform) -> dict[str, Any]:
    """The arguments of a step that differ from their defaults, for printing."""
    step = step.written()
    changed = step.model_dump(exclude_defaults=True, mode="json")
    whole = step.model_dump(mode="json")
    return {name: whole[name] for name in changed}  # a nested map keeps its defaults, or `{constant: 0}` would print as `{}`


def use(ref: StepRef) -> str:
    """A use of a step with its arguments, and whose part it is."""
    arguments = ", ".join(f"{k}: {value(v)}" for k, v in step_kwargs(ref.step).items())
    text = f"{ref.step.op}({arguments})" if arguments else ref.step.op
    if ref.step.part is not None:
        return f"{ref.step.part} of {text}"
    return f"{text} as `{ref.choice.policy.id}` chooses" if ref.choice is not None else text


def uses(refs: Sequence[StepRef]) -> str:
    """Several uses, in their order."""
    return " · ".join(map(use, refs))


def fitted_use(ref: StepRef) -> str:
    """A use of a step, which may still wait for numbers."""
    return f"{WAITING}: {use(ref)}" if ref.step.waits() else use(ref)


def value(given: Any) -> str:
    """A plain value as a spec has it."""
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, float):
        return f"{given:g}"
    if isinstance(given, (list, tuple)):
        return "[" + ", ".join(map(value, given)) + "]"
    if isinstance(given, dict):
        return "{" + ", ".join(f"{k}: {value(v)}" for k, v in given.items()) + "}"
    return str(given)
