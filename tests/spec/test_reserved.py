"""What the language keeps for later is said to be "not yet", and nothing else is said about it."""

from __future__ import annotations

import pytest
from spec_helpers import codes, read

from pipegen.ops.registry import sources, transforms
from pipegen.spec.reserved import SOURCES, STEPS

TASKS = {
    "2 table with three numeric targets and weights": """
        source:
          csv:
            path: houses.csv
            features:
              rooms: {kind: tensor, columns: [rooms, area, age]}
              price: {kind: tensor, columns: [low, mid, high]}
              weight: {kind: weight, column: weight}
        splits: {parts: {train: 0.8, validation: 0.2}}
        output: {x: rooms, y: price, sample_weight: weight}
        """,
    "3 16-bit grayscale, patients never split, 5 folds": """
        params: {fold: {type: int, default: 0, min: 0, max: 4}}
        source:
          files:
            features:
              image: {kind: image, path: scans/, channels: 1, bits: 16}
              label: {kind: label, path: labels/}
            key: stem
        splits: {group: patient, folds: {count: 5, fold: $fold}, parts: {test: 0.1}}
        transforms: [{resize: {size: 256}}, {random_rotation: {degrees: 10}}]
        """,
    "4 image and mask in two folders": """
        source:
          files:
            features:
              image: {kind: image, path: images/}
              mask: {kind: mask, path: masks/, of: image, values: {0: 0, 255: 1}}
            key: stem
        transforms: [{resize: {size: 128}}, random_flip]
        output: {x: image, y: mask}
        """,
    "5 arrays in memory with mixup": """
        source: {arrays: {features: {image: {kind: image}, label: {kind: label, classes: 10}}}}
        transforms: [random_flip, {mixup: {alpha: 0.2}}]
        output: {encode: {label: one_hot}}
        """,
    "6 several labels per photo in one column": """
        source:
          csv:
            path: photos.csv
            features: {image: {kind: image, column: file, root: photos/}, label: {kind: label, column: tags, separator: "|"}}
        transforms: [{resize: {size: 224}}]
        output: {encode: {label: multi_hot}}
        """,
    "7 image and table columns into a two-input model": """
        source:
          csv:
            path: photos.csv
            features:
              image: {kind: image, column: file}
              facts: {kind: tensor, columns: [age, weight]}
              label: {kind: label, column: class}
        transforms: [{resize: {size: 224}}]
        output: {x: {picture: image, facts: facts}, y: label}
        """,
    "10 TFRecords with progressive resizing": """
        source: {tfrecord: {path: records/, features: {image: {kind: image, key: image}, label: {kind: label, key: label}}}}
        stages: [{epochs: 5, size: 128}, {epochs: 10, size: 224}]
        transforms: [{random_rotation: {degrees: {step: {0: 5, 5: 9}}}}]
        """,
    "11 an 80/20 mix, augmentation per source": """
        source:
          mix:
            epoch: shortest
            parts:
              real: {weight: 0.8, source: {image_folder: {path: real/}}, transforms: [random_flip]}
              made: {weight: 0.2, source: {image_folder: {path: made/}}}
        transforms: [{resize: {size: 224}}]
        """,
}


@pytest.mark.parametrize("task", TASKS)
def test_tasks_of_later_waves_are_not_yet(task: str) -> None:
    loaded = read(TASKS[task], head="pipegen: 1\n")
    assert set(codes(loaded)) == {"PG190"}
    assert loaded.spec is None


@pytest.mark.parametrize(
    ("body", "n"),
    [
        ("tests: [{shape: [224, 224, 3]}]", 1),
        ("tests: {1: 2}", 1),
        ("stages: []", 1),
        ("runtime: {service: grpc://x, cache: none}", 1),
        ("runtime: {cache: {disk: /ssd/cache}, jit: never}", 1),
        ("splits: {method: {column: part}, parts: {train: a, validation: b}}", 1),
        ("splits: {group: patient}", 1),
        ("transforms: [{random_rotation: {degrees: {linear: {from: 0, to: 20, epochs: [0, 20]}}}}]", 1),
        ("transforms: [{random_rotation: {degrees: {step: {0: 5, 30: 9}}}}]", 1),
        ("transforms: [{random_rotation: {degrees: 5, interpolation: bicubic}}]", 1),
        ("transforms: [{python: {function: 'my_pkg.mod:fn'}}, one_of]", 2),
    ],
)
def test_reserved_syntax(body: str, n: int) -> None:
    assert codes(read(body)) == ["PG190"] * n


def test_what_is_registered_is_not_reserved() -> None:
    assert not STEPS & set(transforms())
    assert not set(SOURCES) & set(sources())


def test_a_real_mistake_beside_a_reserved_key_is_still_found() -> None:
    assert codes(read("runtime: {service: x, cache: momory}")) == ["PG190", "PG105"]
