"""Finds what a user's subclass overrides, and of that what nothing would call: a flow is compiled from arguments."""

from __future__ import annotations

from collections.abc import Iterable

from pipegen.compat.refusals import UnsupportedArgument

OF_A_GENERATOR = ("get_random_transform", "apply_transform", "random_transform", "standardize")
"""Methods that the iterators of one era of Keras or another call for each image."""
OF_AN_ITERATOR = (
    "_get_batches_of_transformed_samples",
    "_flow_index",
    "_set_index_array",
    "set_processing_attrs",
    "white_list_formats",
    "allowed_class_modes",
    "filepaths",
    "labels",
    "sample_weight",
    "__len__",
)
"""What decides in Keras' iterators which images are in a batch, or what is done to them."""


def overridden(thing: object, base: type, name: str) -> bool:
    """Returns whether a class that is derived from one of this package has a method, or another attribute, of its own."""
    ours = base.__module__.rpartition(".")[0]
    kinds = type(thing).__mro__
    return any(name in vars(kind) and not kind.__module__.startswith(ours) for kind in kinds[: kinds.index(base)])


def check_overrides(thing: object, base: type, names: Iterable[str], remedy: str) -> None:
    """Refuse a subclass, or a changed instance, whose methods would be passed over in silence.

    Args:
        thing: A generator, or an iterator.
        base: Its class in this package.
        names: What nothing calls.
        remedy: What to do instead.

    Raises:
        UnsupportedArgument: Which names the first of them.
    """
    own = vars(thing)
    found = next((name for name in names if overridden(thing, base, name) or callable(own.get(name))), None)
    if found is not None:
        who = "the instance" if found in own else type(thing).__name__
        why = f"{who} overrides it, and batches come from a compiled pipeline, which would pass over it"
        raise UnsupportedArgument(found, why, remedy)
