"""Words of other libraries keep their meaning: the same picture, drawn by the library and by the steps that a finding says.

Each line below is a step as somebody writes it who knows the library. By day the first of each word is compared, by night all.
"""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Iterator
from functools import cache
from importlib import import_module, util
from typing import Any

import numpy as np
import peer_draws
import pytest
import yaml
from peer_draws import LEVEL, THEIRS, Array, distance, ours, picture, written

from docs.generated.other_libraries import answers
from pipegen.compat.recognised import KNOWN
from pipegen.spec.peers.words import OF_IMAGES, meaning_in, meanings, shown_arguments

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # which would look for a newer one on the web

KERAS = """
AutoContrast
CenterCrop: {height: 20, width: 30}
Equalization
GaussianNoise: 0.1
Normalization: {mean: [123.7, 116, 103], variance: [3410, 3260, 3300]}
RandomBrightness: {factor: [0, 0.3]}
RandomBrightness: 0.2
RandomBrightness: [-0.3, -0.1]
RandomBrightness: {factor: 0.2, value_range: [0, 1]}
RandomColorDegeneration: {factor: 0.5}
RandomColorDegeneration: [0.2, 0.6]
RandomColorDegeneration: [-0.4, 0]
RandomColorJitter: {brightness_factor: 0.2, contrast_factor: [0.1, 0.3], hue_factor: 0.1}
RandomColorJitter: {contrast_factor: 0.3}
RandomContrast: {factor: [0.1, 0.3]}
RandomContrast: 0.2
RandomContrast: [0, 0.4]
RandomCrop: [20, 30]
RandomFlip
RandomFlip: horizontal
RandomFlip: {mode: vertical}
RandomGaussianBlur: {factor: [0.6, 0.6], kernel_size: 7, sigma: [1, 1]}
RandomGrayscale: 0.3
RandomGrayscale
RandomHue: 0.3
RandomHue: [0, 0.2]
RandomInvert
RandomInvert: [0.7, 0.9]
RandomInvert: 0.4
RandomPosterization: [3, 6]
RandomPosterization: 4
RandomPosterization: 1
RandomRotation: [0, 0.2]
RandomRotation: 0.1
RandomRotation: {factor: [-0.2, -0.1], fill_mode: constant, fill_value: 9}
RandomRotation: {factor: 0.2, fill_mode: nearest, interpolation: nearest}
RandomSharpness: 0.8
RandomSharpness: [0.3, 0.7]
RandomSharpness: [0.5, 1]
RandomTranslation: {height_factor: 0.2, width_factor: [0, 0.3]}
RandomTranslation: [0.1, [-0.3, -0.1]]
RandomTranslation: {height_factor: [-0.3, -0.1], width_factor: 0.1, fill_mode: wrap}
RandomTranslation: {height_factor: [0.1, 0.2], width_factor: 0, fill_mode: constant}
RandomZoom: [-0.3, -0.1]
RandomZoom: 0.2
RandomZoom: 0.5
RandomZoom: [-0.8, 0.3]
RandomZoom: {height_factor: [0, 0.3], width_factor: [-0.2, 0]}
RandomZoom: {height_factor: [0.1, 0.5], fill_mode: constant}
Rescaling: [0.00392156862745098, 0]
Rescaling: {scale: 0.00784313725490196, offset: -1}
Rescaling: {scale: 0.5, offset: 3}
Resizing: {height: 30, width: 40}
Resizing: [30, 40]
Resizing: {height: 30, width: 40, antialias: true}
Resizing: {height: 20, width: 40, crop_to_aspect_ratio: true}
Resizing: {height: 20, width: 40, pad_to_aspect_ratio: true}
Resizing: {height: 60, width: 60, interpolation: nearest}
Resizing: {height: 60, width: 60, interpolation: bicubic}
Solarization: {threshold_factor: 0.5}
Solarization: {addition_factor: [0.1, 0.3], threshold_factor: [0.2, 0.8]}
Solarization: [0.2, 0.5]
Solarization: {threshold_factor: [0.4, 0.4]}
Solarization: {addition_factor: [0.1, 0.1], threshold_factor: [0.5, 0.5]}
Solarization
"""
ALBUMENTATIONS = """
AdditiveNoise
AdditiveNoise: {noise_params: {ranges: [[0, 0.2]]}}
Affine: {rotate: [-30, 30], translate_percent: {x: [0, 0.2], y: [-0.1, 0.1]}}
Affine: {scale: [0.7, 1]}
Affine: {scale: [0.7, 1], keep_ratio: true, rotate: [-10, 40]}
Affine: {shear: {x: [0, 20], y: 0}}
Affine: {shear: {x: 0, y: [-20, 10]}, p: 1}
Affine: 1.2
Affine: {rotate: 20}
AutoContrast: {method: pil}
Blur
Blur: 5
Blur: [5, 9]
CenterCrop: {height: 20, width: 30}
ChannelDropout
ChannelDropout: {channel_drop_range: [1, 2]}
ChannelShuffle
CoarseDropout
CoarseDropout: {num_holes_range: [3, 8], hole_height_range: [0.1, 0.3], hole_width_range: [0.2, 0.3], fill: 90}
ColorJitter
ColorJitter: {brightness: 0.3, contrast: [1, 1.4], saturation: 0, hue: 0.1}
ColorJitter: {brightness: [1, 1], contrast: [1, 1], saturation: [0, 0.5], hue: 0}
Crop: {x_min: 5, y_min: 7, x_max: 35, y_max: 30}
D4
Downscale: {scale_range: [0.3, 0.7], interpolation_pair: {downscale: 1, upscale: 1}}
Downscale: {interpolation_pair: {downscale: 6, upscale: 6}}
ElasticTransform: {alpha: 50, sigma: 5, noise_distribution: uniform}
Emboss
Emboss: {alpha: [0, 0.3], strength: [0.5, 0.5]}
Equalize
Equalize: {mode: pil, p: 1}
Erasing: {scale: [0.02, 0.3]}
Erasing: {scale: [0.1, 0.2], ratio: [0.5, 2], fill: 200}
GaussNoise
GaussNoise: {std_range: [0, 0.1]}
GaussianBlur
GaussianBlur: {sigma_limit: 2}
HorizontalFlip
HorizontalFlip: {p: 0.2}
HueSaturationValue
HueSaturationValue: {hue_shift_limit: [0, 20], sat_shift_limit: [-30, -10], val_shift_limit: 0}
HueSaturationValue: 30
InvertImg
InvertImg: {p: 0.9}
LongestMaxSize: 30
MedianBlur: [3, 5]
MedianBlur: 3
MultiplicativeNoise
MultiplicativeNoise: [0.5, 1]
Normalize
Normalize: {mean: [0.5, 0.4, 0.3], std: [0.2, 0.2, 0.3]}
OpticalDistortion: {distort_limit: [-0.5, 0], mode: fisheye}
OpticalDistortion: {distort_limit: 0.4, mode: fisheye}
Pad: 4
PadIfNeeded: {min_height: 60, min_width: 70}
PixelDropout
PixelDropout: {dropout_prob: 0.2, drop_value: 200, per_channel: true}
PlanckianJitter
PlanckianJitter: {mode: cied}
PlanckianJitter: {temperature_limit: [4000, 8000]}
Posterize
Posterize: [2, 5]
RGBShift
RGBShift: {r_shift_limit: [0, 30], g_shift_limit: 0.1, b_shift_limit: [-10, -5]}
RGBShift: 40
RandomBrightnessContrast
RandomBrightnessContrast: {brightness_limit: [0, 0.3], contrast_limit: [-0.4, -0.1]}
RandomBrightnessContrast: [0.1, 0.2]
RandomCrop: {height: 20, width: 30}
RandomGamma
RandomGamma: [50, 90]
RandomGamma: 150
RandomGridShuffle
RandomGridShuffle: {grid: [2, 4]}
RandomResizedCrop: {size: [24, 24]}
RandomResizedCrop: {size: [24, 30], scale: [0.3, 0.6], ratio: [0.5, 1]}
RandomSizedCrop: {min_max_height: [10, 24], size: [24, 30]}
RandomSizedCrop: {min_max_height: [24, 40], size: [48, 48], w2h_ratio: 1.1, p: 0.4}
RandomRotate90
RandomToneCurve
RandomToneCurve: {scale: 0.2, per_channel: true}
Resize: {height: 30, width: 40}
Resize: {height: 30, width: 40, interpolation: 2}
Resize: {height: 30, width: 40, interpolation: 6}
Rotate
Rotate: 20
Rotate: {limit: [10, 40], border_mode: 1}
Rotate: {limit: [-40, -10], interpolation: 0, fill: 30, p: 1}
SaltAndPepper
SaltAndPepper: {amount: [0.1, 0.2], salt_vs_pepper: [0.8, 0.9]}
ShiftScaleRotate
ShiftScaleRotate: {shift_limit: [0, 0.2], scale_limit: [-0.3, 0], rotate_limit: [10, 20], border_mode: 2}
ShiftScaleRotate: {shift_limit_x: [0, 0.4], shift_limit_y: 0, scale_limit: 0, rotate_limit: 0, border_mode: 3, p: 1}
SmallestMaxSize: 30
Solarize
Solarize: {threshold_range: [0.2, 0.8]}
SquareSymmetry
TimeReverse
ToFloat
ToGray
ToGray: {p: 0.1}
ToSepia
Transpose
VerticalFlip
"""
TORCHVISION = """
AugMix: {all_ops: false}
AutoAugment
CenterCrop: 20
ColorJitter: {brightness: 0.3, contrast: 0.4, saturation: 0.5, hue: 0.1}
ColorJitter: {brightness: [0.5, 1]}
ColorJitter: 0.3
ColorJitter: {hue: [0, 0.2]}
ElasticTransform
GaussianBlur: 13
GaussianBlur: {kernel_size: 9, sigma: 1}
GaussianNoise
Grayscale: 3
Normalize: {mean: [0.5, 0.4, 0.3], std: [0.2, 0.2, 0.3]}
Pad: 4
Pad: {padding: 4, padding_mode: symmetric}
RandAugment
RandomAdjustSharpness: {sharpness_factor: 3}
RandomAdjustSharpness: [0.3, 1]
RandomAffine: 20
RandomAffine: {degrees: [0, 30], translate: [0.1, 0.3], scale: [0.7, 0.9]}
RandomAffine: {degrees: 0, shear: [0, 20]}
RandomAutocontrast
RandomChannelPermutation
RandomCrop: {size: [20, 30]}
RandomCrop: {size: 48, padding: 8}
RandomCrop: {size: 60, pad_if_needed: true}
RandomEqualize
RandomErasing
RandomErasing: {p: 1, scale: [0.1, 0.2], ratio: [0.5, 2]}
RandomGrayscale
RandomHorizontalFlip
RandomHorizontalFlip: 0.3
RandomInvert
RandomPhotometricDistort
RandomPosterize: {bits: 3}
RandomResizedCrop: 24
RandomResizedCrop: {size: [24, 30], scale: [0.3, 0.6], antialias: false}
RandomRotation: 30
RandomRotation: {degrees: [0, 30], interpolation: bilinear, fill: 9}
RandomSolarize: 100
RandomVerticalFlip
Resize: 30
Resize: {size: [60, 70]}
Resize: {size: [30, 20], interpolation: bicubic}
TrivialAugmentWide
"""
REFUSED = """
PadIfNeeded: {min_height: 60, min_width: half}
keras.RandomColorJitter: {saturation_factor: 0.7}
keras.RandomGaussianBlur: {sigma: 1}
keras.RandomGaussianBlur: {sigma: [1, 1], kernel_size: 3}
keras.RandomHue: {factor: [0.1, 0.2]}
keras.RandomRotation: {factor: 0.1, fill_mode: mirror}
keras.RandomSaturation: {factor: 0.7}
keras.RandomSaturation: {factor: [0, 0.5]}
keras.RandomShear: {x_factor: 0.2}
keras.RandomShear: {y_factor: [0, 0.3]}
keras.RandomBrightness: {factor: abc}
keras.RandomBrightness: {factor: 3}
torchvision.GaussianBlur: {kernel_size: 3}
torchvision.RandomAdjustSharpness: {sharpness_factor: 30}
torchvision.RandomErasing: {value: random}
torchvision.RandomRotation: {degrees: 10, expand: true}
albumentations.AdditiveNoise: {noise_type: beta}
albumentations.Affine: {translate_px: 10}
albumentations.AutoContrast: {cutoff: 5, method: pil}
albumentations.ElasticTransform: {noise_distribution: gaussian}
albumentations.Erasing: {scale: [0.02, 0.9]}
albumentations.GaussianBlur: {blur_limit: [3, 7]}
albumentations.GaussNoise: {mean_range: [0.1, 0.2]}
albumentations.MedianBlur: {blur_limit: [3, 7]}
albumentations.MultiplicativeNoise: {elementwise: true}
albumentations.OpticalDistortion: {mode: camera}
albumentations.Posterize: {num_bits: [[1, 2], [3, 4], [5, 6]]}
albumentations.Resize: {height: 30, width: 30, interpolation: 0}
albumentations.Rotate: {limit: 20, crop_border: true}
albumentations.Rotate: {limit: 20, fill: [1, 2, 3]}
"""
"""Values without a form: each is the one that the help names, with why."""
WITHOUT = """
keras.RandomErasing keras.RandomElasticTransform keras.RandomPerspective keras.RandAugment keras.AugMix
albumentations.ISONoise albumentations.ThinPlateSpline albumentations.Morphological albumentations.CLAHE albumentations.MotionBlur
albumentations.RandomRain albumentations.PiecewiseAffine torchvision.RandomPerspective
"""
"""Steps without a form."""
UNCOMPARED = {
    "MixUp": "combines several pictures, and leaves a batch of one as it is: test_combining.py has its distribution",
    "CutMix": "likewise",
    "AtLeastOneBBoxRandomCrop": "needs boxes: test_crop_around.py has it",
    "CropNonEmptyMaskIfExists": "needs a mask: test_crop_around.py has it",
    "JPEG": "libjpeg's own: test_degradations.py has it beside Pillow",
}
LEVELS = {"Equalize": 6.0, "Equalization": 6.0, "RandomEqualize": 6.0}
"""Of words whose tables are rounded otherwise, by how many levels of 255 at most."""
_TEXTS = {"keras": KERAS, "torchvision": TORCHVISION, "albumentations": ALBUMENTATIONS}


def _parsed(line: str) -> tuple[str, Any]:
    step = yaml.safe_load(line)
    return (step, None) if isinstance(step, str) else next(iter(step.items()))


def _cases() -> Iterator[Any]:
    """Every line with its library; by day the first of each word, of libraries that are there by day."""
    for library, text in _TEXTS.items():
        seen: set[str] = set()
        for line in text.split("\n"):
            word = line.partition(":")[0]
            if line:
                by_night = word in seen or library == "torchvision"
                yield pytest.param(library, line, id=f"{library} {line}", marks=[pytest.mark.nightly] if by_night else [])
                seen.add(word)


@pytest.mark.tf
@pytest.mark.peers
@pytest.mark.parametrize(("library", "line"), [*_cases()])
def test_the_steps_do_what_the_library_does(library: str, line: str) -> None:
    word, given = _parsed(line)
    if util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    if library == "torchvision":
        _transforms()  # before TensorFlow, beside which some builds of PyTorch do not load
    steps, said = written(f"{library}.{word}", given)
    assert steps is not None, said
    image = picture()
    if (isinstance(given, dict) and given.get("value_range") == [0, 1]) or (library, word) == ("torchvision", "Normalize"):
        image = image.astype(np.float32) / 255
        steps = [step for step in steps if step != {"rescale": {"to": [0, 1]}}]
    mean, spread, p = distance(ours(steps, image), theirs(library, word, given, image), LEVELS.get(word, LEVEL))
    assert mean < 0.02
    assert spread < 0.02
    assert p > 1e-4


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.peers
@pytest.mark.parametrize(
    "line", [line for line in KERAS.split("\n") if line.partition(":")[0] in KNOWN and "wrap" not in line and line.startswith("Random")]
)
def test_layers_in_a_map_draw_what_keras_draws(line: str) -> None:
    """Those that `image_dataset_from_directory` of `pipegen.compat` takes, by 2,000 draws."""
    word, given = _parsed(line)
    steps, said = written(f"keras.{word}", given)
    assert steps is not None, said
    image = picture()
    if isinstance(given, dict) and given.get("value_range") == [0, 1]:
        image = image.astype(np.float32) / 255
    mean, spread, p = distance(ours(steps, image, 2000), theirs("keras", word, given, image, 2000), LEVELS.get(word, LEVEL))
    assert mean < 0.01
    assert spread < 0.01
    assert p > 1e-4


def theirs(library: str, word: str, given: Any, image: Array, draws: int = THEIRS) -> Array:
    """The picture after a library's step, often."""
    made = _step(library, word, given)
    if word == "GaussianNoise":  # whose unit is that of images from 0 to 1
        image = image.astype(np.float32) / 255
    if library == "keras":
        if word == "RandomCrop":  # which crops a whole batch at one place
            return np.concatenate([np.asarray(made(image[None].astype(np.float32), training=True)) for _ in range(100)])
        found = np.asarray(made(np.repeat(image[None].astype(np.float32), draws, 0), **({} if word in _CALLED else {"training": True})))
        return found * 255 if word == "GaussianNoise" else found
    if library == "albumentations":
        return np.stack([made(image=image)["image"] for _ in range(THEIRS)])
    import torch

    x = torch.from_numpy(np.moveaxis(image, -1, 0).copy())
    found = np.stack([np.moveaxis(made(x).numpy(), 0, -1) for _ in range(THEIRS)])
    return found * 255 if word == "GaussianNoise" else found


_CALLED = ("Rescaling", "Normalization")
"""Layers that are the same in training."""


def _step(library: str, word: str, given: Any) -> Any:
    """A step of a library, made as its own code would make it, with a seed."""
    if library == "keras":
        import keras

        keras.utils.set_random_seed(3)
        cls = getattr(keras.layers, word)
    elif library == "torchvision":
        import torch

        torch.manual_seed(3)
        cls = getattr(_transforms(), word)
    else:
        cls = getattr(import_module(library), word)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        needed = [p for p in inspect.signature(cls).parameters.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
        if isinstance(given, dict):
            made = cls(**{name: _value(library, name, value) for name, value in given.items()})
        elif isinstance(given, list) and (len(needed) > 1 or word in _SEVERAL):
            made = cls(*(_value(library, "", value) for value in given))
        else:
            made = cls() if given is None else cls(_value(library, "", given))
    if library == "albumentations":
        made.set_random_seed(3)
    return made


_SEVERAL = ("Rescaling", "RandomAdjustSharpness")
"""Words whose list is several arguments, though one would do, since a pair is no value of the first."""


@cache
def _transforms() -> Any:
    return peer_draws.torchvision()


def _value(library: str, name: str, value: Any) -> Any:
    """A value as Python code has it: pairs are tuples."""
    if library == "torchvision" and name == "interpolation":
        return _transforms().InterpolationMode(value)
    if isinstance(value, list):
        return tuple(_value(library, "", one) for one in value)
    if isinstance(value, dict):
        return {key: [*map(tuple, one)] if key == "ranges" else _value(library, "", one) for key, one in value.items()}
    return value


def test_every_word_with_a_form_is_compared() -> None:
    """A step of a library that has a form is in a list above; one whose form is refused says why."""
    lines = {library: {_parsed(line)[0] for line in text.split("\n") if line} for library, text in _TEXTS.items()}
    for library in OF_IMAGES:
        with_form = {a.name for a in answers(library) if a.meaning is not None and a.meaning.steps}
        assert with_form - lines[library] - UNCOMPARED.keys() == set(), library
        assert [word for word in lines[library] if meaning_in(library, word, shown_arguments(library, word)) is None] == []


@pytest.mark.parametrize("line", [line for line in REFUSED.split("\n") if line])
def test_a_value_without_a_form_is_named_and_nothing_is_suggested(line: str) -> None:
    word, given = _parsed(line)
    (one,) = meanings(word, given)
    steps, said = written(word, given)
    assert steps is None
    assert not one.steps
    assert one.about in given
    name = word.rpartition(".")[2]
    assert said.startswith(f"pipegen has no form of `{one.about}: ")
    assert f"of {one.library}{chr(39)}" in said
    assert name in said
    assert "write " not in said


@pytest.mark.parametrize("word", WITHOUT.split())
def test_a_step_without_a_form_says_why(word: str) -> None:
    steps, said = written(word, None)
    assert steps is None
    assert said.startswith(f"pipegen has no form of {meanings(word, None)[0].library}")
    assert "write " not in said


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("RandomRotation: 0.2", ["for Keras' `RandomRotation`", "for torchvision's `RandomRotation`"]),
        ("RandomRotation: {factor: 0.2}", ["write `random_rotation: {degrees: 72}`"]),
        ("RandomRotation: {degrees: 20}", ["write `random_rotation: {degrees: 20, fill: {constant: 0}, interpolation: nearest}`"]),
        ("RandomCrop: {height: 20, width: 20}", ["write `random_crop: {size: 20}`"]),
        ("RandomBrightness", ["for example `random_brightness: {delta: 51}`", "Keras' `RandomBrightness` has no default for `factor`"]),
        ("RandomContrast: {factor: 0.2, p: 0.5}", ["write `random_contrast: {factor: [1, 1.2], pivot: channel, probability: 0.5}`"]),
        ("HorizontalFlip: {q: 0.5}", ["Albumentations' `HorizontalFlip` has no argument `q`; it has `p`"]),
        ("GaussNoise: {var_limit: [10, 50]}", ["Albumentations' `GaussNoise` has no argument `var_limit`; it has `std_range`"]),
        ("GaussianNoise: 0.1", ["write `random_gaussian_noise: {std: [25.5, 25.5]}`", "no form of `mean: 0.1` of torchvision's"]),
    ],
)
def test_which_library_is_meant(line: str, lines: list[str]) -> None:
    """By its arguments, or each by its name where they are those of several; what is no argument, or lacks, is said."""
    said = written(*_parsed(line))[1]
    assert [part for part in lines if part not in said] == []
