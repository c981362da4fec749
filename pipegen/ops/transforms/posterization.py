"""Keep only the highest bits of each value."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.deterministic import DeterministicLookupTable
from pipegen.ops.lowering.tables import repeated


class Posterization(DeterministicLookupTable):
    """Sets the low bits of every value to 0, as in Pillow: with 4 bits, 0 to 255 become 16 levels from 0 to 240."""

    op = "posterization"
    examples = (Example("posterization: {bits: 4}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),)

    bits: Annotated[int, Field(ge=1, le=8)]
    """How many bits stay, from 1 to 8; 8 changes nothing."""

    def idle(self) -> bool:
        return self.bits == 8

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        step = 2 ** (8 - self.bits)
        return repeated([x // step * step for x in range(256)], u)
