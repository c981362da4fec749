"""Checks what each kind of flow asks of its `subset` and its `seed`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.compat.checks import warn
from pipegen.compat.specs import augments

if TYPE_CHECKING:
    from pipegen.compat.arguments import Arguments


def check_subset(generator: Arguments, subset: str | None) -> None:
    """Check a subset against the generator; a warning says what is different from Keras.

    Raises:
        ValueError: For an unknown word, or a generator without a `validation_split`.
    """
    if subset not in (None, "training", "validation"):
        raise ValueError(f"`subset` is 'training', 'validation' or None, got {subset!r}")
    if subset is not None and not generator._validation_split:
        raise ValueError(f"`subset={subset!r}` needs a `validation_split` of the generator")
    if subset == "validation" and augments(generator):
        warn("the validation subset is not augmented here; Keras augments it")


def rows_of(generator: Arguments, subset: str | None, count: int) -> range:
    """The rows of a subset: the first `validation_split` of them are for validation."""
    cut = int(count * generator._validation_split) if subset is not None else 0
    return range(cut) if subset == "validation" else range(cut, count)


def seed_of(given: int | None) -> int:
    """The seed that was given, or one from NumPy's global stream."""
    import numpy as np

    return int(given) if given is not None else int(np.random.randint(2**31 - 1))
