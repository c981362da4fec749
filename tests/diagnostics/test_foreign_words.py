"""The words that people bring along, as the other libraries list them: each is answered with lines to paste, wherever it is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from following import followed

from pipegen.diagnostics.diagnostic import Advice, Diagnostic, Severity
from pipegen.diagnostics.fixes import apply_fixes
from pipegen.diagnostics.suggest import every_row, plain
from pipegen.phases.compilation import inspect

BASE: dict[str, Any] = {
    "pipegen": 1,
    "source": {"image_folder": {"path": "photos/"}},
    "splits": {"parts": {"train": 0.8, "validation": 0.2}},
    "transforms": [{"resize": {"size": 48}}],
    "output": {"encode": {"label": "one_hot"}},
}

# keras 3: ImageDataGenerator, flow_from_directory, flow_from_dataframe, image_dataset_from_directory
GENERATOR = """
    featurewise_center samplewise_center featurewise_std_normalization samplewise_std_normalization zca_whitening zca_epsilon
    rotation_range width_shift_range height_shift_range brightness_range shear_range zoom_range channel_shift_range
    horizontal_flip vertical_flip preprocessing_function data_format validation_split interpolation_order dtype target_size
    color_mode class_mode batch_size save_to_dir save_prefix save_format subset interpolation keep_aspect_ratio x_col y_col
    weight_col validate_filenames label_mode class_names image_size crop_to_aspect_ratio pad_to_aspect_ratio verbose
"""
LAYERS = """
    AugMix CenterCrop CutMix MixUp RandAugment RandomColorDegeneration RandomColorJitter RandomElasticTransform RandomErasing
    RandomFlip RandomGaussianBlur RandomHeight RandomHue RandomInvert RandomPerspective RandomPosterization RandomRotation
    RandomShear RandomTranslation RandomWidth RandomZoom Rescaling Resizing Normalization Solarization Equalization AutoContrast
    RandomBrightness RandomContrast RandomCrop RandomGrayscale RandomSaturation RandomSharpness Pipeline
    ContrastLimitedAdaptiveHistogramEqualization
"""
# tf.data and PyTorch's DataLoader
LOADING = """
    cache prefetch num_parallel_calls drop_remainder buffer_size reshuffle_each_iteration repeat take map deterministic
    num_workers pin_memory drop_last collate_fn sampler batch_sampler prefetch_factor persistent_workers
"""
TORCHVISION = """
    Resize CenterCrop RandomCrop RandomResizedCrop RandomHorizontalFlip RandomVerticalFlip RandomRotation RandomAffine
    RandomPerspective ColorJitter Grayscale RandomGrayscale GaussianBlur RandomInvert RandomPosterize RandomSolarize
    RandomAdjustSharpness RandomAutocontrast RandomEqualize RandomErasing ToTensor PILToTensor ToImage ToDtype ConvertImageDtype
    Normalize Compose Lambda RandomApply RandomChoice RandomOrder RandAugment AutoAugment TrivialAugmentWide AugMix
    ElasticTransform FiveCrop TenCrop Pad MixUp CutMix ScaleJitter RandomZoomOut RandomIoUCrop RandomPhotometricDistort
    RandomChannelPermutation GaussianNoise ToPILImage RandomShortestSize RandomResize LinearTransformation
"""
# DINO's and SwAV's code, SimCLR's of PyTorch, lightly, solo-learn
VIEWS = """
    multi_crop MultiCropDataset DataAugmentationDINO DINOTransform global_crops local_crops TwoCropsTransform TwoCropTransform
    ContrastiveLearningViewGenerator n_views num_views
"""
ALBUMENTATIONS = """
    HorizontalFlip VerticalFlip Rotate SafeRotate RandomRotate90 Transpose ShiftScaleRotate Affine Perspective RandomCrop
    CenterCrop RandomResizedCrop RandomSizedCrop Resize SmallestMaxSize LongestMaxSize PadIfNeeded RandomScale
    RandomBrightnessContrast HueSaturationValue RGBShift ColorJitter RandomGamma CLAHE ToGray ChannelShuffle InvertImg Solarize
    Posterize Equalize Blur GaussianBlur MedianBlur MotionBlur GaussNoise ISONoise CoarseDropout GridDropout ElasticTransform
    GridDistortion OpticalDistortion Sharpen Emboss ImageCompression Downscale RandomRain RandomFog RandomSnow RandomShadow
    RandomSunFlare Normalize ToFloat FromFloat ToTensorV2 OneOf SomeOf Compose Lambda NoOp Erasing D4
"""
# MMDetection, Detectron2, Ultralytics, KerasCV
DETECTION = """
    LongestMaxSize SmallestMaxSize RandomSizedBBoxSafeCrop BBoxSafeRandomCrop ShiftScaleRotate PadIfNeeded MinIoURandomCrop
    RandomExpand CachedMosaic CachedMixUp LoadImageFromFile LoadAnnotations PackDetInputs FilterAnnotations YOLOXHSVRandomAug
    ResizeShortestEdge ResizeScale FixedSizeCrop LargeScaleJittering JitteredResize SanitizeBoundingBoxes ClampBoundingBoxes
    ConvertBoundingBoxFormat bbox_params keypoint_params label_fields hsv_h hsv_s hsv_v fliplr flipud mosaic close_mosaic
    letterbox Expand SimpleCopyPaste SSDCrop GenerateMaskFromPolygons
"""
OF_BOXES = {
    "bbox_params": {"format": "coco"}, "label_fields": ["labels"], "ann_file": "b.json", "annFile": "b.json", "img_prefix": "other/",
    "root": "other/", "with_mask": True, "mask": True, "segmentation": True, "filter_empty_gt": True, "format": "coco",
    "min_bbox_area": 9, "max_boxes": 50,
}  # fmt: skip
SOURCES = {
    "CocoDetection": "coco", "coco_instances": "coco", "detectron2": "coco", "VOCDetection": "voc", "pascal_voc": "voc",
    "yolov8": "yolo", "ultralytics": "yolo", "labelme_json": "labelme",
}  # fmt: skip
ARGUMENTS = {
    "random_flip": {"p": 0.3, "mode": "horizontal", "seed": 7, "data_format": "channels_last", "always_apply": False},
    "random_rotation": {
        "factor": 0.1,
        "limit": 30,
        "fill_mode": "reflect",
        "fill_value": 0,
        "cval": 0.0,
        "border_mode": 0,
        "resample": "bilinear",
        "p": 0.5,
    },
    "random_translation": {"height_factor": 0.2, "width_factor": 0.2, "translate": [0.1, 0.1], "shift_limit": 0.1},
    "random_zoom": {"height_factor": 0.2, "width_factor": 0.2, "zoom_range": 0.2, "scale_limit": 0.1, "scale": [0.8, 1.2]},
    "random_brightness": {"limit": 0.2, "value_range": [0, 255], "brightness_limit": 0.2},
    "random_color_jitter": {"brightness": 0.2, "contrast": 0.2, "saturation": 0.2, "hue": 0.05},
    "resize": {"height": 224, "width": 224, "interpolation": "bilinear", "crop_to_aspect_ratio": True, "target_size": [48, 48]},
    "random_resized_crop": {"scale": [0.2, 1.0], "ratio": [0.75, 1.33], "interpolation": "bilinear"},
    "random_shear": {"x_factor": 0.1, "shear_range": 0.2, "limit": 10},
    "random_gaussian_blur": {"kernel_size": 3, "blur_limit": 3, "sigma_limit": 2.0},
    "random_gaussian_noise": {"var_limit": 10.0, "std_range": [0.1, 0.2], "stddev": 5.0},
}
ELSEWHERE = [
    *({"batch_size": 64}, {"shuffle": 1000}, {"shuffle": False}, {"cache": True}, {"prefetch": -1}, {"num_workers": 4}, {"val": 0.2}),
    *({"validation_split": 0.2}, {"image_size": [48, 48]}, {"color_mode": "grayscale"}, {"label_mode": "categorical"}, {"seed_": 3}),
    *({"class_mode": "binary"}, {"drop_remainder": True}, {"horizontal_flip": True}, {"preprocessing_function": "f"}, {"test_size": 0.2}),
]


def _advice(spec: dict[str, Any]) -> list[tuple[Diagnostic, Advice]]:
    return [(d, line) for d in inspect(spec).diagnostics for line in d.help if isinstance(line, Advice)]


def _works(spec: dict[str, Any]) -> bool:
    """Whether advice is there, and each piece of it, followed, leaves no error of the form behind that was not there."""
    before = {(d.code, d.message) for d in inspect(spec).diagnostics}
    found = _advice(spec)
    after = [{(d.code, d.message) for d in inspect(followed(spec, *one)).diagnostics if d.severity is Severity.ERROR} for one in found]
    return bool(found) and all(new <= before - {(d.code, d.message)} for new, (d, _) in zip(after, found, strict=True))


@pytest.mark.parametrize(
    "words",
    [LAYERS.split(), TORCHVISION.split(), ALBUMENTATIONS.split(), VIEWS.split()],
    ids=["keras", "torchvision", "albumentations", "views"],
)
def test_every_step_of_another_library_has_lines_to_paste(words: list[str]) -> None:
    """Or a line that says why nothing does the same."""
    found = inspect({**BASE, "transforms": [*BASE["transforms"], *({word: {}} for word in words)]}).diagnostics
    refused = {d.labels[0].path.split(".")[-1] for d in found if any(line.startswith("pipegen has no form of ") for line in d.help)}
    answered = {d.labels[0].path.split(".")[-1] for d in found for line in d.help if isinstance(line, Advice)}
    assert [word for word in words if word not in answered | refused] == []
    for word in [word for word in words[::6] if word not in refused]:
        assert _works({**BASE, "transforms": [{"resize": {"size": 256}}, word]}), word


@pytest.mark.nightly
def test_words_of_detection_have_lines_to_paste_that_work() -> None:
    coco = {"images": "photos/", "annotations": "a.json"}
    base = {**BASE, "source": {"coco": coco}, "output": {"y": "boxes"}}
    with_masks = {**base, "source": {"coco": {**coco, "masks": "instances"}}}
    for word in DETECTION.split():
        if word != "mosaic":
            assert _works({**with_masks, "transforms": [{"resize": {"size": 256}}, word]}), word
    for word, value in OF_BOXES.items():
        assert _works({**base, "source": {"coco": {**coco, word: value}}}), word
    (named,) = _advice({**base, "source": {"coco": {"img_folder": "photos/", "annotations": "a.json"}}})
    assert named[1].lines.startswith("images: ")
    for word, op in SOURCES.items():
        ((_, advice),) = _advice({**base, "source": {word: {"root": "photos/"}}})
        assert advice.lines.startswith(f"{op}: "), word


def test_several_steps_are_said_and_no_single_one() -> None:
    """`pad` alone is not what `LongestMaxSize` does."""
    (found,) = inspect({**BASE, "transforms": [{"longest_max_size": {"max_size": 640}}]}).diagnostics
    assert [line.partition(" (")[0] for line in found.help] == ["write\n  - resize: {longer_side: 640}\n  - pad: {size: 640}"]


def test_formats_of_boxes_have_other_names_elsewhere() -> None:
    for word, own in {"coco": "xywh", "pascal_voc": "xyxy", "yolo": "rel_center_xywh", "albumentations": "rel_xyxy"}.items():
        features = {"image": {"kind": "image", "size": [48, 48]}, "boxes": {"kind": "boxes", "format": word}}
        found = inspect({**BASE, "source": {"arrays": {"features": features}}, "output": {"y": "boxes"}}).diagnostics
        assert [f"did you mean `{own}`?" in map(str, d.help) for d in found if d.severity is Severity.ERROR] == [True], word
        (error,) = inspect({**BASE, "source": {"arrays": {"features": {**features, "boxes": {"kind": "boxes"}}}},
                            "output": {"y": "boxes", "boxes": word}}).diagnostics  # fmt: skip
        assert f"did you mean `{own}`?" in map(str, error.help)


@pytest.mark.parametrize("words", [GENERATOR.split(), LOADING.split()], ids=["keras", "tf.data and PyTorch"])
def test_every_argument_of_another_library_has_lines_to_paste(words: list[str]) -> None:
    """At the top, in the source, as a step."""
    for spec in (
        {**BASE, **dict.fromkeys(words, True)},
        {**BASE, "source": {"image_folder": {"path": "photos/", **dict.fromkeys(words, True)}}},
        {**BASE, "transforms": [*BASE["transforms"], *({word: True} for word in words)]},
    ):
        found = inspect(spec).diagnostics
        answered = {d.labels[0].path.split(".")[-1] for d in found for line in d.help if isinstance(line, Advice)}
        assert [word for word in words if word not in answered] == []


@pytest.mark.parametrize("op", ARGUMENTS)
def test_every_argument_of_a_layer_has_lines_to_paste(op: str) -> None:
    needed = {"random_zoom": {}, "random_translation": {"x": 0.1}, "random_color_jitter": {}, "random_brightness": {"delta": 20}}
    for word, value in ARGUMENTS[op].items():
        spec = {**BASE, "transforms": [*BASE["transforms"], {op: {**needed.get(op, {}), word: value}}]}
        assert _works(spec), (op, word, _advice(spec))


@pytest.mark.parametrize("entry", ELSEWHERE, ids=str)
def test_settings_of_elsewhere(entry: dict[str, Any]) -> None:
    assert _works({**{k: v for k, v in BASE.items() if k != "output"}, **entry}), entry


def test_the_user_s_values_are_in_the_lines() -> None:
    def lines(**sections: Any) -> list[str]:
        return [advice.lines for _, advice in _advice({**BASE, **sections})]

    assert lines(batch_size=64) == ["batch: {size: 64}"]
    assert lines(validation_split=0.25) == ["splits: {parts: {train: 0.75, validation: 0.25}}"]
    assert lines(transforms=[{"RandomHorizontalFlip": {"p": 0.3}}]) == ["random_flip: {probability: 0.3}"]
    assert lines(transforms=[{"RandomRotation": {"factor": 0.1, "fill_mode": "constant"}}]) == [
        "random_rotation: {degrees: 36, fill: {constant: 0}}"
    ]
    assert lines(transforms=[{"Resize": {"height": 200, "width": 224}}]) == ["resize: {size: [200, 224]}"]
    jitter = "{steps: [{random_brightness: {factor: 0.1}}, {random_hsv: {hue_degrees: 18}}]}"
    assert lines(transforms=[{"torchvision.ColorJitter": {"brightness": 0.1, "hue": 0.05}}]) == [f"random_order: {jitter}"]
    assert lines(transforms=[{"rotate": {"degrees": 20}}]) == ["random_rotation: {degrees: 20}", "rotation: {degrees: 20}"]
    assert lines(transforms=[{"rescale": "1/255"}, {"resize": {"size": 8}}]) == ["rescale: {to: [0, 1]}"]
    assert lines(transforms=[{"random_flip": "horizontal"}, {"resize": {"size": 8}}]) == ["random_flip: {axis: horizontal}"]


def test_the_table_is_well_formed() -> None:
    """Each row has a place, words in the spelling of their library, and lines; no word stands twice in one place with the same lines."""
    seen = [(row.place, plain(word.partition("=")[0]), word.partition("=")[2], row.lines) for row in every_row() for word in row.words]
    assert {row.place for row in every_row()} == {"step", "source", "key", "value", "spec", "split", "member"}
    assert all(row.words and row.lines for row in every_row())
    assert len(seen) > 900
    assert sorted(row for row in set(seen) if seen.count(row) > 2) == []


@pytest.mark.nightly
def test_what_is_very_long_is_not_said_again() -> None:
    """A finding stays a few lines however large the value is that stands behind a word."""
    large: list[Any] = [list(range(5_000)), ["c" * 50] * 500, "x" * 100_000, {f"k{i}": i for i in range(500)}]
    for value in large:
        spec = {
            **BASE,
            "class_names": value,
            "directory": value,
            "transforms": [{"ColorJitter": value}, {"random_rotation": {"limit": value}}],
        }
        found = inspect(spec).diagnostics
        assert max(len(line) for d in found for line in d.help) < 400
        text = "\n".join(f"{key}: {json.dumps(inner)}" for key, inner in spec.items())
        assert max((len(d.fix.title) for d in inspect("spec.yaml", text=text).diagnostics if d.fix is not None), default=0) < 400


def test_braces_and_dollars_of_the_user_are_text() -> None:
    for word in ("{}", "{0.__class__}", "a{b", "$$x", "`", "\n"):
        found = inspect(
            {**BASE, "verbose": word, word: {"p": word}, "transforms": [word, {"RandomRotation": {"fill_mode": word}}]}
        ).diagnostics
        assert [d for d in found if d.code in ("PG103", "PG102")]
        assert [line for d in found for line in d.help if isinstance(line, Advice)]


def test_two_words_for_one_argument_become_one() -> None:
    """`height` and `width` are both a `size`: written one by one, the second would stand twice in its map."""

    def lines(*steps: dict[str, Any]) -> list[list[str]]:
        return [sorted({advice.lines for _, advice in _advice({**BASE, "transforms": [step]})}) for step in steps]

    pair = {"height": 32, "width": 48}
    assert lines({"resize": pair}, {"random_crop": pair}, {"random_resized_crop": pair}) == [
        ["resize: {size: [32, 48]}"],
        ["random_crop: {size: [32, 48]}"],
        ["random_resized_crop: {size: [32, 48]}"],
    ]
    assert lines({"random_zoom": {"height_factor": 0.2, "width_factor": 0.3}}) == [["x: 0.3", "y: 0.2"]]
    assert _works({**BASE, "transforms": [{"resize": {**pair, "interpolation": "bicubic"}}]})


@pytest.mark.parametrize(
    "map_", ["resize: {height: 32, width: 48}", "random_zoom: {height_factor: 0.2, width_factor: 0.3}", "resize: {szie: 32, height: 32}"]
)
def test_fixes_of_one_map_never_write_a_key_twice(map_: str) -> None:
    text = f"pipegen: 1\nsource: {{image_folder: {{path: photos/}}}}\ntransforms:\n  - {map_}\nbatch: {{siez: 4, batch_size: 4}}\n"
    found = inspect("spec.yaml", text=text).diagnostics
    new, made = apply_fixes(text, [d.fix for d in found if d.fix is not None], "spec.yaml")
    assert made
    assert not {d.code for d in inspect("spec.yaml", text=new).diagnostics} & {"PG002", "PG007"}


def test_a_key_of_a_section_that_stands_beside_it_is_told_its_place() -> None:
    spec = {k: v for k, v in BASE.items() if k != "splits"}
    assert [a.lines for _, a in _advice({**spec, "folds": {"count": 5, "fold": 0}})] == ["splits: {folds: {count: 5, fold: 0}}"]
    assert _works({**spec, "folds": {"count": 5, "fold": 0}})
    assert _works({**spec, "threads": 3})
    for key, value, told in [
        ("parts", {"train": 0.5}, "`parts` is a key of `splits`"),
        ("remainder", "drop", "`remainder` is a key of `batch`"),
        ("features", {"x": 1}, "`features` is an argument of sources"),
    ]:
        (found,) = [d for d in inspect({**BASE, "batch": {"size": 4}, key: value}).diagnostics if d.code == "PG102"]
        assert found.help[0].startswith(told)


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ({"height_factor": 0.2}, ["random_translation: {x: 0.1, y: 0.2}", "random_zoom: {factor: [0.833333, 1.25], inverse: true}"]),
        ({"degrees": 15}, ["random_rotation: {degrees: 15}"]),
        ({"sigma": 1.5}, ["random_gaussian_blur: {sigma: 1.5}"]),
        ({"stddev": 0.2}, ["random_gaussian_noise: {std: [51, 51]}", "from 0 to 1"]),
        ({"GaussianNoise": 0.1}, ["random_gaussian_noise: {std: [25.5, 25.5]}", "of images from 0 to 1", "25.5 for 0.1"]),
        ({"GaussianNoise": {"stddev": 0.05}}, ["random_gaussian_noise: {std: [12.75, 12.75]}"]),
        ({"GaussianNoise": {"sigma": 0.05}}, ["random_gaussian_noise: {std: [12.75, 12.75]}"]),
        ({"GaussNoise": {"var_limit": [10, 50]}}, ["no argument `var_limit`", "`std_range`"]),
        ({"AdjustHue": {"hue_factor": 0.1}}, ["hue: {degrees: 36}"]),
        ({"RandomMedianBlur": {"blur_limit": 5}}, ["random_median_blur: {side: 5}"]),
        ({"AugMixAugmentation": {"severity": 5, "num_chains": 2}}, ["aug_mix: {magnitude: 5, chains: 2}"]),
    ],
    ids=str,
)
def test_an_argument_written_as_a_step_and_noise_in_our_units(step: dict[str, Any], says: list[str]) -> None:
    spec = {**BASE, "transforms": [*BASE["transforms"], step]}
    (found,) = (d for d in inspect(spec).diagnostics if d.code == "PG103")
    for part in says:
        assert part in "\n".join(found.help)
    for advice in (a for a in found.help if isinstance(a, Advice)):
        assert not inspect(followed(spec, found, advice)).diagnostics.has_errors, advice


@pytest.mark.parametrize(("section", "key"), [({"batch": {"size": 32, "batch_size": 16}}, "batch_size")])
def test_a_word_for_what_stands_beside_it_is_left_out(section: dict[str, Any], key: str) -> None:
    spec = {**BASE, **section}
    (found,) = (d for d in inspect(spec).diagnostics if d.severity is Severity.ERROR)
    (advice,) = found.help
    assert isinstance(advice, Advice)
    assert f"leave `{key}` out: it means the same as `size: 32`" in advice
    assert not inspect(followed(spec, found, advice)).diagnostics.has_errors


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("image_folder: {directory: photos/a}", "path: photos/a"),
        ("ImageFolder: {root: photos/a}", "path: photos/a"),
        ("series: {path: a/t.csv}", "csv: {path: a/t.csv}"),
        ("series: {path: /elsewhere/t.csv}", "csv: {path: /elsewhere/t.csv}"),
    ],
)
def test_paths_are_advised_relative_to_the_spec(source: str, says: str) -> None:
    """As they were written: a spec that is shared has none of the machine."""
    found = inspect("spec.yaml", text=f"pipegen: 1\nsource: {{{source}}}\n").diagnostics
    advice = [line.lines for d in found for line in d.help if isinstance(line, Advice)]
    advice += [edit.replacement for d in found if d.fix is not None for edit in d.fix.edits]
    assert any(says in lines for lines in advice)
