"""`log`: the logarithm of spectra."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal

from pydantic import PrivateAttr

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.spectra import LogScale
from pipegen.ops.families.neighbourhood import Neighbourhood
from pipegen.ops.families.sounds import SPECTRA, SoundTransform, require_sound
from pipegen.ops.kinds.audio import Sound
from pipegen.ops.stage import StepRef
from pipegen.ops.step_bases import UnconditionalTransform, centred_values, is_standardised
from pipegen.ops.traits import Example
from pipegen.ops.transform import Transform
from pipegen.types import FeatureType, Interval

_POWERS = SPECTRA.with_(interval=Interval(0, 1e5), details=Sound(16000, 160.0, "powers"))


class Log(UnconditionalTransform, LogScale, SoundTransform):
    """Computes the logarithm of spectra: y = scale · log(max(x, floor)) + shift, or of x + offset.

    In decibels it is 10 · log10(x) after `power: 2` of the step that makes spectra, and 20 · log10(x) after `power: 1`; `log: {base: db,
    top: 80}` is librosa's `power_to_db` and `amplitude_to_db` with their defaults.
    """

    op = "log"
    form: ClassVar[Literal["spectra"]] = "spectra"
    cost = 1.0
    examples = (
        Example("log", _POWERS, "float32[98×64×1] in [-23.0259, 11.5129]"),
        Example("log: {base: db, top: 80}", _POWERS, "float32[98×64×1] in [-100, 50]"),
        Example("log: {offset: 1.0e-6}", _POWERS, "float32[98×64×1] in [-13.8155, 11.5129]"),
    )

    _power: int = PrivateAttr(default=2)  # of |X|, once the input is known

    def on(self, x: FeatureType) -> Transform:
        step = self.model_copy()
        step._power = power_of(x)
        return step

    def infer(self, x: FeatureType) -> FeatureType:
        found = require_sound(self, x, self.form)
        if found.holds in ("logarithms", "coefficients"):
            raise OpError("PG213", f"`{self.op}` gets {found.holds}: a logarithm has been taken before", help="leave this step out")
        if is_standardised(x):
            message = f"`{self.op}` expects values from 0 on, but gets {centred_values(x)}"
            raise OpError("PG214", message, help="move it before the step that subtracts the mean")
        values = self.range_of(x.interval, power_of(x))
        return x.with_(dtype="float32", interval=values, details=replace(found, holds="logarithms"))

    def stage(self, feature: str, ref: StepRef[Any], x: FeatureType) -> Neighbourhood:
        return replace(super().stage(feature, ref, x), starts_kernel=self.top is not None)  # the largest value is read first

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        from pipegen.ops.lowering.linear import working
        from pipegen.ops.lowering.spectra import logarithm  # not every spec needs it

        return logarithm(tf.cast(images, working(images)), self, self._power)


def power_of(x: FeatureType) -> int:
    """The power of |X| that spectra of type `x` hold; 2 if it is unknown."""
    return 1 if isinstance(x.details, Sound) and x.details.holds == "magnitudes" else 2
