"""Did you mean: a table of words that people write, and words that mean nothing here."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipegen.diagnostics.suggest import closest, every_row

PLACES = {
    "steps": (
        "cast center_crop decode grayscale normalize random_brightness random_contrast random_crop random_flip random_hue "
        "random_resized_crop random_rotation random_saturation random_shear random_translation random_zoom rescale resize"
    ),
    "top": "pipegen name description extends params source splits transforms seed shuffle epoch batch output errors runtime",
    "flip": "axis fill interpolation exact probability when feature id",
    "rotation": "degrees fill interpolation exact probability when feature id",
    "translation": "x y fill interpolation exact probability when feature id",
    "brightness": "factor probability when feature id",
    "resize": "size shorter_side mode method antialias fill when feature id",
    "resized_crop": "size area aspect_ratio method antialias when feature id",
    "runtime": "cache shard prefetch threads ram_budget jit",
    "batch": "size remainder",
    "splits": "parts method stratify group folds seed",
    "output": "x y sample_weight encode dtype channels",
    "sources": "image_folder by_split",
    "image_folder": "path classes labels pattern follow_links",
    "param": "type default min max choices env description",
    "parts": "train validation test",
    "fill": "reflect nearest wrap",
    "method": "nearest bilinear bicubic area lanczos3",
}
PLACE = {name: words.split() for name, words in PLACES.items()}

MEANT = {
    "steps": """
        Resize:resize reszie:resize resizing:resize random_filp:random_flip randomflip:random_flip
        RandomFlip:random_flip random-flip:random_flip horizontal_flip:random_flip random_horizontal_flip:random_flip
        RandomHorizontalFlip:random_flip vertical_flip:random_flip HorizontalFlip:random_flip flip:random_flip
        rotation:random_rotation random_rotate:random_rotation rotation_range:random_rotation
        random_rotaton:random_rotation Rotate:random_rotation width_shift_range:random_translation
        height_shift_range:random_translation zoom_range:random_zoom shear_range:random_shear
        brightness_range:random_brightness brightness:random_brightness ColorJitter:random_brightness
        color_jitter:random_brightness RandomResizedCrop:random_resized_crop random_resize_crop:random_resized_crop
        resized_crop:random_resized_crop CenterCrop:center_crop centre_crop:center_crop centercrop:center_crop
        crop:random_crop normalise:normalize normalization:normalize rescaling:rescale greyscale:grayscale
        random_grayscale:grayscale hue:random_hue random_saturaton:random_saturation random_contrst:random_contrast
        ToTensor:rescale zoom:random_zoom shear:random_shear randomzoom:random_zoom normlize:normalize rescle:rescale
        random_translaton:random_translation
    """,
    "top": """
        augment:transforms augmentations:transforms steps:transforms pipeline:transforms transform:transforms tranforms:transforms
        dataset:source data:source input:source sources:source batch_size:batch split:splits random_seed:seed suffle:shuffle
        outputs:output parameters:params param:params epochs:epoch run_time:runtime error:errors extend:extends validation_split:splits
    """,
    "flip": "p:probability prob:probability probabilty:probability propability:probability direction:axis mode:axis featur:feature",
    "rotation": "angle:degrees degree:degrees fill_mode:fill cval:fill interp:interpolation resample:interpolation range:degrees",
    "translation": "height_factor:y width_factor:x probabiliy:probability",
    "brightness": "factors:factor limit:factor strength:factor p:probability",
    "resize": "target_size:size sise:size interpolation:method anti_alias:antialias shortest_side:shorter_side shorter-side:shorter_side",
    "resized_crop": "scale:area ratio:aspect_ratio",
    "runtime": "prefetching:prefetch ram:ram_budget workers:threads caching:cache xla:jit num_parallel_calls:threads",
    "batch": "batch_size:size drop_remainder:remainder reminder:remainder",
    "splits": "stratified:stratify fold:folds part:parts",
    "output": "encoding:encode data_format:channels targets:y inputs:x sample_weights:sample_weight",
    "sources": "image_directory:image_folder imagefolder:image_folder ImageFolder:image_folder folder:image_folder",
    "image_folder": "directory:path class_names:classes follow_symlinks:follow_links",
    "param": "defualt:default minimum:min desc:description",
    "parts": "val:validation trian:train valid:validation tst:test training:train",
    "fill": "mirror:reflect neares:nearest",
    "method": "bilinar:bilinear linear:bilinear cubic:bicubic lanczos:lanczos3",
}
TABLE = [(place, *pair.split(":")) for place, pairs in MEANT.items() for pair in pairs.split()]

FAR_WORDS = """
    banana xyz qwerty foo bar hello spaghetti z 42 kubernetes learning_rate optimizer model_name random random_banana random_snow
    loss metrics callbacks mosaic
"""
FAR = FAR_WORDS.split()


def test_the_table_is_mostly_right() -> None:
    wrong = [(place, word, closest(word, PLACE[place]), meant) for place, word, meant in TABLE if closest(word, PLACE[place]) != meant]
    assert len(TABLE) >= 60
    assert len(wrong) <= 0.05 * len(TABLE), wrong


@pytest.mark.parametrize("place", ["steps", "top", "rotation", "runtime", "splits", "output", "parts", "fill"])
def test_far_words_get_no_suggestion(place: str) -> None:
    guesses = {word: closest(word, PLACE[place]) for word in FAR}
    assert {word: guess for word, guess in guesses.items() if guess} == {}


def test_what_a_word_means_depends_on_the_place() -> None:
    assert closest("rotation_range", PLACE["rotation"]) == "degrees"
    assert closest("batch_size", PLACE["batch"]) == "size"
    assert closest("p", PLACE["top"]) is None
    assert closest("flip", PLACE["runtime"]) is None


@pytest.mark.parametrize("word", ["", "_", "--", "ß", "名前", "x" * 10_000])
def test_odd_words(word: str) -> None:
    assert closest(word, ["resize", "_", ""]) is None
    assert closest(word, []) is None


def test_foreign_names_are_written_plainly() -> None:
    assert every_row()


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=20), st.lists(st.text(max_size=12), max_size=8))
def test_an_answer_is_always_a_candidate(word: str, candidates: list[str]) -> None:
    assert closest(word, candidates) in {None, *candidates}


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(PLACE["steps"]), st.data())
def test_one_slip_in_a_step_is_found(name: str, data: st.DataObject) -> None:
    i = data.draw(st.integers(1, len(name) - 2))
    dropped, swapped, added = name[:i] + name[i + 1 :], name[:i] + name[i + 1] + name[i] + name[i + 2 :], name[:i] + "q" + name[i:]
    wrong = data.draw(st.sampled_from([dropped, swapped, added]))
    guess = closest(wrong, PLACE["steps"])
    assert guess == name or (len(name) < 6 and guess is None)
