"""`StepRef`, one use of a step, and `Stage`, the work it becomes.

A family of steps with its own stage has both in its file: the base of its steps (a `StagedTransform`) and the stage (a frozen dataclass
derived from `Stage`). A stage has all properties that passes, costs and explanations read, so that they do not depend on the family;
`backend/kernels/lower.py` has the table of TensorFlow functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, cast

from pipegen.errors import InternalError
from pipegen.frozen import dataclass
from pipegen.ops.arguments.magnitudes import most
from pipegen.ops.transform import Policy, Transform
from pipegen.types import ElementType, FeatureType

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    F = TypeVar("F", bound=Transform, default=Transform, covariant=True)
    G = TypeVar("G", bound=Transform)
else:
    from typing import TypeVar

    F = TypeVar("F", covariant=True)

Path = tuple[str | int, ...]  # a key path in the spec, such as `("transforms", 2, "random_flip")`


@dataclass(frozen=True, slots=True)
class StepRef(Generic[F]):
    """One use of a step, with the type of its family if known."""

    step: F  # the op
    id: str  # the key of its draws
    path: Path  # its key path in the spec
    start: int  # the index of its first number in the example's vector of draws
    gated: bool  # whether the number after its own decides, by `probability`, if it acts
    choice: Choice | None = None  # the choice of the policy that the step is a part of, which decides that, too

    def of(self, family: type[G]) -> StepRef[G]:
        """Casts the use to one of a family; raises `InternalError` if its step is not of that family."""
        if not isinstance(self.step, family):
            raise InternalError(f"`{self.step.op}` is not a {family.__name__}")
        return cast("StepRef[G]", self)

    @property
    def num_draws(self) -> int:
        """Numbers in the example's vector, the gate included."""
        return self.step.num_draws() + self.gated

    @property
    def conditional(self) -> bool:
        """Whether a gate or a choice decides if it acts on an example."""
        return self.gated or self.choice is not None

    @property
    def is_random(self) -> bool:
        """Whether its result depends on the example's draws."""
        return bool(self.num_draws) or self.choice is not None

    @property
    def probability(self) -> float:
        """The share of the examples that pass its own gate; with a schedule, the largest share."""
        return most(getattr(self.step, "probability", 1.0)) if self.gated else 1.0

    @property
    def share(self) -> float:
        """The expected share of the examples that it changes."""
        own = self.probability * self.step.changes()
        if self.choice is None:
            return own
        policy, number = self.choice.policy, self.choice.number
        return own * policy.share * (policy.of(Policy).step.share(number) if number is not None else 1.0)

    @property
    def end(self) -> int:
        """The length of the example's vector of draws that the stage needs."""
        return max(self.start + self.num_draws, self.choice.policy.end if self.choice is not None else 0)


@dataclass(frozen=True, slots=True)
class Choice:
    """The decision of a policy, or of another step with parts, about one of them, for each example: the `number` of the policy's choice, or
    `None` if the part acts whenever the policy does."""

    policy: StepRef
    number: int | None


class Stage:
    """An operation on one feature of an example or a batch. Subclasses are frozen dataclasses, with the feature first.

    `exact` marks a stage whose floats a later one rounds to integers, so that every bit counts: see `plan/followers.py`. Stages do not
    depend on TensorFlow."""

    __slots__ = ()

    if TYPE_CHECKING:  # of the subclasses
        __dataclass_fields__: ClassVar[dict[str, Any]]

        @property
        def feature(self) -> str:
            """The feature that it acts on."""

    one_example: ClassVar[bool] = False  # whether it works on single examples of any shape, not on batches
    combines: ClassVar[bool] = False  # whether it reads other examples of the batch
    cheap: ClassVar[bool] = False  # whether computing it again costs less than storing the result
    compilable: ClassVar[bool] = True  # whether XLA compiles it in a kernel, which does not pay for a few numbers an example
    from_memory: ClassVar[bool] = False  # whether it reads images in place, from the memory of the store, so that they are not read before
    branches: ClassVar[bool] = False  # whether it may run only on the examples that it acts on
    ns_per_value: ClassVar[float] = 0.5  # nanoseconds of one core for each value (pixel × channel) of the result

    @property
    def name(self) -> str:
        """Its name in the keys of caches and in explanations."""
        return type(self).__name__

    def uses(self) -> tuple[StepRef, ...]:
        """Lists the uses of steps in it, in the spec's order: its `refs`, or its one `ref`."""
        found: tuple[StepRef, ...] = (self.ref,) if hasattr(self, "ref") else getattr(self, "refs", ())
        return found

    @property
    def share(self) -> float:
        """The expected share of the examples that it changes."""
        return 1.0 - prod(1.0 - ref.share for ref in self.uses()) if self.uses() else 1.0

    def touches(self) -> tuple[str, ...]:
        """Lists the features that it reads and changes."""
        return (self.feature,)

    def needs(self) -> tuple[str, ...]:
        """Lists other features that it reads, which are therefore made even if not in the output."""
        return ()

    def edge(self, entry: ElementType, after: ElementType) -> ElementType:
        """Returns the type after it: `entry` with the features that it touches as in `after`."""
        return entry.replace(**{name: after[name] for name in self.touches()})

    def says(self) -> str:
        """Describes it in a line of a plan, without the name of its feature."""
        raise NotImplementedError

    def leads(self) -> bool:
        """Checks whether its input must be complete before it starts: it reads whole images, or pixels at other places than it writes."""
        return False

    def rereads(self, before: Sequence[Stage]) -> bool:
        """Checks whether XLA on a CPU would repeat stages before it in a kernel: those on the same feature that are not `cheap`."""
        return False

    def mirrors_only(self) -> bool:
        """Checks whether it only reverses axes."""
        return False

    def commutes_with_mirrors(self, x: FeatureType) -> bool:
        """Checks whether mirroring inputs of type `x` before it gives the same bits as after it."""
        return False

    def is_identity(self, x: FeatureType, y: FeatureType) -> bool:
        """Checks whether it provably changes nothing, from inputs of type `x` to outputs of type `y`."""
        return False

    def ns(self, x: FeatureType) -> float:
        """Estimates nanoseconds for each value of the result, on inputs of type `x`."""
        return self.ns_per_value

    def decode_us(self, file_bytes: float) -> float:
        """Estimates microseconds to decode a file, by its size in bytes."""
        return 0.0


class Computes(Stage):
    """A stage that computes floats, optionally exactly."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def exact(self) -> bool:
            """Whether its result is rounded to integers later."""


@dataclass(frozen=True, slots=True)
class OneStep(Stage, Generic[F]):
    """The work of one step."""

    feature: str
    ref: StepRef[F]

    def says(self) -> str:
        return f"{WAITING}: {use(self.ref)}" if self.ref.step.waits() else use(self.ref)

    def is_identity(self, x: FeatureType, y: FeatureType) -> bool:
        return only_identities((self.ref,), x, y)

    def ns(self, x: FeatureType) -> float:
        return weight_ns(self.ref, self.ns_per_value, x)


class StagedTransform(Transform):
    """A step whose family has its own stage."""

    def stage(self, feature: str, ref: StepRef[Any], x: FeatureType) -> Stage:
        """Makes the stage of a use of this step on a feature of type `x`."""
        raise NotImplementedError


def only_identities(uses: Sequence[StepRef], x: FeatureType, y: FeatureType) -> bool:
    """Checks that the types are equal and every step is an identity."""
    return x == y and all(ref.step.is_identity(x) for ref in uses)


def weight_ns(ref: StepRef, kind: float, x: FeatureType) -> float:
    """Estimates nanoseconds for each value of one step, from the `kind` of its stage; a step that resizes counts as a function of one
    example."""
    traits = ref.step.traits(x)
    return (RESIZING_NS if traits.resizes else kind) * traits.weight


RESIZING_NS = 2.8  # nanoseconds for each value of a function of one example, such as a resize


WAITING = "with numbers of split train, which `pipegen fit` finds"


def step_kwargs(step: Transform) -> dict[str, Any]:
    """Returns the arguments of a step that differ from their defaults, for printing."""
    step = step.written()
    changed = step.model_dump(exclude_defaults=True, mode="json")
    whole = step.model_dump(mode="json")
    return {name: whole[name] for name in changed}  # a nested map keeps its defaults, or `{constant: 0}` would print as `{}`


def use(ref: StepRef) -> str:
    """Formats a use of a step with its arguments and its policy."""
    arguments = ", ".join(f"{k}: {value(v)}" for k, v in step_kwargs(ref.step).items())
    text = f"{ref.step.op}({arguments})" if arguments else ref.step.op
    if ref.step.part is not None:
        return f"{ref.step.part} of {text}"
    return f"{text} as `{ref.choice.policy.id}` chooses" if ref.choice is not None else text


def uses(refs: Sequence[StepRef]) -> str:
    """Formats several uses."""
    return " · ".join(map(use, refs))


def value(given: Any) -> str:
    """Formats a plain value as in a spec."""
    if given is None:
        return "null"
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, float):
        return f"{given:g}"
    if isinstance(given, (list, tuple)):
        return "[" + ", ".join(map(value, given)) + "]"
    if isinstance(given, dict):
        return "{" + ", ".join(f"{k}: {value(v)}" for k, v in given.items()) + "}"
    return str(given)
