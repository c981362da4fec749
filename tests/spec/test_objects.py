"""Objects of other libraries become steps that draw the same images, or are refused by name."""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import peer_draws
import pytest
import yaml
from peer_draws import THEIRS, Array, distance, ours, picture

import pipegen
from pipegen.errors import SpecError
from pipegen.spec.peers.objects import Steps

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # which would look for a newer one on the web

COMPOSED = {
    "classes": "[A.RandomResizedCrop((32, 32), scale=(0.5, 1.0)), A.HorizontalFlip(), A.ColorJitter(0.2, 0.2, 0.2, 0.05, p=0.8), "
    "A.Normalize()]",
    "validation": "[A.Resize(40, 40), A.CenterCrop(32, 32), A.Normalize(mean=(0.5, 0.4, 0.3), std=(0.2, 0.2, 0.3))]",
    "from above": "[A.D4(), A.RandomBrightnessContrast(0.2, 0.2, p=0.5), A.ToFloat()]",
    "turned": "[A.HorizontalFlip(), A.VerticalFlip(), A.RandomRotate90(), A.Transpose()]",
    "shifted": "[A.ShiftScaleRotate(0.1, 0.2, 20, border_mode=0, p=0.7), A.HueSaturationValue(10, 20, 10, p=0.5)]",
    "noise or blur": "[A.HorizontalFlip(), A.OneOf([A.GaussNoise(), A.GaussianBlur(), A.MedianBlur(3)], p=0.6)]",
    "weighted": "[A.OneOf([A.HorizontalFlip(p=1), A.VerticalFlip(p=0.5), A.NoOp(p=0.5)], p=0.9)]",
    "holes": "[A.HorizontalFlip(), A.CoarseDropout((1, 4), (0.1, 0.2), (0.1, 0.3), fill=30, p=0.8)]",
    "padded": "[A.PadIfNeeded(60, 60), A.RandomCrop(44, 44), A.HorizontalFlip()]",
    "longest": "[A.LongestMaxSize(40), A.HorizontalFlip(), A.RandomGamma((60, 140), p=1)]",
    "shortest": "[A.SmallestMaxSize(40), A.CenterCrop(36, 36)]",
    "medical": "[A.Affine(scale=(0.9, 1.1), keep_ratio=True, rotate=(-15, 15), p=0.8), "
    "A.ElasticTransform(40, 5, noise_distribution='uniform')]",
    "some": "[A.SomeOf([A.HorizontalFlip(p=1), A.VerticalFlip(p=0.6), A.Rotate(20, p=1)], n=2, p=0.8)]",
    "one of some": "[A.SomeOf([A.HorizontalFlip(p=0.7), A.InvertImg(p=1)], n=1)]",
    "any order": "[A.RandomOrder([A.Posterize((2, 4), p=1), A.Solarize(p=1)], n=2)]",
    "together": "[A.Sequential([A.HorizontalFlip(p=1), A.RandomBrightnessContrast(0.3, 0.3, p=1)], p=0.4)]",
    "a single one": "[A.Sequential([A.Rotate(30, p=0.8)], p=0.5)]",
    "either": "[A.OneOrOther(A.HorizontalFlip(), A.InvertImg(), p=0.3)]",
    "nested": "[A.OneOf([A.OneOf([A.HorizontalFlip(), A.VerticalFlip()]), A.Rotate(20)], p=0.8)]",
    "tables": "[A.OneOf([A.Posterize((3, 5)), A.Solarize(), A.InvertImg()], p=0.9)]",
    "gray at times": "[A.ToGray(p=0.3), A.ToSepia(p=0.3), A.ChannelShuffle(p=0.3)]",
    "floats": "[A.ToFloat(), A.GaussNoise((0.05, 0.1), p=1), A.HorizontalFlip(), A.Normalize(max_pixel_value=1.0)]",
    "in layers": "A.Compose([A.Compose([A.Resize(36, 36)]), A.Compose([A.Rotate(15, p=1)], p=0.5)])",
    "one step": "A.HorizontalFlip(p=0.3)",
    "dropped pixels": "[A.PixelDropout(p=1)]",
    "a crop at times": "[A.Resize(40, 48), A.RandomSizedCrop((16, 32), (40, 48), w2h_ratio=1.2, p=0.4), A.HorizontalFlip()]",
    "a crop or all": "[A.OneOf([A.RandomSizedCrop((16, 30), (40, 48), p=0.5), A.Resize(40, 48, p=0.5)], p=1)]",
}
"""Transforms of Albumentations that have a form."""
REFUSED = {
    "weather": ("[A.OneOf([A.RandomRain(), A.RandomFog()]), A.HorizontalFlip()]", ["`RandomRain`", "`RandomFog`"]),
    "distortions": (
        "[A.GridDistortion(), A.OpticalDistortion(), A.Perspective()]",
        ["`GridDistortion`", "`mode` of `OpticalD", "`Perspective`"],
    ),
    "light": ("[A.CLAHE(), A.Sharpen(), A.Emboss()]", ["`CLAHE`", "`Sharpen`"]),
    "a crop behind a flip": ("[A.Sequential([A.HorizontalFlip(), A.RandomCrop(8, 8)], p=0.5)]", ["which is another order than here"]),
    "twice": ("[A.SomeOf([A.HorizontalFlip(), A.VerticalFlip()], n=2, replace=True)]", ["`replace` of `SomeOf`"]),
    "two of three in any order": ("[A.RandomOrder([A.HorizontalFlip(), A.VerticalFlip(), A.InvertImg()], n=2)]", ["`n` of `RandomOrder`"]),
    "another order": ("[A.SomeOf([A.RandomBrightnessContrast(p=1), A.InvertImg(p=1)], n=2)]", ["which is another order than here"]),
    "several steps in a choice": ("[A.OneOf([A.Sequential([A.HorizontalFlip(p=1), A.InvertImg(p=1)]), A.Rotate()])]", ["single ones"]),
    "a scale in a choice": ("[A.OneOf([A.ToFloat(), A.HorizontalFlip()])]", ["changes the range of the values"]),
    "colour behind it": ("[A.Normalize(), A.RandomGamma()]", ["values are normalised here"]),
    "tables behind a scale": (
        "[A.ToFloat(), A.OneOf([A.InvertImg(), A.HorizontalFlip()]), A.ColorJitter()]",
        ["`InvertImg`", "`ColorJitter`"],
    ),
    "a scale of its own": ("[A.ToFloat(max_value=127.5), A.GaussNoise()]", ["values are between 0 and 2 here"]),
    "bytes that are not scaled": ("[A.Normalize(max_pixel_value=1.0)]", ["`max_pixel_value` of `Normalize`", "between 0 and 255"]),
    "scaled otherwise": ("[A.ToFloat(), A.Normalize()]", ["`max_pixel_value` of `Normalize`"]),
    "one channel": ("[A.SelectiveChannelTransform([A.HorizontalFlip()])]", ["`SelectiveChannelTransform`", "no steps on single channels"]),
    "code": ("[A.Lambda(image=len, name='mine')]", ["`Lambda`", "code of your own"]),
    "code without a name": ("[A.Lambda(image=len)]", ["Albumentations cannot save this"]),
    "a volume": ("[A.CenterCrop3D((2, 3, 4))]", ["two dimensions"]),
}
"""Transforms of Albumentations without a form, and what is said."""
TORCHVISION = {
    "classes": "[T.RandomResizedCrop(32, (0.5, 1.0)), T.RandomHorizontalFlip(), T.ToTensor(), "
    "T.Normalize([0.5, 0.4, 0.3], [0.2, 0.2, 0.3])]",
    "validation": "[T.Resize(40), T.CenterCrop(32), T.ToTensor(), T.Normalize([0.5], [0.2])]",
    "small": "[T.RandomCrop(48, padding=4), T.RandomHorizontalFlip(), T.ToTensor()]",
    "contrastive": "[T.RandomHorizontalFlip(), T.RandomApply([T.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8), T.RandomGrayscale(0.2),"
    " T.RandomApply([T.GaussianBlur(13, (0.1, 2.0))], p=0.5), T.ToTensor()]",
    "scaled first": "[T.ToTensor(), T.RandomRotation(20), T.ColorJitter(0.3, 0.3), T.RandomErasing(p=1)]",
    "of version 2": "[V.ToImage(), V.RandomAffine(15, (0.1, 0.1), (0.8, 1.2)), V.ToDtype(torch.float32, scale=True), V.RandomErasing(0.8)]",
    "noise": "[V.ToImage(), V.ToDtype(torch.float32, scale=True), V.GaussianNoise(sigma=0.05), V.RandomVerticalFlip(0.3)]",
    "a choice": "[V.RandomChoice([V.RandomRotation(20), V.RandomInvert(1.0)], p=[0.2, 0.8])]",
    "an order": "[V.RandomOrder([V.RandomPosterize(3, 1.0), V.RandomSolarize(100, 1.0)])]",
    "a sequence": "torch.nn.Sequential(V.Resize((40, 44)), V.RandomInvert(0.4))",
    "policies": "[V.RandAugment(2, 5)]",
    "of modules": "torch.nn.Sequential(T.RandomApply(torch.nn.ModuleList([T.RandomRotation(20)]), p=0.5), torch.nn.Identity())",
    "moved": "[T.RandomApply([T.RandomAffine(30)], p=0.5), T.RandomAutocontrast(), T.Pad(3)]",
    "a crop at times": "[T.Resize((40, 48)), T.RandomApply([T.RandomResizedCrop((40, 48), (0.3, 0.8))], p=0.4)]",
    "a crop or all": "[T.RandomChoice([T.RandomResizedCrop((40, 48), (0.3, 0.8)), T.Resize((40, 48))])]",
}
"""Transforms of torchvision that have a form."""
TORCHVISION_REFUSED = {
    "boxes": (
        "[V.RandomPhotometricDistort(), V.RandomZoomOut(), V.RandomIoUCrop(), V.SanitizeBoundingBoxes()]",
        ["`RandomZoomOut`", "`RandomIoUCrop`"],
    ),
    "code": ("[T.ToTensor(), T.Lambda(lambda x: x), len]", ["`Lambda`", "`len`", "code of your own"]),
    "a narrow blur": ("[T.GaussianBlur(3), T.RandomPerspective()]", ["`kernel_size` of `GaussianBlur`", "`RandomPerspective`"]),
    "noise in a hole": ("[T.ToTensor(), V.RandomErasing(value='random')]", ["`value` of `RandomErasing`"]),
    "tables behind a scale": ("[T.ToTensor(), T.RandomPosterize(3)]", ["values are between 0 and 1 here"]),
    "floats that are not scaled": (
        "[V.ToImage(), V.ToDtype(torch.float32), V.Normalize([0.5] * 3, [0.5] * 3)]",
        ["`mean` of `Normalize`", "`scale=True`"],
    ),
    "jitter behind a scale": ("[T.ToTensor(), T.ColorJitter(hue=0.1)]", ["`ColorJitter`", "rounds to whole numbers"]),
    "halves": ("[V.ToDtype(torch.float16, scale=True)]", ["`dtype` of `ToDtype`"]),
}
"""Transforms of torchvision without a form, and what is said."""


def in_albumentations(code: str) -> Any:
    """The object of some code."""
    A = pytest.importorskip("albumentations")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = eval(code, {"A": A})
        compose = A.Compose(made if isinstance(made, list) else [made])
    seeds = count(3)

    def seeded(transform: Any) -> None:
        """Each by a seed of its own: `Compose(seed=)` gives all the same, so that what they draw is alike."""
        transform.set_random_seed(next(seeds))
        for inner in transform.transforms if isinstance(transform, A.BaseCompose) else ():
            seeded(inner)

    seeded(compose)
    return compose


def in_torchvision(code: str) -> Any:
    pytest.importorskip("torchvision")
    torch: Any = pytest.importorskip("torch")
    torch.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torchvision.transforms as T

        V = peer_draws.torchvision()
        made = eval(code, {"T": T, "V": V, "torch": torch})
        return T.Compose(made) if isinstance(made, list) else made


def same(steps: Steps, theirs: Array) -> None:
    """Compares draws; values of any range are stretched to those of bytes."""
    mine = ours([*steps], picture())
    mine = np.repeat(mine, 200 // len(mine), 0) if len(mine) < 200 else mine
    low, high = float(theirs.min()), float(theirs.max())
    mine, theirs = ((np.asarray(one, np.float64) - low) * (255 / (high - low)) for one in (mine, theirs))
    mean, spread, p = distance(mine, theirs)
    assert mean < 0.02
    assert spread < 0.02
    assert p > 1e-4


@pytest.mark.tf
@pytest.mark.peers
@pytest.mark.by_day(8)
@pytest.mark.parametrize("name", COMPOSED)
def test_steps_do_what_albumentations_does(name: str) -> None:
    compose = in_albumentations(COMPOSED[name])
    steps = pipegen.from_albumentations(compose)
    assert accepted(steps)
    same(steps, np.stack([compose(image=picture())["image"] for _ in range(THEIRS)]))


@pytest.mark.peers
@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_form_of_albumentations_is_named(name: str) -> None:
    code, said = REFUSED[name]
    refused(pipegen.from_albumentations, in_albumentations(code), said)


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.peers
@pytest.mark.parametrize("name", TORCHVISION)
def test_steps_do_what_torchvision_does(name: str) -> None:
    compose = in_torchvision(TORCHVISION[name])
    steps = pipegen.from_torchvision(compose)
    from PIL import Image

    image = Image.fromarray(picture())
    drawn = [np.asarray(compose(image)) for _ in range(THEIRS)]
    same(steps, np.stack([np.moveaxis(x, 0, -1) if x.shape[0] == 3 else x for x in drawn]))
    assert accepted(steps)


@pytest.mark.nightly
@pytest.mark.peers
@pytest.mark.parametrize("name", TORCHVISION_REFUSED)
def test_what_has_no_form_of_torchvision_is_named(name: str) -> None:
    code, said = TORCHVISION_REFUSED[name]
    refused(pipegen.from_torchvision, in_torchvision(code), said)


def refused(translate: Callable[[Any], Steps], transform: Any, said: list[str]) -> None:
    """Checks for an error that says each of these."""
    with pytest.raises(SpecError) as error:
        translate(transform)
    assert [part for part in said if part not in str(error.value)] == []


def accepted(steps: Steps) -> bool:
    """Whether a spec takes the steps as they are, and as text."""
    spec = {"pipegen": 1, "source": {"image_folder": {"path": "photos"}}, "batch": {"size": 2}}
    resized = [{"resize": {"size": 48}}]
    read = yaml.safe_load(steps.to_yaml())["transforms"]
    pipegen.load({**spec, "transforms": [*resized, *steps]})
    pipegen.load({**spec, "transforms": [*resized, *read]})
    return len(read) == len(steps)


def in_keras() -> dict[str, tuple[Any, list[dict[str, Any]]]]:
    """Layers of Keras, and their steps."""
    from keras import Sequential, layers

    flip = {"random_flip": {}}
    turned = {"random_rotation": {"degrees": 36}}
    return {
        "a layer": (layers.RandomFlip("horizontal"), [flip]),
        "a list": ([layers.RandomFlip("horizontal"), layers.RandomRotation(0.1)], [flip, turned]),
        "a model": (Sequential([layers.RandomFlip("horizontal"), Sequential([layers.RandomRotation(0.1)])]), [flip, turned]),
        "a pipeline": (layers.Pipeline([layers.RandomFlip("horizontal"), layers.Rescaling(1 / 255)]), [flip, {"rescale": {"to": [0, 1]}}]),
        "around 0": (layers.Rescaling(1 / 127.5, -1), [{"rescale": {"to": [-1, 1]}}]),
        "scaled first": (
            [layers.Rescaling(1 / 255), layers.RandomBrightness(0.2, value_range=(0, 1)), layers.RandomRotation(0.1)],
            [{"rescale": {"to": [0, 1]}}, {"random_brightness": {"delta": 0.2}}, turned],
        ),
        "colours": (
            [layers.RandomBrightness(0.1), layers.RandomContrast((0.1, 0.3))],
            [{"random_brightness": {"delta": 25.5}}, {"random_contrast": {"factor": [0.9, 1.3], "pivot": "channel"}}],
        ),
    }


KERAS = ("a layer", "a list", "a model", "a pipeline", "around 0", "scaled first", "colours")


@pytest.mark.tf
@pytest.mark.parametrize("name", KERAS)
def test_layers_of_keras_become_steps(name: str) -> None:
    given, due = in_keras()[name]
    steps = pipegen.from_keras(given)
    assert steps == due
    assert accepted(steps)
    assert [*in_keras()] == [*KERAS]


@pytest.mark.tf
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("layers.Dense(3)", "`Dense`"),
        ("[layers.RandomFlip(), layers.RandomSaturation(0.3)]", "`factor` of `RandomSaturation`"),
        ("layers.RandomBrightness(0.2, value_range=(0, 1))", "`value_range` of `RandomBrightness`"),
        ("[layers.Rescaling(1 / 255), layers.RandomBrightness(0.2)]", "values are between 0 and 1 here"),
        ("layers.RandomRotation(0.1, interpolation='nearest')", "`interpolation` other than `bilinear`"),
        ("layers.RandomFlip(data_format='channels_first')", "channels come first"),
        ("layers.GaussianNoise(0.1)", "it does not clip"),
        ("layers.Rescaling([1.0, 2.0, 3.0])", "`scale` of `Rescaling`"),
        ("layers.Rescaling(1.0, offset=__import__('numpy').ones(3))", "`offset` of `Rescaling`"),
        ("[layers.Rescaling(1 / 255), layers.Rescaling(1 / 255)]", "the values are already in"),
        ("[layers.Rescaling(1 / 255), layers.RandomInvert(value_range=(0, 1))]", "rounds to whole numbers"),
        ("[layers.Rescaling(1 / 127.5, -1), layers.RandomGrayscale(0.3)]", "values are between -1 and 1 here"),
        ("layers.Normalization(axis=None, mean=1.0, variance=2.0)", "another `axis`"),
        ("layers.Normalization()", "`standardize` learns them"),
        ("[len]", "code of your own"),
    ],
)
def test_layers_of_keras_without_a_form_are_named(code: str, said: str) -> None:
    from keras import layers

    with pytest.raises(SpecError, match=said):
        pipegen.from_keras(eval(code, {"layers": layers}))


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="takes a transform of Albumentations"):
        pipegen.from_albumentations(3)
    with pytest.raises(SpecError, match="`int`"):
        pipegen.from_torchvision(3)


@pytest.mark.by_day(1)
@pytest.mark.tf
@pytest.mark.parametrize("subset", ["training", "validation"])
def test_steps_in_place_of_a_function_of_map(subset: str, tmp_path: Path) -> None:
    """As the sections of a spec give them; in validation, too, where `map` is asked for it."""
    from PIL import Image

    from pipegen.compat import DirectoryDataset, image_dataset_from_directory

    for i in range(8):
        (tmp_path / "ab"[i % 2]).mkdir(exist_ok=True)
        Image.fromarray(np.roll(picture(), i)).save(tmp_path / "ab"[i % 2] / f"{i}.png")
    asked: dict[str, Any] = {"validation_split": 0.5, "seed": 2, "image_size": (48, 48), "batch_size": 4, "verbose": False}
    plain = image_dataset_from_directory(str(tmp_path), subset=subset, **asked)
    steps = Steps([{"random_crop": {"size": 20}}, {"rescale": {"to": [0, 1]}}])
    cut = plain.map(steps)
    assert isinstance(cut, DirectoryDataset)
    assert cut.element_spec[0].shape[1:] == (20, 20, 3)
    ((x, _),), ((whole, _),) = cut, plain
    assert x.shape == (4, 20, 20, 3)
    assert float(np.max(x)) <= 1
    corners = [[np.abs(whole[i, 14:34, 14:34] / 255 - x[i]).max() for i in range(4)]]
    assert np.max(corners) > 0.05, "crops are random"
    assert cut.spec()["transforms"][-1] == steps[-1]
    with pytest.raises(SpecError, match="crop"):
        plain.map(Steps([{"random_crop": {"size": 200}}]))
    with pytest.raises(SpecError):
        plain.map(Steps([{"nothing_of_the_kind": {}}]))


WALKS = {"albumentations": "from_albumentations", "keras": "from_keras_layers", "torchvision": "from_torchvision"}


@pytest.mark.tf
@pytest.mark.parametrize(
    "library",
    [
        pytest.param("albumentations", marks=pytest.mark.peers),
        "keras",
        pytest.param("torchvision", marks=[pytest.mark.nightly, pytest.mark.peers]),
    ],
)
def test_the_walk_of_a_page(library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from PIL import Image

    pytest.importorskip(library)
    page = (Path(__file__).parents[2] / "docs" / f"{WALKS[library]}.md").read_text(encoding="utf-8")
    code, text = (re.search(rf"<!-- example: {tag} -->\n```[^\n]*\n(.*?)```", page, re.DOTALL) for tag in ("walk", "steps"))
    assert code is not None
    assert text is not None
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        (tmp_path / "flowers" / name).mkdir(parents=True)
        for i in range(3):
            Image.fromarray(picture()).save(tmp_path / "flowers" / name / f"{i}.png")
    names: dict[str, Any] = {}
    exec(code[1], names)
    assert text[1] in capsys.readouterr().out
    spec = {"pipegen": 1, "source": {"image_folder": {"path": "flowers/"}}, "batch": {"size": 4}}
    pipe = names.get("pipe") or pipegen.build({**spec, "transforms": [{"resize": {"size": 32}}, *names["steps"]]})
    assert next(iter(pipe.train))[0].shape == (4, 32, 32, 3)


@pytest.mark.peers
@pytest.mark.parametrize(
    ("code", "remarks"),
    [
        ("[A.HorizontalFlip(), A.Rotate(20), A.VerticalFlip()]", []),
        ("[A.Rotate(20), A.Rotate(10)]", ["geometric steps side by side resample once"]),
        ("[A.RandomBrightnessContrast(), A.ToSepia()]", ["colour steps side by side, or in `random_order`, clip once"]),
        ("[A.ColorJitter(hue=0)]", ["colour steps side by side, or in `random_order`, clip once"]),
        ("[A.Rotate(20, fill_mask=255)]", ["`fill_mask` of `Rotate`"]),
        ("[A.CoarseDropout(fill_mask=0)]", ["`fill_mask` of `CoarseDropout`"]),
        ("[A.Equalize()]", ["`Equalize`: up to 5 levels apart"]),
        ("A.ReplayCompose([A.HorizontalFlip()])", ["`ReplayCompose`: `draw: group` on a step gives 8 consecutive"]),
    ],
)
def test_small_differences_are_remarked(code: str, remarks: list[str]) -> None:
    found = pipegen.from_albumentations(in_albumentations(code)).remarks
    assert [one.startswith(due) for one, due in zip(found, remarks, strict=True)] == [True] * len(remarks), found


def test_words_and_maps_without_arguments_are_steps() -> None:
    assert [*Steps(["random_flip", {"random_invert": None}])] == [{"random_flip": {}}, {"random_invert": {}}]


def test_remarks_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "pipegen"):
        steps = pipegen.from_albumentations({"__class_fullname__": "Equalize", "p": 1.0})
    assert [record.getMessage() for record in caplog.records] == [*steps.remarks]
    assert len(steps.remarks) == 1
