"""A mistake in one section hides none in another, and what is missing because of it is not held against the spec."""

from __future__ import annotations

import pytest

from pipegen.phases.compilation import inspect

GOOD = {
    "pipegen": "1",
    "source": "{image_folder: {path: photos}}",
    "splits": "{parts: {train: 0.8, validation: 0.2}}",
    "transforms": "[{resize: {size: 32}}, random_flip]",
    "batch": "{size: 8}",
    "output": "{x: image}",
}


def codes(**sections: str) -> list[str]:
    text = "".join(f"{key}: {value}\n" for key, value in (GOOD | sections).items())
    return sorted(d.code for d in inspect("spec.yaml", text=text).diagnostics)


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({}, []),
        ({"batch": "{size: 0}", "splits": "{parts: {train: 0.8, validation: 0.5}}"}, ["PG105", "PG301"]),
        ({"source": "{image_folder: {pth: a}}", "output": "{x: imge}"}, ["PG102", "PG217"]),
        ({"source": "{image_folder: {pth: a}}", "transforms": "[{resize: {shorter_side: 9}}]"}, ["PG102", "PG201"]),
        ({"seed": "much", "transforms": "[{normalize: {preset: torch}}, {random_brightness: {factor: 0.1}}]"}, ["PG104", "PG201", "PG214"]),
        ({"epoch": "{step: 3}", "batch": "{remainder: {trian: keep}}"}, ["PG102", "PG220"]),
        ({"seed": "-1", "batch": "{size: 10}", "runtime": "{shard: {index: 0, count: 3}}"}, ["PG105", "PG412"]),
        ({"transforms": "[{center_crop: {size: 40}}, {random_hue: {degrees: 9, fill: 3}}]", "output": "{y: lable}"}, ["PG102", "PG217"]),
    ],
)
def test_sections_are_judged_together_though_one_is_wrong(sections: dict[str, str], expected: list[str]) -> None:
    assert codes(**sections) == expected


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"transforms": "[{resize: {sze: 32}}, {normalize: {preset: torch}}]"}, ["PG102"]),
        ({"transforms": "[{resize: {sze: 32}}]", "output": "{dtype: uint8, channels: first}"}, ["PG102"]),
        ({"trasforms": "[{resize: {size: 32}}]", "transforms": "[]"}, ["PG102"]),
        ({"source": "{csv: {path: a.csv}}", "output": "{x: photo, y: price}"}, ["PG101"]),
        ({"splits": "{parts: {train: 0.8, validation: x}}", "batch": "{remainder: {validation: drop}}"}, ["PG104"]),
        ({"splits": "{part: {train: 0.8, test: 0.2}}", "transforms": "[{resize: {size: 32, when: [test]}}]"}, ["PG102"]),
        ({"output": "{x: image, encode: {label: onehot}}"}, ["PG105"]),
        ({"pipegen": "9", "transforms": "[{new_step: {a: 1}}]", "output": "{x: picture}"}, ["PG103", "PG111"]),
        ({"augmentation": "[]", "transforms": "[]"}, ["PG102"]),
    ],
)
def test_nothing_is_concluded_from_what_was_left_out(sections: dict[str, str], expected: list[str]) -> None:
    assert codes(**sections) == expected


SMALL = "{resize: {size: 20}}"
TOO_LARGE = "{center_crop: {size: 30}}"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ("{random_rotation: {degree: 20}}, {normalize: {preset: torch}}, {random_brightness: {factor: 0.1}}", ["PG102", "PG206", "PG214"]),
        ("{random_rotation: {degrees: steep}}", ["PG104", "PG206"]),
        ("{random_hue: {degrees: 5, whn: all}}", ["PG102", "PG206"]),
        ("{normalize: {preset: torhc}}", ["PG105", "PG206"]),
        ("{random_flip: null}, {random_shear: 20}", ["PG112", "PG112", "PG206"]),
        ("{random_hue: {degrees: 5, fill: 1}}, {rescale: {sale: 2}}", ["PG102", "PG102", "PG206"]),
        ("{rescale: {to: [0, 1]}}, {normalize: {preset: torch}}", ["PG206", "PG213"]),
    ],
)
def test_steps_after_a_wrong_one_that_keeps_the_shape_are_judged(steps: str, expected: list[str]) -> None:
    assert codes(transforms=f"[{SMALL}, {steps}, {TOO_LARGE}]") == expected


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # What normalises may be what is wrong, and which values a wrong fill or a wrong `when` leaves is not known.
        ("{normalize: {prset: torch}}, {random_brightness: {factor: 0.1}}, {rescale: {scale: 0.003}}", ["PG102"]),
        ("{rescale: {to: [0, one]}}, {normalize: {preset: torch}}", ["PG104"]),
        ("{rescale: {to: [0, 1]}}, {random_flip: {fil: {constant: 255}}}, {normalize: {preset: torch}}", ["PG102"]),
        ("{random_hue: {degrees: 4, whn: eval}}, {random_rotation: {degrees: 4, fill: {constant: 0.5}}}", ["PG102"]),
        ("{random_hue: {degree: 4, when: all}}, {random_rotation: {degrees: 4, fill: {constant: 0.5}}}", ["PG102"]),
        # These change the shape.
        ("{grayscale: {channel: 1}}, {normalize: {mean: [1, 2]}}", ["PG102"]),
        ("{center_crop: {sze: 9}}, {center_crop: {size: 24}}", ["PG102"]),
        ("{random_zum_in: {factor: 0.2}}, {random_crop: {size: 24}}", ["PG103"]),
        ("nothing_known, {normalize: {preset: torch}}, {normalize: {mean: [1, 2], std: [1, 2]}}", ["PG103"]),
        # After a finding about values, nothing more is said about them.
        ("{rescale: {to: [0, 1]}}, {normalize: {preset: torch}}, {random_brightness: {factor: 0.1}}", ["PG213"]),
        ("{normalize: {preset: torch}}, {random_hue: {degrees: 4}}, {random_brightness: {factor: 0.1}}", ["PG214"]),
    ],
)
def test_nothing_is_concluded_from_a_step_in_doubt(steps: str, expected: list[str]) -> None:
    assert codes(transforms=f"[{SMALL}, {steps}]") == expected


def test_a_param_without_a_value_is_said_once() -> None:
    assert codes(params="{size: {type: int}}", transforms="[{resize: {size: $size}}]") == ["PG108"]


def test_the_steps_of_a_section_that_is_left_out_keep_their_places() -> None:
    steps = "\n  - rescale: {to: [0, 1]}\n  - normalize: {preset: torch}\n  - resize: {}\n"
    text = f"pipegen: 1\nsource: {{image_folder: {{path: a}}}}\ntransforms:{steps}"
    found = inspect("spec.yaml", text=text).diagnostics.sorted()
    assert [(d.code, d.span.line) for d in found if d.span] == [("PG213", 5), ("PG105", 6)]


TORCH = "{normalize: {preset: torch}}"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # What a misspelt word stands for is one of a few, and with each of them what comes later is wrong.
        ("{normalize: {preset: torhc}}, equalization", ["PG105", "PG221"]),
        ("{normalize: {preset: nobody}}, {random_brightness: {factor: 0.1}}", ["PG105", "PG214"]),
        ("{cast: {dtype: flaot32}}, {normalize: {preset: torhc}}, equalization", ["PG105", "PG105", "PG221"]),
        ("{cast: {dtype: q}}, {normalize: {preset: q}}, equalization", ["PG105", "PG105"]),  # too many to try
        # A wrong size leaves the values, and an unknown step what a later one fixes.
        (f"{{resize: {{sise: 9}}}}, {TORCH}, equalization", ["PG102", "PG221"]),
        (f"nothing_known, {{resize: {{size: 9}}}}, {TOO_LARGE}", ["PG103", "PG206"]),
        (f"nothing_known, {{center_crop: {{size: 9}}}}, {TOO_LARGE}, equalization", ["PG103", "PG206"]),
        (f"nothing_known, {TORCH}, equalization", ["PG103"]),
        # So does a step that cannot run.
        (f"{TOO_LARGE}, {{center_crop: {{size: 40}}}}, {TORCH}, equalization", ["PG206", "PG206", "PG221"]),
        (f"{TOO_LARGE}, {{center_crop: {{size: 20}}}}", ["PG206"]),
    ],
)
def test_what_is_wrong_behind_a_wrong_step_is_found_in_one_run(steps: str, expected: list[str]) -> None:
    assert codes(transforms=f"[{SMALL}, {steps}]") == expected


@pytest.mark.parametrize(
    "source",
    [
        "{image_foldr: {path: x}}",
        "{image_folder: {path: x, lables: 3}}",
        "{csv: {path: x, features: {image: {kind: image, colum: a}}}}",
        "{by_split: {train: {image_folder: {pth: x}}}}",
        "nobody",
    ],
)
def test_a_wrong_source_hides_neither_steps_nor_splits(source: str) -> None:
    found = codes(
        source=source, splits="{parts: {train: 0.9, validation: 0.3}}", transforms=f"[{SMALL}, {TOO_LARGE}, {TORCH}, equalization]"
    )
    assert [c for c in found if c not in ("PG102", "PG103", "PG221")] == ["PG206", "PG301"]
    assert ("PG221" in found) == ("image_fol" in source and "by_split" not in source), "of other sources the values are not known"


@pytest.mark.parametrize("source", ["{arays: {features: {}}}", "{csv: {path: x, features: {n: {kind: tensor, colum: a}}}}"])
def test_features_of_a_source_in_doubt_are_not_missed(source: str) -> None:
    steps = "[{random_flip: {feature: photo}}, {resize: {size: 8, feature: mask}}]"
    assert set(codes(source=source, transforms=steps, output="{x: photo, y: mask}")) <= {"PG101", "PG102", "PG103", "PG104", "PG105"}
