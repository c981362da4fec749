"""Handles a generator that was to be fitted and was not: as in Keras a flow does without, and says so."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from pipegen.compat.refusals import warn

if TYPE_CHECKING:
    from pipegen.compat.arguments import Arguments

_A = TypeVar("_A", bound="Arguments")
_FITTED = {"featurewise_center": "mean", "featurewise_std_normalization": "std", "zca_whitening": "zca_whitening_matrix"}
"""Arguments that need `fit`, and where it leaves what it has found."""
_WITHOUT: WeakKeyDictionary[Arguments, WeakSet[Any]] = WeakKeyDictionary()
"""The flows of each generator that do without what it has not found."""


def as_fitted(generator: _A) -> _A:
    """The generator less what needs `fit` and has not been fitted, with a warning for each such argument.

    A flow cannot find it out by itself, as a spec of `to_spec` does: validation data would be measured by itself.
    """
    absent = {argument: name for argument, name in _FITTED.items() if getattr(generator, argument) and getattr(generator, name) is None}
    if not absent:
        return generator
    taken = copy(generator)
    for argument, name in absent.items():
        setattr(taken, argument, False)
        warn(
            f"`{argument}` has no effect on this flow, since nothing has been fitted; before making the flow, call `fit` with training "
            f"images, or set `.{name}`"
        )
    return taken


def does_without(flow: object, generator: Arguments) -> None:
    """Remember that a flow was made before its generator was fitted."""
    _WITHOUT.setdefault(generator, WeakSet()).add(flow)


def check_flows(generator: Arguments) -> None:
    """Warn of the flows that were made before the generator was fitted: in Keras they would take what has been found now."""
    count = len(_WITHOUT.pop(generator, ()))
    if count:
        which = "a flow of this generator was" if count == 1 else f"{count} flows of this generator were"
        warn(f"{which} made before `fit`, and will not take what it has found; make flows after it")
