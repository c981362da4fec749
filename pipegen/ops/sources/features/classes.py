"""From an array of labels to class indices and class names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.ops.sources.listing.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipegen.ops.sources.listing.strings import Ints

Classes = int | tuple[str, ...] | None
_MOST = 100_000


def read_labels(
    name: str, classes: Classes, offset: int, given: Any, place: Callable[[int], str] | None = None
) -> tuple[Ints, tuple[str, ...]]:
    """The class index of each row, int64 `(n,)`, and the classes.

    Args:
        name: The feature, for messages.
        classes: The names of the classes, or how many there are, or `None` where the labels say so.
        offset: What is subtracted from stored numbers.
        given: Class indices or class names, `(n,)` or `(n, 1)`.
        place: Where a row stands, for messages; by default its number.

    Raises:
        OpError: `PG402` for no rows, `PG420` for labels that name no class.
    """
    import numpy as np

    where = place or (lambda row: f"row {row} of `{name}`")
    labels = np.asarray(given)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise OpError("PG420", f"`{name}` needs one label a row, and its shape is {labels.shape}", help=_one_hot(name, labels))
    if not len(labels):
        raise OpError("PG402", f"the array `{name}` has no rows")
    if labels.dtype.kind in "USO" and all(isinstance(v, (str, bytes)) for v in labels):
        return _named(name, classes, [v.decode() if isinstance(v, bytes) else str(v) for v in labels], where)
    numbers = whole_numbers(name, labels, where) - offset
    return _numbered(name, classes, offset, numbers, where)


def _one_hot(name: str, labels: Any) -> str | None:
    if labels.ndim != 2:
        return None
    return f"for one-hot labels pass `y.argmax(axis=1)`; `output: {{encode: {{{name}: one_hot}}}}` encodes them again"


def whole_numbers(name: str, labels: Any, where: Callable[[int], str]) -> Any:
    """Reads labels as int64; floats that are whole numbers are those.

    Raises:
        OpError: `PG420`.
    """
    import numpy as np

    if labels.dtype.kind not in "biuf":
        raise OpError("PG420", f"the labels of `{name}` are {labels.dtype}", help="labels are class indices or class names")
    if labels.dtype.kind == "f":
        wrong = ~(np.isfinite(labels) & (np.floor(labels) == labels))
        if wrong.any():
            row = int(np.argmax(wrong))
            message = f"{where(row)} is {labels[row]:g}, and {count(int(wrong.sum()), 'label')} of {len(labels)} no class index"
            raise OpError("PG420", message, help="a class index is a whole number; leave rows without a label out")
    return labels.astype(np.int64)


def _numbered(name: str, classes: Classes, offset: int, numbers: Ints, where: Callable[[int], str]) -> tuple[Ints, tuple[str, ...]]:
    import numpy as np

    low, high = int(numbers.min()), int(numbers.max())
    known = len(classes) if isinstance(classes, tuple) else classes
    if known is None:
        known = high + 1
        if known > _MOST:
            raise OpError(
                "PG420", f"`{name}` goes up to {high + offset}, which would be {known:,} classes", help="say how many `classes` there are"
            )
    if low < 0 or high >= known:
        row = int(np.argmax((numbers < 0) | (numbers >= known)))
        there = f"{count(known, 'class', 'classes')} are {offset} to {known - 1 + offset}"
        message = f"{where(row)} is {int(numbers[row]) + offset}, and {there}"
        first = low + offset
        shifted = first in (0, 1) and high - low < known
        help_ = f"`offset: {first}` counts classes from {first}" if shifted else "give `classes` all of them, or leave such rows out"
        raise OpError("PG420", message, field="classes" if classes is not None else None, help=help_)
    names = classes if isinstance(classes, tuple) else tuple(map(str, range(offset, known + offset)))
    return numbers, names


def _named(name: str, classes: Classes, labels: Sequence[str], where: Callable[[int], str]) -> tuple[Ints, tuple[str, ...]]:
    import numpy as np

    if isinstance(classes, int):
        raise OpError(
            "PG420",
            f"the labels of `{name}` are names such as {labels[0]!r}",
            field="classes",
            help="list the names in `classes`, or leave it out",
        )
    names = classes if classes is not None else tuple(sorted(set(labels)))
    index = {known: i for i, known in enumerate(names)}
    unknown = next((i for i, label in enumerate(labels) if label not in index), None)
    if unknown is not None:
        near = closest(labels[unknown], names)
        help_ = f"is {near!r} meant?" if near else "give `classes` all of them, or leave such rows out"
        raise OpError("PG420", f"{where(unknown)} is {labels[unknown]!r}, which `classes` does not list", field="classes", help=help_)
    return np.array([index[label] for label in labels], np.int64), names
