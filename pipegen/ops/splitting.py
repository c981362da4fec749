"""Defines how the records of a source are divided into splits: a section of a spec, or a key of a part of a mix."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipegen.ops.model import Model
from pipegen.ops.transform import SplitName

Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]


class ColumnMethod(Model):
    """Splits named by a column of a table."""

    column: Annotated[int, Field(ge=0)] | Annotated[str, Field(min_length=1)]
    """The name of the column, or its number from 0, whose values name the splits."""


class PathGroup(Model):
    """Records whose path gives the same match belong together."""

    path: str
    """A regular expression (RE2: no look-around, no back-references) searched in the relative path; its first group (or the whole
    match) names the group."""


class Folds(Model):
    """Cross-validation: the data is cut into `count` folds, and one of them is the validation split."""

    count: Annotated[int, Field(ge=2)]
    """The number of folds."""
    fold: Annotated[int, Field(ge=0)]
    """The fold that is the validation split, from 0."""


class Splits(Model):
    """Divides the data into splits."""

    parts: dict[SplitName, Annotated[float, Field(gt=0, lt=1)] | Annotated[int, Field(ge=1)] | str] = {}
    """The splits with their sizes: fractions of the data or counts of examples. With `method: folder` or a column, the
    value that names the split in the data."""
    method: Literal["random", "hash", "folder", "keras", "keras_utility"] | ColumnMethod = "random"
    """How records are assigned to splits. `random`: exact sizes, by the rank of a hash of the relative path. `hash`: a threshold
    on the hash, so that adding data moves nothing; it is the default of sources whose files hold many records each, for sizes that are
    fractions. `folder`: the first folder names the split. `keras`: the first files
    of each class are validation, as with Keras' `ImageDataGenerator`. `keras_utility`: the files are shuffled by `splits.seed` and the last
    of them are validation, as with `keras.utils.image_dataset_from_directory`."""
    stratify: Literal["label"] | None = None
    """Keep the share of each class the same in every split, exact to one example per class."""
    group: Annotated[int, Field(ge=0)] | Annotated[str, Field(min_length=1)] | PathGroup | None = None
    """Keep records of one group in one split: `{path: REGEX}`, or of a table the name of a column, or its number from 0."""
    folds: Folds | None = None
    """Cross-validation; may stand beside `parts: {test: 0.1}`."""
    seed: Seed = 0
    """The seed of the split alone, so that another top-level seed keeps the validation set."""
    exclude: str | None = None
    """A file of relative paths, one a line, to leave out of the split that each is in: no other record moves. Records that lie many in a
    file are `FILE#ROW`, and beside a `mix` the name of the part comes first, `PART/PATH`. `pipegen report` writes one
    of copies that leak from split to split. What `errors: {exclude: FILE}` names is left out before records are assigned."""

    def by_default(self, method: Literal["random", "hash"]) -> Splits:
        """Returns splits that say no method with that of the source, where it goes with what they say."""
        fractions = bool(self.parts) and all(isinstance(size, float) for size in self.parts.values())
        stays = "method" in self.model_fields_set or not fractions or self.folds is not None or self.stratify is not None
        return self if stays or method == "random" else self.model_copy(update={"method": method})
