"""Inference against reality: what the backend computes has the dtype and shape that `infer` says and values inside the
interval that it says; and a step that calls itself the identity is it.

Every registered step takes part, from its worked examples; `VARIANTS` adds arguments that the examples leave out.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml
from lowered_steps import lower, uses_of

from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.kinds.audio import Sound
from pipegen.ops.registry import transforms
from pipegen.ops.step_bases import ColourTransform
from pipegen.ops.transform import Transform
from pipegen.plan.recipe import type_after
from pipegen.types import BYTE_RANGE, FeatureType, Interval

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "affine": [{"degrees": 170, "factor": 0.3, "fill": "nearest"}, {"shear_x": 60, "shear_y": -50, "fill": {"constant": 255}}, {"x": 0}],
    "aug_mix": [
        {"magnitude": 10, "depth": 3, "alpha": 0.1, "fill": {"constant": 200}}, {"chains": 1, "geometry": False, "probability": 0.5},
        {"interpolation": "bicubic", "fill": "wrap"}, {"probability": 0},
    ],
    "auto_augment": [{"policy": "svhn", "probability": 0.5}],
    "auto_contrast": [{}],
    "band_pass": [{"low_hz": 1, "high_hz": 999, "order": 1}],
    "brightness": [{"factor": 0}, {"factor": 3}, {"factor": 1}, {"factor": 2, "delta": -300}, {"delta": 0}],
    "cast": [{"dtype": "float16"}, {"dtype": "bfloat16"}],
    "center_crop": [{"size": 1}, {"size": [24, 20]}],
    "clahe": [{"limit": 0}, {"limit": 255, "tiles": [1, 32]}, {"channel": "each", "tiles": [5, 3]}],
    "contrast": [{"factor": 0}, {"factor": 4}, {"factor": 1}],
    "copy_paste": [{"objects": 0.5}, {"background": 255, "probability": 0.5}, {"probability": 0}],
    "cutmix": [{"alpha": 0.1}, {"alpha": 9, "probability": 0.5}, {"probability": 0}],
    "crop": [{"size": [20, 3], "top": 4, "left": 29}, {"size": 1}],
    "decode": [{"channels": 1, "scaled": "never"}, {"exif": "ignore"}],
    "equalization": [{}],
    "gain": [{"db": 0}, {"db": -200}, {"db": 60}],
    "gamma": [{"gamma": 0.01}, {"gamma": 30}, {"gamma": 1}],
    "defocus_blur": [{"radius": 0}, {"radius": 0.9}, {"radius": 5}],
    "gaussian_blur": [{"sigma": 0}, {"sigma": 0.4}, {"sigma": 4}],
    "fade": [{"fade_in": 0, "shape": "exponential"}, {"fade_in": 2, "fade_out": 3, "shape": "logarithmic"}],
    "flip": [{"axis": "both", "interpolation": "bicubic"}, {"fill": {"constant": 9}}],
    "grayscale": [{}],
    "high_pass": [{"hz": 2.5, "order": 16}],
    "hue": [{"degrees": 180}, {"degrees": 0}],
    "invert": [{}],
    "mosaic": [{"centre": [0, 1]}, {"centre": [0.5, 0.5], "probability": 0.5}, {"probability": 0}],
    "jpeg": [{"quality": 1}, {"quality": 100}],
    "loudness": [{"peak": 0}, {"rms": 0}, {"peak": -90}],
    "low_pass": [{"hz": 100, "order": 1}],
    "median_blur": [{}, {"side": 5}],
    "mixup": [{"alpha": 0.01}, {"alpha": 9, "probability": 0.5}, {"probability": 0}],
    "motion_blur": [{"length": 1}, {"length": 20, "degrees": 71}],
    "normalize": [
        {"mean": [0.1, 0.2, 0.3], "std": [1, 2, 3]}, {"std": 7.3}, {"preset": "torch"}, {"preset": "tf"}, {"preset": "caffe"},
        {"preset": "convnext"},
    ],
    "one_of": [
        {"steps": [{"random_equalization": {}}, {"random_hue": {"degrees": 50, "probability": 0.5}}, "random_flip"], "weights": [0, 1, 0]},
        {"steps": [{"random_rotation": {"degrees": 90, "fill": {"constant": 200}}}, {"random_sharpness": {"factor": 0.5}}]},
        {"steps": [{"random_shear": {"degrees": 9}}, {"one_of": {"steps": ["random_flip", "random_invert"]}}], "probability": 0},
    ],
    "rand_augment": [{"magnitude": 30, "fill": {"constant": 200}}, {"num_ops": 1, "magnitude": {"step": {0: 30, 2: 0}}, "probability": 0}],
    "some_of": [
        {"count": 3, "steps": ["random_invert", {"random_zoom": {"factor": 0.5}}, {"random_contrast": {"factor": 0.9}}]},
        {"count": [0, 1], "steps": ["random_flip", "random_equalization"], "probability": 0.5},
    ],
    "standardize": [
        {"statistics": "samplewise", "center": False}, {"statistics": "samplewise", "epsilon": 1},
        {"statistics": "featurewise", "scale": False, "epsilon": 0.5}, {"statistics": "samplewise", "per": "band"},
        {"statistics": "samplewise", "per": "channel"}, {"statistics": "featurewise", "per": "band"},
    ],
    "trivial_augment": [{"fill": "wrap", "probability": 0.5}],
    "perspective": [
        {"top_left": [0.45, 0.4], "fill": {"constant": 3}}, {"bottom_right": [-0.3, 0.8], "fill": "wrap", "interpolation": "bicubic"},
        {"top_right": [0, 0]},
    ],
    "python": [
        {"function": "my_pkg.filters:trim", "shape": [22, 30, 3], "range": [-5, 256]}, {"function": "my_pkg.filters:blur", "version": 3},
    ],
    "random_python": [{"function": "my_pkg.weather:rain", "probability": 0.5}, {"function": "my_pkg.weather:rain", "probability": 0}],
    "posterization": [{"bits": 1}, {"bits": 8}],
    "random_additive_noise": [
        {"delta": [0, 255], "distribution": "laplace"}, {"delta": 0}, {"delta": 9, "each": "pixel", "probability": 0.5},
        {"delta": 90, "each": "channel"},
    ],
    "random_advanced_blur": [{"sigma": [0.1, 3], "beta": [0.2, 16]}, {"degrees": [-180, 180], "probability": 0.5}, {"probability": 0}],
    "random_box_blur": [{"reach": [0, 15]}, {"reach": 0}, {"reach": [0, 1], "probability": 0.5}],
    "random_grid_shuffle": [{"cells": [1, 16], "probability": 0.5}, {"cells": 1}, {"cells": 16}],
    "random_crop_around": [{"size": [9, 11]}, {"size": 7, "background": [0, 3]}],
    "random_box_crop": [{"probability": 0}, {"shift": 2}],
    "random_chromatic_aberration": [{"factor": [0.8, 1.25], "fill": "wrap"}, {"factor": [1, 1]}, {"probability": 0.5}],
    "random_fourier_adaptation": [{"references": "styles/", "beta": [0.5, 0.5]}, {"references": "styles/", "probability": 0}],
    "random_high_pass": [{"hz": [999, 999], "order": 9}],
    "random_histogram_matching": [
        {"references": "styles/", "share": [1, 1]}, {"references": "styles/", "match": "moments", "share": [0, 1], "probability": 0.5},
    ],
    "random_illumination": [
        {"intensity": [-1, 4], "pattern": "corner"}, {"intensity": 0}, {"intensity": 0.5, "pattern": "spot", "probability": 0.5},
    ],
    "random_morphology": [{"reach": [0, 4]}, {"reach": 0}, {"reach": 3, "operation": "dilation", "probability": 0.5}],
    "random_pixel_dropout": [{"share": [0, 1], "value": 200}, {"share": 0}, {"share": 0.5, "per_channel": True, "probability": 0.5}],
    "random_plasma": [{"brightness": 1, "contrast": [-1, 4], "sigma": 4}, {"brightness": 0}, {"contrast": 1, "probability": 0.5}],
    "random_plasma_shadow": [{"darkness": [1, 1], "sigma": 4}, {"darkness": [0, 0]}, {"probability": 0.5}],
    "random_snow": [{"point": [0, 1], "factor": 16}, {"factor": 1}, {"point": [1, 1], "probability": 0.5}],
    "random_stain": [{"factor": [0, 5], "delta": 2}, {"factor": 0, "delta": 0}, {"delta": 0.5, "probability": 0.5}],
    "random_zoom_blur": [{"factor": [1, 4], "steps": 2}, {"factor": [1, 1]}, {"fill": {"constant": 7}, "probability": 0.5}],
    "random_affine": [
        {"degrees": 180, "x": 0.5, "shear_x": 60, "factor": [0.1, 4]}, {"shear_y": 80, "interpolation": "nearest", "fill": "wrap"},
        {"degrees": 30, "interpolation": "bicubic", "fill": {"constant": 0}}, {"degrees": 30, "probability": 0.5}, {"factor": 0},
    ],
    "random_auto_contrast": [{"probability": 1}, {"probability": 0}],
    "random_band_pass": [{"low_hz": [1, 10], "high_hz": [10.5, 999], "order": 2}],
    "random_brightness": [{"factor": 0}, {"factor": [0, 3]}, {"factor": 0.9, "probability": 0.5}, {"factor": 0.5, "probability": 0},
        {"factor": [0, 3], "delta": [-300, 300]}, {"delta": 0}, {"delta": 9, "probability": 0.5}],
    "random_channel_drop": [{"count": 2}, {"count": [1, 2], "probability": 0.5}, {"probability": 0}],
    "random_channel_shift": [
        {"delta": [-300, 300]}, {"delta": [0.1, 0.4], "per_channel": True}, {"delta": 50, "probability": 0.5}, {"delta": 0},
    ],
    "random_clahe": [{"limit": [0, 255], "tiles": [1, 32]}, {"channel": "each", "probability": 0.5}, {"probability": 0}],
    "random_clipping": [{"db": 0}, {"db": [60, 200]}],
    "random_coarse_dropout": [{"holes": 40, "height": [0, 1], "width": [0, 0.01]}, {"holes": 1, "probability": 0}],
    "random_channel_shuffle": [{"probability": 0.5}, {"probability": 0}],
    "random_color_temperature": [
        {"kelvins": [3000, 15000]}, {"kelvins": [15000, 15000]}, {"light": "daylight", "kelvins": [4000, 4000], "probability": 0.5},
    ],
    "random_color_jitter": [
        {"brightness_factor": [0, 3], "hue_degrees": 180}, {"contrast_factor": [0, 4], "saturation_factor": [0, 4], "probability": 0.5},
        {"brightness_factor": 0},
    ],
    "random_contrast": [{"factor": [0, 4]}, {"factor": 0.9, "probability": 0.5}, {"factor": 0}],
    "pad": [
        {"padding": [0, 5], "fill": "wrap"}, {"padding": {"left": 70, "bottom": 3}, "fill": "reflect"}, {"divisor": [5, 16]},
        {"at_least": [24, 40], "position": "bottom_right", "fill": {"constant": 1}}, {"size": [24, 32]}, {"padding": 2, "fill": "nearest"},
    ],
    "corner_crop": [{"size": [24, 20], "corner": "top_right"}, {"size": [24, 32], "corner": "bottom_right"}],
    "random_crop": [
        {"size": [24, 20]}, {"size": 3}, {"size": 40, "padding": "as_needed", "fill": "wrap"}, {"size": [24, 32], "padding": 0},
        {"size": [28, 30], "padding": [2, 70], "fill": {"constant": 1}},
    ],
    "random_equalization": [{"probability": 1}, {"probability": 0}],
    "random_shorter_side": [{"sizes": [9], "method": "bicubic"}, {"between": [5, 30], "longer_side": 33, "method": "nearest"}],
    "random_iou_crop": [{"probability": 0}, {"overlaps": [1]}],
    "random_box_safe_crop": [{"probability": 0}],
    "random_zoom_out": [{"canvas": [1, 1.5], "fill": "reflect", "probability": 1}, {"probability": 0}, {"fill": {"constant": 1}}],
    "scale_jitter": [{"size": [20, 9], "scale": [0.01, 0.01]}, {"size": 30, "scale": [2, 3], "method": "lanczos3", "antialias": True}],
    "random_defocus_blur": [{"radius": [0, 0]}, {"radius": [0, 6], "probability": 0.5}],
    "random_downscale": [{"factor": [0.01, 1], "method": "bilinear"}, {"factor": [1, 1]}, {"factor": [0.2, 0.2], "probability": 0.5}],
    "random_emboss": [{"strength": [4, 4], "alpha": [1, 1]}, {"alpha": [0, 0]}],
    "random_glass_blur": [{"distance": 16, "sigma": 3}, {"distance": 1, "probability": 0}],
    "random_elastic": [
        {"alpha": 300, "sigma": 3}, {"alpha": 0, "sigma": 4}, {"alpha": 90, "sigma": 4, "fill": {"constant": 0}, "probability": 0.5},
        {"alpha": [20, 50], "sigma": 2, "interpolation": "bicubic", "fill": "wrap"}, {"alpha": 50, "sigma": 4, "interpolation": "nearest"},
    ],
    "random_grid_distortion": [
        {"factor": [0.2, 3], "cells": 2}, {"factor": 0.9, "fill": {"constant": 0}, "probability": 0.5}, {"factor": 0},
        {"interpolation": "bicubic"},
    ],
    "random_optical_distortion": [
        {"coefficient": [0.5, 2], "fill": {"constant": 0}}, {"coefficient": 0.3, "model": "fisheye", "probability": 0.5},
        {"coefficient": 0}, {"coefficient": 1, "interpolation": "bicubic", "fill": "wrap"},
    ],
    "random_piecewise_affine": [
        {"x": 0.2, "cells": 1, "fill": {"constant": 0}}, {"y": 0.1, "interpolation": "nearest", "probability": 0.5}, {"x": 0},
    ],
    "random_thin_plate_spline": [
        {"x": 0.2, "y": 0.3, "fill": "wrap"}, {"y": [0, 0.1], "cells": 8, "interpolation": "bicubic", "probability": 0.5}, {"x": 0},
    ],
    "random_erasing": [{"area": [0, 1], "aspect_ratio": [0.01, 100]}, {"fill": {"constant": 200}}, {"probability": 0}],
    "random_fade": [{"fade_in": 0}, {"fade_in": [2, 3], "fade_out": [0, 0], "shape": "quarter_sine"}],
    "random_flip": [{"axis": "vertical"}, {"probability": 0}, {"axis": "both", "probability": 1}],
    "random_gain": [{"db": 0}, {"db": [-90, 40], "probability": 0.5}],
    "random_gamma": [{"gamma": [0.01, 30]}, {"gamma": 0.5, "probability": 0.5}, {"gamma": 0}],
    "random_grayscale": [{"probability": 1}, {"probability": 0}],
    "random_gaussian_blur": [{"sigma": [1, 3]}, {"sigma": 0}, {"sigma": 1, "probability": 0.5}, {"sigma": 1, "probability": 0}],
    "random_gaussian_noise": [{"std": [200, 255]}, {"std": 0}, {"std": 0.2, "probability": 0.5}],
    "random_grid_dropout": [{"cells": 31, "ratio": 0.99}, {"cells": [1, 2], "fill": {"constant": 200}, "probability": 0.5}],
    "random_grid_mask": [{"unit": [0.01, 2], "degrees": [-360, 360]}, {"ratio": 0.99, "fill": {"constant": 200}}, {"probability": 0}],
    "random_hsv": [{"hue_degrees": 180, "saturation_delta": 255, "value_delta": 255, "probability": 0.5}, {"hue_degrees": 0}],
    "random_iso_noise": [{"std": 255, "hue_degrees": 40}, {"std": 0}, {"std": 9, "probability": 0.5}],
    "random_fog": [{"density": [1, 1], "patchiness": 1, "sigma": 3}, {"density": [0, 0]}, {"patchiness": 0, "probability": 0.5}],
    "random_noise": [{"snr_db": [0, 0], "color": "brown"}, {"snr_db": [60, 90], "color": "blue"}],
    "random_order": [
        {"steps": ["random_equalization", {"random_hue": {"degrees": 50, "probability": 0.5}}, {"random_rotation": {"degrees": 30}}]},
        {"steps": ["random_invert", {"random_hsv": {"hue_degrees": 50}}], "probability": 0.5},
    ],
    "random_rain": [{"density": [1, 1], "length": 3, "slant_degrees": [60, 60], "opacity": 1}, {"density": [0, 0]}, {"probability": 0.5}],
    "random_shadow": [{"darkness": [1, 1], "count": 8, "rows": [0.3, 0.3]}, {"darkness": [0, 0]}, {"count": 2, "probability": 0.5}],
    "random_spatter": [{"share": [0.9, 0.9], "opacity": 1, "of": "mud"}, {"share": [0, 0], "probability": 0.5}, {"opacity": 0}],
    "random_sun_flare": [{"intensity": [1, 1], "reach": [0.01, 2], "ghosts": 8}, {"intensity": [0, 0]}, {"upper": 0, "probability": 0.5}],
    "random_salt_and_pepper": [{"share": 1, "salt": 0.1}, {"share": 0}, {"share": 0.5, "probability": 0.5}],
    "random_shot_noise": [{"photons": [1, 1000]}, {"photons": [1, 1], "probability": 0.5}, {"probability": 0}],
    "random_hue": [{"degrees": 180}, {"degrees": 0}],
    "difference": [{"lag": 39}, {"lag": 7}],
    "fill_missing": [{"method": "linear"}, {"method": "value", "value": 3}],
    "random_jitter": [{"std": [3, 9]}, {"std": 0}, {"std": 0.2, "probability": 0.5}, {"std": 1, "probability": 0}],
    "random_mask": [{"fraction": [1, 1], "value": 9}, {"fraction": 0}, {"fraction": 0.3, "spans": 5, "probability": 0.5}],
    "random_scale": [{"factor": [0, 3]}, {"factor": [0.1, 4], "each": "channel"}, {"factor": 0.1, "probability": 0.5}],
    "random_time_warp": [{"factor": [0, 9], "knots": 64}, {"factor": 0}, {"factor": 0.9, "knots": 2, "probability": 0.5}],
    "random_window_warp": [{"fraction": 0.99, "factor": [0.01, 100]}, {"factor": [1, 1]}, {"probability": 0}],
    "crop_or_pad": [{"seconds": 0.7, "align": "center"}, {"seconds": 3, "align": "end"}, {"seconds": 1.5}],
    "random_invert": [{"probability": 1}, {"probability": 0}],
    "delta": [{"width": 3, "order": 2}],
    "log": [{"base": 10, "scale": -0.25, "shift": 1}, {"offset": 0.5, "top": 3}, {"base": "db", "floor": 0.01}],
    "mel_spectrogram": [
        {"bands": 8, "preset": "librosa"}, {"preset": "torchaudio", "window": 150, "bands": 9, "power": 1}, {"preset": "kaldi", "bands": 5},
        {"bands": 6, "norm": "slaney", "scale": "slaney", "log": {"base": "db", "top": 30}, "window_function": "blackman"},
    ],
    "mfcc": [{"preset": "librosa", "bands": 30}, {"preset": "kaldi", "coefficients": 3, "bands": 7}],
    "spec_augment": [
        {"time": 1, "bands": 16, "time_masks": 3, "fill": {"constant": -9}}, {"steps": 5, "probability": 0.5}, {"frequency": 0.5},
        {"time": 0}, {"frequency": 1, "frequency_masks": 2, "probability": 0}, {"warp": 3}, {"warp": 100, "time": 0.2, "probability": 0.5},
    ],
    "spectrogram": [
        {"window": 100, "hop": 130, "center": True, "pad": "reflect", "window_function": "povey"},
        {"window_ms": 40, "hop_ms": 20, "power": 1, "remove_mean": True, "pre_emphasis": 0.9, "full_scale": 3, "drop_last": True},
    ],
    "random_jpeg": [{"quality": [1, 100]}, {"quality": [50, 50], "probability": 0}],
    "random_loudness": [{"peak": [0, 0]}, {"peak": [-20, 0], "probability": 0.5}, {"rms": [-50, -50]}],
    "random_low_pass": [{"hz": [1, 999], "order": 3}],
    "random_motion_blur": [{"length": [1, 30], "degrees": [-360, 360]}, {"length": [1, 1]}],
    "random_median_blur": [{"probability": 1, "side": 5}, {"probability": 0}],
    "random_pca_lighting": [{"std": 900}, {"std": 0}, {"std": 30, "probability": 0.5}],
    "random_photometric_distort": [{"each": 1}, {"each": 0}, {"contrast_factor": [0, 4], "hue_degrees": 180, "probability": 0.5}],
    "random_perspective": [
        {"x": 0.3, "y": 0.19, "fill": {"constant": 7}}, {"y": [-0.5, 0.4], "fill": "nearest", "interpolation": "nearest"},
        {"x": 0.2, "interpolation": "bicubic", "probability": 0.5}, {"x": 0, "y": 0},
    ],
    "random_pitch": [{"semitones": 0}, {"semitones": [12, 24]}],
    "random_polarity": [{"probability": 1}, {"probability": 0}],
    "random_posterization": [{"bits": [1, 8]}, {"bits": [8, 8]}, {"bits": [2, 3], "probability": 0.5}],
    "random_rgb_shift": [{"red": [-300, 300]}, {"green": 20, "blue": 9, "probability": 0.5}, {"red": 0}],
    "random_resized_crop": [{"size": 9, "area": [0.01, 0.05]}, {"size": [8, 30], "method": "lanczos3"}, {"size": 12, "method": "area"}],
    "random_rotation": [
        {"degrees": 180, "fill": {"constant": 200}}, {"degrees": 90, "interpolation": "nearest"}, {"degrees": 0},
        {"degrees": 30, "probability": 0},
    ],
    "random_d4": [{"fill": {"constant": 7}}, {"probability": 0}],
    "random_reverb": [{"seconds": [0.001, 0.001]}, {"seconds": [1, 2], "direct_db": [-60, 100]}],
    "random_rotate_90": [{"fill": {"constant": 7}, "exact": True}, {"probability": 0}],
    "random_transpose": [{"probability": 1}, {"probability": 0}],
    "rotate_90": [{"turns": 3, "fill": {"constant": 7}}, {"interpolation": "bicubic"}],
    "transpose": [{"fill": "wrap"}, {"interpolation": "bicubic"}],
    "random_saturation": [{"factor": [0, 5]}, {"factor": 0}],
    "random_shear": [{"degrees": 60, "axis": "both", "fill": "wrap"}, {"degrees": 0}],
    "random_sharpness": [{"factor": [0, 20]}, {"factor": 0}, {"factor": 1, "probability": 0.5}],
    "random_sepia": [{"probability": 1}, {"probability": 0}],
    "random_solarize_add": [{"delta": 255, "threshold": 256}, {"delta": 9, "threshold": 0}, {"delta": [-9, 30.5], "probability": 0.5}],
    "random_tone_curve": [{"std": 1}, {"std": 0.4, "per_channel": True, "probability": 0.5}, {"probability": 0}],
    "random_solarization": [{"threshold": [0, 0]}, {"threshold": [256, 256]}, {"threshold": [9, 200.5], "probability": 0.5}],
    "random_shift": [{"share": [-1, 1]}, {"seconds": 9, "fill": "silence"}, {"seconds": 0}],
    "random_speed": [{"factor": [0.3, 3.5]}, {"factor": 0}],
    "random_time_mask": [{"share": [1, 1]}, {"seconds": 5}, {"share": 0}],
    "random_time_stretch": [{"factor": [0.3, 4]}, {"factor": 0}],
    "random_translation": [{"x": 0.9, "fill": "nearest"}, {"x": 0, "y": 0}],
    "random_unsharp_mask": [{"sigma": 3, "amount": [0, 8], "threshold": 0.1}, {"sigma": 1, "amount": [0, 0]}],
    "random_zoom": [{"factor": [0.1, 4]}, {"x": 0.5, "fill": {"constant": 0}}, {"factor": 0}],
    "rescale": [{"to": [-3, 0.1]}, {"scale": -1}, {"offset": 0.3}, {"scale": 1, "offset": 0}],
    "resize": [
        {"size": [9, 30]}, {"size": 40, "method": "bicubic"}, {"size": 9, "method": "lanczos3", "antialias": True},
        {"size": 7, "method": "area"}, {"size": [20, 9], "mode": "crop"}, {"size": [20, 9], "mode": "pad", "fill": {"constant": 255}},
        {"shorter_side": 11, "method": "nearest"}, {"size": [24, 32]}, {"shorter_side": 20, "longer_side": 22}, {"longer_side": 32},
    ],
    "rotation": [{"degrees": 33, "interpolation": "bicubic"}, {"degrees": -170, "fill": {"constant": 1}}, {"degrees": 0}],
    "saturation": [{"factor": 0}, {"factor": 5}, {"factor": 1}],
    "sepia": [{}],
    "solarization": [{"threshold": 0}, {"threshold": 256}, {"threshold": 99.5}],
    "shear": [{"degrees": 80, "axis": "both"}, {"degrees": 0}],
    "translation": [{"x": 1.5, "fill": "wrap"}, {"y": 0.33, "interpolation": "bicubic"}, {"x": 0}],
    "whiten": [{"center": "channel", "epsilon": 1}],
    "zoom": [{"x": 0.2, "y": 7}, {"factor": 0.3, "interpolation": "bicubic", "fill": "nearest"}, {"factor": 1}],
    "polarity": [{}],
    "trim": [{"db": 0.1, "window": 1, "hop": 1}, {"db": 200, "window": 5000, "hop": 900}],
    "resample": [{"rate": 2000}, {"rate": 441}],
    "sharpness": [{"factor": 0}, {"factor": 1}, {"factor": 20}],
}  # fmt: skip

INPUTS = [
    FeatureType("image", "uint8", (24, 32, 3), BYTE_RANGE),
    FeatureType("image", "uint8", (None, None, 3), BYTE_RANGE),
    FeatureType("image", "uint8", (24, 32, 1), BYTE_RANGE),
    FeatureType("image", "float32", (24, 32, 3), Interval(0, 1)),
    FeatureType("image", "float32", (24, 32, 3), Interval(0, 255)),
    FeatureType("image", "float32", (24, 32, 3), Interval(-1, 1)),
]
SQUARES = [FeatureType("image", "uint8", (24, 24, 3), BYTE_RANGE), FeatureType("image", "float32", (24, 24, 1), Interval(0, 1))]
"""For steps that take nothing else."""
SOUNDS = [
    FeatureType("audio", "float32", (3000, 1), Interval(-1, 1), details=Sound(2000)),
    FeatureType("audio", "float32", (None, 2), Interval(-1, 1), details=Sound(2000)),
    FeatureType("audio", "float32", (20, 16, 1), Interval(0, 40), details=Sound(2000, 20.0)),
    FeatureType("audio", "float32", (None, 16, 2), Interval(-5, 5), details=Sound(2000, 20.0)),
]
"""Samples and spectra, of a known and an unknown length."""
OF_SPEECH = [FeatureType("audio", "float32", (3000, 1), Interval(-1, 1), details=Sound(16_000))]
"""For presets that are of this rate alone."""
SERIES = [FeatureType("series", "float32", (40, 2), Interval(-5, 5)), FeatureType("series", "float32", (40, 1), Interval(0, 1))]


def arguments(op: type[Transform]) -> list[dict[str, Any]]:
    """Every set of arguments to try: the worked examples', made small, and the variants."""
    out = []
    for example in op.examples:
        written = yaml.safe_load(example.yaml)
        given = {} if isinstance(written, str) else dict(next(iter(written.values())))
        for key in ("size", "shorter_side", "at_least"):
            if key in given:
                given[key] = ([36, 40] if op.op == "pad" else [16, 20]) if isinstance(given[key], list) else 38 if op.op == "pad" else 18
        for key in ("hz", "low_hz", "high_hz"):  # the sounds here have an eighth of the rate
            if key in given:
                given[key] = [hz / 8 for hz in given[key]] if isinstance(given[key], list) else given[key] / 8
        if "shape" in given:
            given["shape"] = [24, 32, 1] if given["shape"][2] == 1 else given["shape"]
        out.append(given)
    return out + VARIANTS.get(op.op, [])


CASES = [(op, given) for op in transforms().values() for given in arguments(op)]
IDS = [f"{op.op}-{given}" for op, given in CASES]


@cache
def images(x: FeatureType) -> tuple[Array, ...]:
    """Images of a type: noise, its extremes, and a checkerboard of them; sides that are not known are 24 by 32."""
    rng = np.random.default_rng(0)
    assert x.interval is not None
    usual = (24, 32, 3) if x.kind == "image" else (3000, 2) if len(x.shape) == 2 else (20, 16, 2)
    shape = tuple(d or n for d, n in zip(x.shape, usual, strict=True))
    noise = rng.uniform(x.interval.low, x.interval.high, shape)
    extremes = np.where(rng.random(shape) < 0.5, x.interval.low, x.interval.high)
    checker = np.where((np.indices(shape).sum(0) % 2) == 0, x.interval.low, x.interval.high)
    flat = np.full(shape, x.interval.high)
    return tuple((np.rint(v) if x.dtype == "uint8" else v).astype(x.dtype) for v in (noise, extremes, checker, flat))


def inputs_for(step: Transform) -> list[tuple[FeatureType, FeatureType]]:
    """The input types that a plan lets the step take, each with what it infers."""
    from pipegen.errors import OpError

    uses = uses_of(step)
    file = [FeatureType("image", "string", ())]
    for given in (
        (file,)
        if isinstance(step, DecodeTransform)
        else (INPUTS, SQUARES, [FeatureType("image", "uint8", (18, 18, 3), BYTE_RANGE)], SOUNDS, OF_SPEECH, SERIES)
    ):
        found = []
        for x in given:
            own = step if x.kind == "image" else step.on(x)
            try:
                found.append((x, type_after(uses[0], x) if own is step and len(uses) == 1 and uses[0].choice is None else own.infer(x)))
            except OpError:
                continue
        if found:
            return found
    return []


def draws(step: Transform) -> Array:
    """Rows of numbers to try: the ends of [0, 1), and some between, with one for the gate."""
    rng = np.random.default_rng(1)
    n = max(ref.end for ref in uses_of(step)) + 1
    return np.stack([np.zeros(n), np.full(n, 1 - 2.0**-53), rng.random(n), rng.random(n)] if step.random else [np.zeros(n)])


def pairs(given: tuple[Any, ...], u: Array) -> tuple[list[Any], Array]:
    """Every image with every row of draws, as two lists of one length."""
    return [g for g in given for _ in u], np.concatenate([u] * len(given))


MANY_TAPS = ("random_advanced_blur", "random_motion_blur")
"""Steps whose programs are so long that by day their first case stands for them."""


def is_by_day(case: int) -> bool:
    """Of the cases of a step the first, the sixth and so on: the others try the same of its output."""
    op = CASES[case][0]
    place = case - next(i for i, (other, _) in enumerate(CASES) if other is op)
    return place == 0 if op.op in MANY_TAPS else place % 5 == 0


@pytest.mark.parametrize("case", [*filter(is_by_day, range(len(CASES)))], ids=IDS.__getitem__)
def test_inference_is_sound(case: int) -> None:
    """By day on a sixth of the types that suit it; the cases of a step take turns."""
    infers_soundly(*CASES[case], first=case // 3 % 6, each=6)


@pytest.mark.nightly
@pytest.mark.parametrize(("op", "given"), CASES, ids=IDS)
def test_inference_is_sound_of_every_type(op: type[Transform], given: dict[str, Any]) -> None:
    infers_soundly(op, given)


def infers_soundly(op: type[Transform], given: dict[str, Any], first: int = 0, each: int = 1) -> None:
    """What a step says of its output is so, for every input type that suits it, or each so many of them."""
    step = op.model_validate(given)
    types = inputs_for(step)
    assert types, "no input suits it"
    for x, y in types[first % len(types) :: each]:
        files = x.encoded
        own = step if x.kind == "image" else step.on(x)
        done = lower(own, x, y, *pairs(encoded(y.dtype) if files else images(x)[: 4 if x.is_static else 1], draws(step)))
        for out in done if isinstance(done, list) else [done]:
            assert out.dtype.name == y.dtype
            assert len(out.shape) == len(y.shape) + 1
            assert all(d is None or d == n for d, n in zip(y.shape, out.shape[1:], strict=True)), f"{out.shape} is no {y}"
            if y.interval is not None:
                inside(out.numpy().astype(np.float64), y)


def inside(values: Array, y: FeatureType) -> None:
    """Values in the interval, but for the rounding of float arithmetic: a unit in the last place at the larger end, or E1.

    E1 (1e-6 of the interval's width) is for what sums many float32 values, such as a mean over an area.
    """
    assert y.interval is not None
    epsilon = {"uint8": 0.0, "uint16": 0.0, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}[y.dtype]
    slack = epsilon * max(abs(y.interval.low), abs(y.interval.high), y.interval.width)
    if y.dtype == "float32":
        slack = max(slack, 1e-6 * y.interval.width)
    assert values.min() >= y.interval.low - slack, f"{values.min()} is below {y.interval}"
    assert values.max() <= y.interval.high + slack, f"{values.max()} is above {y.interval}"


@cache
def encoded(dtype: str) -> tuple[bytes, ...]:
    """Files of several formats whose values have this dtype."""
    import tensorflow as tf

    image = images(INPUTS[0])[0]
    if dtype == "uint16":
        wide = tf.cast(image, tf.uint16) * 257
        return tf.io.encode_png(wide).numpy(), tf.io.encode_png(wide[..., :1]).numpy()
    return tf.io.encode_jpeg(image).numpy(), tf.io.encode_png(image).numpy(), tf.io.encode_png(image[..., :1]).numpy()


def test_what_calls_itself_free_of_mixing_has_a_diagonal_matrix() -> None:
    """The rest of the matrix is exactly 0, whatever is drawn, and as many channels leave as enter."""
    import tensorflow as tf

    tried: set[str] = set()
    for op, given in CASES:
        step = op.model_validate(given)
        for own in (ref.step for ref in uses_of(step)):
            if not isinstance(own, ColourTransform) or own.mixes_channels():
                continue
            tried.add(op.op)
            u = np.random.default_rng(5).random((16, own.num_draws()))
            for channels in (1, 3):
                a, _, _ = own.matrix(tf.constant(u), channels)
                assert a.shape[-2:] == (channels, channels)
                assert not a.numpy()[..., ~np.eye(channels, dtype=bool)].any(), f"{op.op} {given}"
    assert {"brightness", "contrast", "random_channel_shift", "random_color_jitter"} <= tried


@pytest.mark.parametrize("each", [6, pytest.param(1, marks=pytest.mark.nightly)])
def test_what_calls_itself_the_identity_is_it(each: int) -> None:
    """By day on a sixth of the types; the cases take turns."""
    from pipegen.errors import OpError

    tried: set[str] = set()
    identities: list[Any] = []
    turns: Counter[str] = Counter()  # of each step, so that another step's cases move none
    for op, given in CASES:
        turns[op.op] += 1
        some = [(op.model_validate(given), x) for x in INPUTS[(turns[op.op] + 2) % each :: each]]
        identities += [(op, given, step, x) for step, x in some]
    for op, given, step, x in identities:
        try:
            y = step.infer(x)
        except OpError:
            continue
        if isinstance(step, DecodeTransform) or not step.is_identity(x):
            continue
        assert y == x, f"{op.op} {given} is the identity and changes the type"
        tried.add(op.op)
        given_images, u = pairs(images(x), draws(step))
        done = lower(step, x, y, given_images, u).numpy()
        np.testing.assert_array_equal(done, np.stack(given_images), err_msg=f"{op.op} {given} on {x}")
    assert {
        "random_rotation",
        "random_flip",
        "random_brightness",
        "random_zoom",
        "random_shear",
        "random_translation",
        "resize",
        "rescale",
    } <= tried


@pytest.mark.parametrize("name", sorted(transforms()))
def test_every_step_is_tried_with_more_than_its_examples(name: str) -> None:
    assert VARIANTS.get(name), f"add arguments of `{name}` to VARIANTS"
