"""`posterization` and `random_posterization`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import AnySchedule, span_range, within
from pipegen.ops.families.lookup_tables import LookupTableTransform
from pipegen.ops.lowering.colours import posterized, repeated
from pipegen.ops.lowering.windows import whole_between
from pipegen.ops.step_bases import UnconditionalTransform
from pipegen.ops.traits import same_type

Bits = Annotated[int, Field(ge=1, le=8)]


class Posterization(UnconditionalTransform, LookupTableTransform):
    """Sets the low bits of every value to 0, as in Pillow: with 4 bits, 0 to 255 become 16 levels from 0 to 240."""

    op = "posterization"
    examples = same_type("posterization: {bits: 4}")

    bits: Bits
    """How many bits stay, from 1 to 8; 8 changes nothing."""

    def idle(self) -> bool:
        return self.bits == 8

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        step = 2 ** (8 - self.bits)
        return repeated([x // step * step for x in range(256)], u)


class RandomPosterization(LookupTableTransform):
    """Sets the low bits of every value to 0, as in Pillow; the number of bits that stay is drawn, each as likely."""

    op = "random_posterization"
    random = True
    draws = 1
    examples = same_type("random_posterization: {bits: [4, 8]}", "random_posterization: {bits: [3, 3], probability: 0.5}")

    bits: Annotated[tuple[Bits, Bits] | AnySchedule, within(1, 8)]
    """The least and the greatest number of bits that stay, from 1 to 8; 8 changes nothing."""

    def idle(self) -> bool:
        return super().idle() or span_range(self.bits)[0] == 8

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"bits": whole_between(u[..., 0], span_range(self.bits))}

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return posterized(self.drawn(u)["bits"])
