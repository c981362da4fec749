"""What the language reserves for later, in one table: the loader answers "not yet" where it would say "unknown".

To bring something in, add it to the models or the ops and remove it here; what is registered wins over this table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipegen.spec.source_map import KeyPath

_TABLES = "with tables"
_LATER = "later"

KEYS: dict[KeyPath, str] = {
    ("tests",): "assertions on shapes, ranges and counts",
    ("stages",): "progressive resizing",
    ("runtime", "service"): "the tf.data service",
    ("runtime", "cache", "disk"): "a cache in a folder",
    ("splits", "method", "column"): "splits named by a column of a table",
}
"""Keys, with what they will hold."""

SOURCES: dict[str, str] = {
    "csv": _TABLES,
    "parquet": _TABLES,
    "dataframe": _TABLES,
    "arrays": _TABLES,
    "files": _TABLES,
    "tfrecord": _LATER,
    "tfds": _LATER,
    "hdf5": _LATER,
    "webdataset": _LATER,
    "array_record": _LATER,
    "audio_folder": _LATER,
    "text": _LATER,
    "mix": _LATER,
}

SOURCE_KEYS = frozenset({"features", "of", "bits"})
"""Arguments that describe features one by one."""

STEPS = frozenset(
    {
        "rotation",
        "translation",
        "zoom",
        "random_affine",
        "random_perspective",
        "random_color_jitter",
        "random_channel_shift",
        "random_gamma",
        "random_grayscale",
        "solarization",
        "random_solarization",
        "posterization",
        "random_posterization",
        "inversion",
        "random_inversion",
        "random_invert",
        "auto_contrast",
        "random_auto_contrast",
        "equalization",
        "random_equalization",
        "gaussian_blur",
        "random_gaussian_blur",
        "sharpness",
        "random_sharpness",
        "gaussian_noise",
        "random_gaussian_noise",
        "random_erasing",
        "random_elastic",
        "mixup",
        "cutmix",
        "mosaic",
        "rand_augment",
        "trivial_augment",
        "auto_augment",
        "one_of",
        "some_of",
        "python",
    }
)

SCHEDULES = frozenset({"linear", "cosine", "step", "table"})
"""A magnitude that changes over the epochs: `{linear: {from, to, epochs}}`."""

VALUES: dict[tuple[str, str], str] = {
    ("interpolation", "bicubic"): "bicubic resampling of geometric steps",
}
"""Arguments of steps with values that are to come."""


def reserved_value(key: str, value: Any) -> str | None:
    """What a reserved value of a step's argument is, else `None`."""
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in SCHEDULES:
        return "a magnitude that changes over the epochs"
    return VALUES.get((key, value)) if isinstance(value, str) else None
