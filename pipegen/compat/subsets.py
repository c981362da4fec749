"""The arguments `subset` and `seed` of flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.compat.checks import warn
from pipegen.compat.specs import augments

if TYPE_CHECKING:
    from pipegen.compat.arguments import Arguments


def check_subset(generator: Arguments, subset: str | None) -> None:
    """Checks a subset against the generator; warns of a difference from Keras.

    Raises:
        ValueError: For an unknown word, or a generator without a `validation_split`.
    """
    if subset not in (None, "training", "validation"):
        raise ValueError(f"`subset` is 'training', 'validation' or None, got {subset!r}")
    if subset is not None and not generator._validation_split:
        raise ValueError(f"`subset={subset!r}` needs a generator with a `validation_split`")
    if subset == "validation" and augments(generator):
        warn("the validation subset is not augmented here; Keras augments it")


def rows_of(generator: Arguments, subset: str | None, count: int) -> range:
    """Rows of a subset: the first `validation_split` of all rows are for validation."""
    cut = int(count * generator._validation_split) if subset is not None else 0
    return range(cut) if subset == "validation" else range(cut, count)


def seed_of(given: int | None) -> int:
    """The given seed, or one from NumPy's global stream."""
    import numpy as np

    return int(given) if given is not None else int(np.random.randint(2**31 - 1))
