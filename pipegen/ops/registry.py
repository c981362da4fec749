"""Look-up of ops by name. Tables map the ops of `ops/transforms` and `ops/datatests` to files; a test compares them. Each file of
`ops/sources`, not counting its folders, holds the source of its name, unless a table names several.

A file is imported when one of its ops is first looked up: a spec uses few of them, and `pipegen validate` must not wait for the rest.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections import UserDict
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import ValidationError

from pipegen.errors import InternalError
from pipegen.ops.data_test import DataTest
from pipegen.ops.sources.listing.base import Source
from pipegen.ops.transform import Transform

_T = TypeVar("_T", Transform, Source, DataTest)
_STEPS = {
    "affine": "affine random_affine",
    "aug_mix": "aug_mix",
    "auto_augment": "auto_augment",
    "background": "random_noise",
    "blurs": "defocus_blur gaussian_blur median_blur motion_blur random_advanced_blur random_box_blur "
    "random_chromatic_aberration random_defocus_blur random_gaussian_blur random_glass_blur "
    "random_median_blur random_motion_blur random_zoom_blur",
    "box_crops": "random_box_crop random_box_safe_crop random_crop_around random_iou_crop",
    "brightness": "brightness random_brightness",
    "channels": "random_channel_drop random_channel_shift random_channel_shuffle random_rgb_shift",
    "color_jitter": "random_color_jitter random_photometric_distort",
    "color_temperature": "random_color_temperature random_pca_lighting",
    "contrast": "auto_contrast contrast random_auto_contrast random_contrast",
    "copy_paste": "copy_paste",
    "crop": "center_crop corner_crop crop crop_or_pad random_crop",
    "decode": "decode",
    "degradation": "jpeg random_downscale random_jpeg",
    "delta": "delta",
    "distortions": "random_elastic random_grid_distortion random_optical_distortion random_piecewise_affine random_thin_plate_spline",
    "domain_adaptation": "random_fourier_adaptation random_histogram_matching",
    "dropout": "random_coarse_dropout random_erasing random_grid_dropout random_grid_mask random_pixel_dropout",
    "equalization": "clahe equalization random_clahe random_equalization",
    "flip": "flip random_flip",
    "frequency_filters": "band_pass high_pass low_pass random_band_pass random_high_pass random_low_pass",
    "gain": "fade gain loudness polarity random_clipping random_fade random_gain random_loudness random_polarity",
    "gamma": "gamma random_gamma",
    "grayscale": "grayscale random_grayscale random_sepia sepia",
    "grid_shuffle": "random_grid_shuffle",
    "hue": "hue random_hsv random_hue",
    "light": "random_illumination random_plasma",
    "log": "log",
    "mixup": "cutmix mixup",
    "morphology": "random_morphology",
    "mosaic": "mosaic",
    "noise": "random_additive_noise random_gaussian_noise random_iso_noise random_salt_and_pepper random_shot_noise",
    "normalize": "normalize",
    "one_of": "one_of random_order some_of",
    "pad": "pad random_zoom_out",
    "perspective": "perspective random_perspective",
    "posterization": "posterization random_posterization",
    "python": "python random_python",
    "rand_augment": "rand_augment trivial_augment",
    "rescale": "cast rescale",
    "resize": "random_resized_crop random_shorter_side resize scale_jitter",
    "reverb": "random_reverb",
    "rotate_90": "random_d4 random_rotate_90 random_transpose rotate_90 transpose",
    "rotation": "random_rotation rotation",
    "saturation": "random_saturation saturation",
    "series": "difference fill_missing random_jitter random_mask random_scale",
    "sharpness": "random_emboss random_sharpness random_unsharp_mask sharpness",
    "shear": "random_shear shear",
    "solarization": "invert random_invert random_solarization random_solarize_add solarization",
    "spec_augment": "spec_augment",
    "spectrogram": "mel_spectrogram mfcc spectrogram",
    "stain": "random_stain",
    "standardize": "standardize",
    "timing": "random_pitch random_shift random_speed random_time_mask random_time_stretch resample trim",
    "time_warp": "random_time_warp random_window_warp",
    "tone_curve": "random_tone_curve",
    "translation": "random_translation translation",
    "weather": "random_fog random_plasma_shadow random_rain random_shadow random_snow random_spatter random_sun_flare",
    "whiten": "whiten",
    "zoom": "random_zoom zoom",
}
"""The steps of each file of `ops/transforms`."""
_DATA_TESTS = {
    "columns": "accepted disjoint no_leak present unique",
    "labels": "balance classes examples",
    "python": "python",
    "values": "mean range shape std",
}
"""The tests of data of each file of `ops/datatests`."""
_SOURCES = {
    "class_folders": "audio_folder image_folder",
    "databases": "lmdb sqlite",
    "table_sources": "csv dataframe excel jsonl parquet sql",
    "webdataset": "webdataset zip",
}
"""The sources of the files of `ops/sources` that hold several."""


def _homes(files: Mapping[str, str]) -> dict[str, str]:
    """Inverts a table: the file of each op, sorted by op."""
    return dict(sorted((op, file) for file, ops in files.items() for op in ops.split()))


def _ops_in(module: str, base: type[_T]) -> dict[str, type[_T]]:
    """Imports a module; returns the ops that it defines, by name."""
    types = [v for v in vars(importlib.import_module(module)).values() if isinstance(v, type) and issubclass(v, base)]
    return {v.op: v for v in types if v.__module__ == module and "op" in vars(v)}


class _Ops(UserDict[str, Any]):
    """The ops of a folder by name: each is a class, or until its first look-up the name of the file that has it. Ops of other packages can
    be added."""

    def __init__(self, package: str, base: type[Any], homes: Mapping[str, str]) -> None:
        super().__init__(homes)
        self._package, self._base, self._homes = package, base, homes

    def __getitem__(self, name: str) -> Any:
        home = self.data[name]
        if isinstance(home, str):
            due = {op for op, file in self._homes.items() if file == home}
            found = _ops_in(f"{self._package}.{home}", self._base)
            if set(found) != due:
                folder = self._package.removeprefix("pipegen.").replace(".", "/")
                raise InternalError(f"{folder}/{home}.py defines {sorted(found)}, but `ops/registry.py` expects {sorted(due)}")
            self.data |= {op: found[op] for op, known in self.data.items() if known == home}
        return self.data[name]


@cache
def transforms() -> Mapping[str, type[Transform]]:
    """Returns all steps by their names in a spec, sorted."""
    return _Ops("pipegen.ops.transforms", Transform, _homes(_STEPS))


@cache
def datatests() -> Mapping[str, type[DataTest]]:
    """Returns all tests of data by their names in a spec, sorted."""
    return _Ops("pipegen.ops.datatests", DataTest, _homes(_DATA_TESTS))


@cache
def sources() -> Mapping[str, type[Source]]:
    """Returns all sources by their names in a spec, sorted."""
    package = "pipegen.ops.sources"
    files = (info.name for info in pkgutil.iter_modules(importlib.import_module(package).__path__) if not info.ispkg)
    return _Ops(package, Source, _homes({file: _SOURCES.get(file, file) for file in files}))


def read_inner(value: Any, base: type[_T], known: Mapping[str, type[_T]], unknown: str) -> _T:
    """Builds a step or a source inside another from its form in a spec: a word, or a map with one key. `ValueError`, which begins with
    `unknown`, for another word."""
    if isinstance(value, base):
        return value
    name, given = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else (value, {})
    cls = known.get(name) if isinstance(name, str) else None
    if cls is None:
        raise ValueError(f"{unknown} `{name}`")
    given = cls.written_out(given) if issubclass(cls, Source) else given
    return cls.model_validate_json(json.dumps(given), strict=True)


def goes_bare(cls: type[Any]) -> bool:
    """Checks that an op needs no arguments, also by rules over several, such as "give `size` or `shorter_side`"."""
    try:
        cls()
    except ValidationError:
        return False
    return True


@cache
def default_decoder() -> Transform:
    """Returns the step that decodes if a spec has none."""
    return transforms()["decode"]()
