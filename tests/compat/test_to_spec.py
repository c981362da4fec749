"""The spec that a generator stands for: which steps, and what no spec expresses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pipegen
from pipegen.compat import ImageDataGenerator, UnsupportedArgument


def preprocess_input(x: Any) -> Any:
    """Stands in for Keras' function of this name."""
    return x


preprocess_input.__module__ = "keras.src.applications.mobilenet_v2"

FOLDER = [{"decode": {"exif": "ignore", "jpeg": "accurate"}}, {"resize": {"size": [40, 80], "method": "nearest"}}]


def steps(arguments: dict[str, Any]) -> list[Any]:
    """The steps after the resize; the spec is sound."""
    spec = ImageDataGenerator(**arguments).to_spec("photos", target_size=(40, 80))
    pipegen.load(spec)
    assert spec["transforms"][:2] == FOLDER
    return spec["transforms"][2:]


NEAREST = {"fill": "nearest"}


def chosen(axis: str, chances: dict[float, int]) -> dict[str, Any]:
    """One of several distances."""
    steps = [{"translation": {axis: distance, **NEAREST}} for distance in chances]
    return {"one_of": {"steps": steps, "weights": list(chances.values())}}


MAPPED: list[tuple[dict[str, Any], list[Any]]] = [
    ({}, []),
    ({"rescale": 1 / 255}, [{"rescale": {"scale": 1 / 255}}]),
    ({"rotation_range": 20}, [{"random_rotation": {"degrees": 20, **NEAREST}}]),
    ({"width_shift_range": 0.1}, [{"random_translation": {"x": 0.1, **NEAREST}}]),
    ({"height_shift_range": 0.2}, [{"random_translation": {"y": 0.2, **NEAREST}}]),
    ({"width_shift_range": 4.0, "height_shift_range": 1.0}, [{"random_translation": {"x": 0.05, "y": 0.025, **NEAREST}}]),
    ({"width_shift_range": 2}, [chosen("x", {-0.0125: 1, 0.0: 2, 0.0125: 1})]),
    ({"height_shift_range": (0.1, -0.2, 0.1)}, [chosen("y", {-0.2: 1, -0.1: 2, 0.1: 2, 0.2: 1})]),
    (
        {"height_shift_range": [4, 0.5], "width_shift_range": 0.1},
        [
            {"random_translation": {"x": 0.1, **NEAREST}},
            chosen("y", {-0.1: 1, -0.0125: 1, 0.0125: 1, 0.1: 1}),
        ],
    ),
    ({"width_shift_range": 1, "height_shift_range": [0]}, []),
    ({"shear_range": 10}, [{"random_shear": {"degrees": 10, **NEAREST}}]),
    ({"zoom_range": [0.5, 0.8]}, [{"random_zoom": {"x": [1.25, 2.0], "y": [1.25, 2.0], **NEAREST}}]),
    ({"channel_shift_range": 20.0}, [{"random_channel_shift": {"delta": 20.0}}]),
    ({"horizontal_flip": True}, [{"random_flip": {"axis": "horizontal"}}]),
    ({"vertical_flip": True, "horizontal_flip": True}, [{"random_flip": {"axis": "both"}}]),
    ({"brightness_range": (0.5, 1.5)}, [{"random_brightness": {"factor": [0.5, 1.5]}}]),
    (
        {"rotation_range": 5, "fill_mode": "constant", "cval": 9, "interpolation_order": 0},
        [{"random_rotation": {"degrees": 5, "fill": {"constant": 9.0}, "interpolation": "nearest"}}],
    ),
    (
        {"rotation_range": 5, "vertical_flip": True, "fill_mode": "reflect"},
        [{"random_rotation": {"degrees": 5, "fill": "reflect"}}, {"random_flip": {"axis": "vertical", "fill": "reflect"}}],
    ),
    ({"samplewise_center": True}, [{"standardize": {"statistics": "samplewise", "scale": False}}]),
    (
        {"samplewise_center": True, "samplewise_std_normalization": True, "rescale": 0.5},
        [{"rescale": {"scale": 0.5}}, {"standardize": {"statistics": "samplewise"}}],
    ),
    (
        {"preprocessing_function": preprocess_input, "rescale": 0.5},
        [{"normalize": {"preset": "mobilenet_v2"}}, {"rescale": {"scale": 0.5}}],
    ),
]


@pytest.mark.parametrize(("arguments", "expected"), MAPPED, ids=lambda a: "-".join(a) if isinstance(a, dict) else "")
def test_each_argument_has_its_step(arguments: dict[str, Any], expected: list[Any]) -> None:
    assert steps(arguments) == expected


def test_the_steps_stand_in_the_order_in_which_keras_works() -> None:
    everything = {
        "rotation_range": 20,
        "width_shift_range": 0.1,
        "shear_range": 5,
        "zoom_range": 0.2,
        "channel_shift_range": 20.0,
        "horizontal_flip": True,
        "brightness_range": (0.5, 1.5),
        "rescale": 1 / 255,
    }
    names = [name for step in steps(everything) for name in step]
    moves = ["random_rotation", "random_translation", "random_shear", "random_zoom"]
    assert names == [*moves, "random_channel_shift", "random_flip", "random_brightness", "rescale"]


@pytest.mark.parametrize(("scaled", "asked"), [(True, {}), (False, {"scale": False})])
def test_statistics_that_are_not_fitted_are_measured_on_the_training_split(scaled: bool, asked: dict[str, Any]) -> None:
    generator = ImageDataGenerator(featurewise_center=True, featurewise_std_normalization=scaled, rescale=0.5, validation_split=0.2)
    spec = generator.to_spec("photos")
    assert spec["transforms"][2:] == [{"rescale": {"scale": 0.5}}, {"standardize": {"statistics": "featurewise", **asked}}]
    pipegen.load(spec)


def test_half_of_the_statistics_is_refused() -> None:
    generator = ImageDataGenerator(featurewise_center=True, featurewise_std_normalization=True)
    generator.mean = np.zeros((1, 1, 3))
    with pytest.raises(UnsupportedArgument, match="`featurewise_std_normalization`: the generator is not fitted"):
        generator.to_spec("photos")


def test_single_distances_are_part_of_the_one_resampling() -> None:
    given = {"rotation_range": 9, "width_shift_range": 3, "zoom_range": 0.1, "horizontal_flip": True}
    plan = pipegen.load(ImageDataGenerator(**given).to_spec("photos", target_size=(40, 80))).plans["train"]
    assert [type(stage).__name__ for stage in plan.stages()].count("Resample") == 1
    with pytest.raises(UnsupportedArgument, match="`target_size`"):
        ImageDataGenerator(width_shift_range=3).to_spec()


def test_fitted_statistics_become_numbers() -> None:
    generator = ImageDataGenerator(featurewise_center=True, featurewise_std_normalization=True, rescale=0.5)
    x = np.random.default_rng(0).uniform(0, 200, (7, 5, 4, 3))
    generator.fit(x)
    scale, moments = generator.to_spec("photos")["transforms"][2:]
    assert scale == {"rescale": {"scale": 0.5}}
    np.testing.assert_allclose(moments["normalize"]["mean"], (x / 2).mean((0, 1, 2)), rtol=1e-6)
    np.testing.assert_allclose(moments["normalize"]["std"], (x / 2).std((0, 1, 2)) + 1e-6, rtol=1e-6)
    with pytest.raises(UnsupportedArgument, match="3 channels"):
        ImageDataGenerator.to_spec(_with_mean(np.zeros((1, 1, 3))), "photos", color_mode="grayscale")


def test_whitening_is_left_to_the_spec() -> None:
    given = {"zca_whitening": True, "featurewise_center": True, "zca_epsilon": 1e-4}
    small = ImageDataGenerator(**given).to_spec("photos", target_size=(32, 32))
    assert small["transforms"][2:] == [{"whiten": {"center": "channel", "epsilon": 1e-4}}]
    pipegen.load(small)
    with pytest.raises(pipegen.SpecError, match="whiten"):
        pipegen.load(ImageDataGenerator(**given).to_spec("photos", target_size=(64, 64)))


def _with_mean(mean: Any) -> ImageDataGenerator:
    generator = ImageDataGenerator(featurewise_center=True)
    generator.mean = mean
    return generator


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"zca_whitening": True, "featurewise_center": True, "zca_epsilon": 0}, "zca_epsilon"),
    ({"preprocessing_function": lambda x: x}, "preprocessing_function"),
    ({"width_shift_range": 66}, "width_shift_range"),
    ({"height_shift_range": [i / 100 for i in range(99)]}, "height_shift_range"),
    ({"zoom_range": 1.0}, "zoom_range"),
    ({"rotation_range": 5, "fill_mode": "mirror"}, "fill_mode"),
    ({"rotation_range": 5, "interpolation_order": 3}, "interpolation_order"),
    ({"brightness_range": (-1.0, 1.0)}, "brightness_range"),
    ({"dtype": "float64"}, "dtype"),
    ({"rotation_range": 5, "geometry": "keras3"}, "geometry"),
]


@pytest.mark.parametrize(("arguments", "named"), REFUSED, ids=lambda a: a if isinstance(a, str) else "")
def test_what_no_spec_expresses_is_refused_by_name(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(UnsupportedArgument, match=f"`{named}`: .*; ") as caught:
        ImageDataGenerator(**arguments).to_spec("photos", target_size=(40, 80))
    assert caught.value.argument == named
    assert caught.value.help
    assert isinstance(caught.value, pipegen.PipegenError)


def test_a_fill_or_spline_that_nothing_uses_is_not_refused() -> None:
    assert steps({"fill_mode": "mirror", "interpolation_order": 3, "horizontal_flip": True}) == [{"random_flip": {"axis": "horizontal"}}]


@pytest.mark.parametrize(("mode", "channels"), [("rgb", None), ("rgba", 4), ("grayscale", 1)])
def test_colour_modes_are_channels(mode: str, channels: int | None) -> None:
    first = ImageDataGenerator(channel_shift_range=9.0).to_spec("photos", color_mode=mode)["transforms"][0]["decode"]
    assert first.get("channels") == channels


@pytest.mark.parametrize(
    ("asked", "named"),
    [({"classes": ["."]}, "class_mode")],
)
def test_what_no_flow_can_be_asked_for(asked: dict[str, Any], named: str) -> None:
    with pytest.raises(UnsupportedArgument, match=f"`{named}`"):
        ImageDataGenerator().to_spec("photos", **asked)


@pytest.mark.parametrize("asked", [{"color_mode": "gray"}, {"class_mode": "raw"}, {"interpolation": "cubic"}], ids=str)
def test_words_that_are_none(asked: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(asked))):
        ImageDataGenerator().to_spec("photos", **asked)


def test_keras3_shifts_are_swapped_in_square_images() -> None:
    spec = ImageDataGenerator(width_shift_range=0.1, geometry="keras3").to_spec("photos")
    assert spec["transforms"][2] == {"random_translation": {"y": 0.1, **NEAREST}}


@pytest.mark.parametrize(("installed", "method"), [("13.0.0", "box"), ("12.3.0", {"filter": "box", "before": 13}), ("14.1", "box")])
def test_a_filter_is_that_of_the_installed_pillow(installed: str, method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("PIL.__version__", installed)
    asked: dict[str, Any] = {"keep_aspect_ratio": True}
    box, nearest = (ImageDataGenerator().to_spec("photos", interpolation=name, **asked) for name in ("box", "nearest"))
    pipegen.load(box)
    assert [spec["transforms"][1]["resize"]["method"] for spec in (box, nearest)] == [{"pillow": method}, {"pillow": "nearest"}]


def test_what_a_flow_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("PIL.__version__", "13.0.0")
    generator = ImageDataGenerator(validation_split=0.15, data_format="channels_first", dtype="float16")
    asked = {"color_mode": "grayscale", "interpolation": "lanczos", "keep_aspect_ratio": True, "follow_links": True}
    spec = generator.to_spec("photos", classes=["b", "a"], class_mode="sparse", batch_size=7, shuffle=False, seed=3, **asked)
    pipegen.load(spec)
    assert spec == {
        "pipegen": 1,
        "source": {"image_folder": {"path": "photos", "classes": ["b", "a"], "follow_links": True}},
        "splits": {"parts": {"train": 0.85, "validation": 0.15}, "method": "keras"},
        "transforms": [
            {"decode": {"exif": "ignore", "jpeg": "accurate", "channels": 1}},
            {"resize": {"size": [256, 256], "mode": "crop", "method": {"pillow": "lanczos"}}},
        ],
        "seed": 3,
        "shuffle": "none",
        "batch": {"size": 7, "remainder": "keep"},
        "output": {"x": "image", "dtype": "float16", "channels": "first", "y": "label", "encode": {"label": "int"}},
    }


@pytest.mark.parametrize(("given", "directory"), [({}, "photos"), ({"validation_split": 0.2}, None), ({}, None)], ids=str)
def test_the_image_as_its_own_target(given: dict[str, Any], directory: str | None) -> None:
    spec = ImageDataGenerator(**given).to_spec(directory, class_mode="input")
    assert spec["output"] == {"x": "image", "y": "image"}
    plans = pipegen.load(spec).plans
    assert "train" in plans


def test_images_without_classes() -> None:
    spec = ImageDataGenerator().to_spec("photos", classes=["."], class_mode=None)
    assert spec["source"] == {"image_folder": {"path": "photos", "labels": "none"}}
    assert spec["output"]["y"] is None
    pipegen.load(spec)
    with pytest.raises(UnsupportedArgument, match="class_mode=None"):
        ImageDataGenerator().to_spec("photos", classes=["."])


def test_arrays() -> None:
    generator = ImageDataGenerator(width_shift_range=2.0)
    spec = generator.to_spec(target_size=(20, 20), class_mode="sparse")
    assert spec["source"] == {"arrays": {"features": {"image": {"kind": "image"}, "label": {"kind": "label"}}}}
    assert spec["transforms"] == [{"random_translation": {"x": 0.1, **NEAREST}}]
    pipegen.load(spec)
    with pytest.raises(UnsupportedArgument, match="`target_size`"):
        generator.to_spec()


def test_the_file_means_the_same(tmp_path: Path) -> None:
    generator = ImageDataGenerator(rescale=1 / 255, zoom_range=0.2, fill_mode="constant", brightness_range=(0.9, 1.1))
    (tmp_path / "specs").mkdir()
    path = tmp_path / "specs" / "photos.pipegen.yaml"
    spec = generator.to_spec(tmp_path / "photos", write=path)
    assert spec["source"]["image_folder"]["path"] == "../photos"
    assert pipegen.load(path).hash == pipegen.load(spec).hash


def test_numbers_of_numpy_are_written_as_others(tmp_path: Path) -> None:
    given = {"rotation_range": 10, "validation_split": 0.25, "zoom_range": [0.5, 1.5], "shear_range": 3}
    as_numpy = {name: [*map(np.float64, value)] if isinstance(value, list) else np.asarray(value)[()] for name, value in given.items()}
    specs = [ImageDataGenerator(**own).to_spec(tmp_path, seed=np.int64(3)) for own in (given, as_numpy)]
    assert specs[0] == specs[1]
    ImageDataGenerator(**as_numpy).to_spec(tmp_path, batch_size=np.int64(4), write=tmp_path / "a.yaml")
    assert "size: 4" in (tmp_path / "a.yaml").read_text()
