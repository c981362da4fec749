"""Tables and files for flows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from pipegen.arguments import one_of
from pipegen.compat.checks import warn
from pipegen.compat.images import Array
from pipegen.frozen import dataclass
from pipegen.lazy import np

CLASS_MODES = ("binary", "categorical", "input", "multi_output", "raw", "sparse", None)
_OF_CLASSES = ("binary", "categorical", "sparse")
OLD_WORDS = {
    "has_ext": "the table has complete file names",
    "sort": "rows have the order of the table",
    "drop_duplicates": "all rows are kept, so drop duplicates from the table",
}
"""Deprecated keywords, and the behaviour instead."""
_EXTENSIONS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")


@dataclass(frozen=True)
class Frame:
    """The rows of a flow.

    Attributes:
        files: The cells of `x_col`.
        targets: One array, several for `multi_output`, none without targets.
        weights: The cells of `weight_col`.
        class_indices: The index of each class, by name; `None` without classes.
        classes: The class index of each row, or a list of them.
    """

    files: list[str]
    targets: list[Array] = field(default_factory=list)
    weights: Array | None = None
    class_indices: dict[str, int] | None = None
    classes: list[Any] | None = None

    def rows(self, kept: Sequence[int]) -> Frame:
        """Selects rows."""
        at = list(kept)
        return replace(
            self,
            files=[self.files[i] for i in at],
            targets=[t[at] for t in self.targets],
            weights=None if self.weights is None else self.weights[at],
            classes=None if self.classes is None else [self.classes[i] for i in at],
        )


def read_frame(given: Mapping[str, Any], dtype: Any) -> Frame:
    """Reads the columns of a DataFrame.

    Args:
        given: The arguments of the constructor of `DataFrameIterator`.
        dtype: The dtype of encoded classes.

    Raises:
        TypeError: For cells of the wrong type for the class mode.
        ValueError: For an unknown class mode, or a number of classes that does not fit it.
    """
    table, class_mode, x_col, y_col, weight_col = (given[name] for name in ("dataframe", "class_mode", "x_col", "y_col", "weight_col"))
    one_of("class_mode", class_mode, CLASS_MODES, repr)
    files = list(table[x_col])
    odd = next((f for f in files if not isinstance(f, str)), None)
    if odd is not None:
        raise TypeError(f"the column {x_col!r} must contain paths as text, but {odd!r} is {type(odd).__name__}")
    weights = None if weight_col is None else np.asarray(table[weight_col])
    if weights is not None and weights.dtype.kind not in "biuf":
        raise TypeError(f"the column {weight_col!r} must contain weights as numbers, but it is {weights.dtype}")
    frame = Frame(files, weights=weights)
    kept = _there(files, given["directory"]) if given["validate_filenames"] else list(range(len(files)))
    if class_mode in _OF_CLASSES:
        frame, labelled = _with_classes(frame, list(table[y_col]), given, dtype, kept)
        kept = [i for i in kept if i in labelled]
    elif class_mode == "raw":
        frame = replace(frame, targets=[_cells(table[list(y_col) if isinstance(y_col, (list, tuple)) else y_col])])
    elif class_mode == "multi_output":
        if not isinstance(y_col, list):
            raise TypeError(f"`class_mode='multi_output'` takes a list of columns as `y_col`, got {y_col!r}")
        frame = replace(frame, targets=[_cells(table[column]) for column in y_col])
    return frame if len(kept) == len(files) else frame.rows(kept)


def without_old_words(class_mode: str | None, **given: bool | None) -> str | None:
    """Replaces a deprecated class mode; warns of it, and of each of `OLD_WORDS`, which have no effect since keras-preprocessing 1.1."""
    for name, value in given.items():
        if value is not None:
            warn(f"`{name}` has no effect, as in Keras: {OLD_WORDS[name]}", DeprecationWarning)
    if class_mode == "other":
        warn("`class_mode='other'` is deprecated: use 'raw'", DeprecationWarning)
        return "raw"
    return class_mode


def _cells(columns: Any) -> Array:
    """Converts a column, or several, to an array; stacks cells that are arrays or lists of one shape.

    Raises:
        TypeError: For cells of several shapes.
    """
    cells = np.asarray(columns)
    if not len(cells) and cells.dtype == object:  # an empty column has no dtype of its own
        return cells.astype(np.float32)
    if cells.dtype != object or cells.ndim != 1 or not isinstance(cells[:1].tolist()[0] if len(cells) else None, (np.ndarray, list, tuple)):
        return cells
    try:
        return np.stack([np.asarray(cell) for cell in cells])
    except ValueError as error:
        raise TypeError(f"the cells of a column of targets must be arrays of one shape: {error}") from error


def _there(files: Sequence[str], directory: Any) -> list[int]:
    """Lists the rows whose files exist and have a suffix of an image; warns of the others."""
    base = os.fspath(directory) if directory is not None else ""
    kept = [i for i, f in enumerate(files) if f.lower().endswith(_EXTENSIONS) and os.path.isfile(os.path.join(base, f))]
    if len(kept) < len(files):
        first = files[next((row for row, i in enumerate(kept) if row != i), len(kept))]
        warn(f"{len(files) - len(kept)} of {len(files)} rows are left out: their image files do not exist, such as {first!r}")
    return kept


def _with_classes(frame: Frame, cells: list[Any], given: Mapping[str, Any], dtype: Any, kept: Sequence[int]) -> tuple[Frame, set[int]]:
    """Encodes classes; returns also the rows with one of the wanted classes, by default those of the `kept` rows."""
    classes, class_mode, y_col = given["classes"], given["class_mode"], given["y_col"]
    several = class_mode == "categorical"
    for cell in cells:
        parts = cell if several and isinstance(cell, (list, tuple)) else [cell]
        if not all(isinstance(part, str) for part in parts):
            what = "text, or lists of text," if several else "text"
            raise TypeError(f"`class_mode={class_mode!r}`: the column {y_col!r} must contain {what} but {cell!r} is {type(cell).__name__}")
    lists = [list(cell) if isinstance(cell, (list, tuple)) else [cell] for cell in cells]
    number = len(set(classes) if classes else {part for parts in lists for part in parts})
    if class_mode == "binary" and number != 2:
        raise ValueError(f"`class_mode='binary'` needs two classes, got {number}")
    names = list(dict.fromkeys(classes)) if classes else sorted({part for i in kept for part in lists[i]})
    index = {name: i for i, name in enumerate(names)}
    numbers = [[index[part] for part in parts if part in index] for parts in lists]
    encoded: Array = np.zeros((len(cells), len(names)), dtype)
    for row, found in enumerate(numbers):
        encoded[row, found] = 1
    flat = [found[0] if len(found) == 1 else found for found in numbers]
    target = encoded if several else np.array([found[0] if found else 0 for found in numbers], dtype)
    return replace(frame, targets=[target], class_indices=index, classes=flat), {i for i, found in enumerate(numbers) if found}


_PICTURES = ("jpg", "jpeg", "bmp", "png", "ppm", "tif", "tiff")
_IMAGES = (".png", ".tif", ".tiff", ".pgm", ".jpg", ".jpeg", ".bmp", ".ppm", ".gif", ".webp")


def validate_filename(filename: str, white_list_formats: Iterable[str]) -> bool:
    """Checks if a file exists and has one of these endings, such as `("png", "jpg")`, in upper or lower case."""
    return filename.lower().endswith(tuple(white_list_formats)) and os.path.isfile(filename)


def list_pictures(directory: str | os.PathLike[str], ext: str | Iterable[str] = _PICTURES) -> list[str]:
    """Lists the images of a folder and of the folders below it, each sorted.

    Args:
        directory: The folder.
        ext: The endings of images, without the dot.
    """
    endings = tuple("." + ending for ending in ([ext] if isinstance(ext, str) else ext))
    return [file for file in files_below(directory) if file.lower().endswith(endings)]


def files_below(folder: str | os.PathLike[str], *, links: bool = False) -> Iterator[str]:
    """Yields the files of a folder and of its folders, each sorted."""
    for place, folders, files in os.walk(folder, followlinks=links):
        folders.sort()
        yield from (os.path.join(place, file) for file in sorted(files))


def is_deep(files: Iterable[str]) -> bool:
    """Checks if the first image among files is gray with 16 bits, which Keras keeps and a spec must declare.

    The others are alike, or raise an error when they are decoded.
    """
    from PIL import Image, UnidentifiedImageError

    first = next((file for file in files if file.lower().endswith(_IMAGES)), None)
    if first is None:
        return False
    try:
        with Image.open(first) as image:
            return image.mode.startswith("I")  # 16 bits are `I;16`, or `I` in earlier versions of Pillow
    except (OSError, UnidentifiedImageError):
        return False  # the error is raised when the file is read
