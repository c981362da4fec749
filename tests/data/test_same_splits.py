"""Splits, ids and fingerprints of made-up listings are what they have always been."""

from __future__ import annotations

import hashlib
import json
import random
from typing import Any

from pipegen.data.manifest import Manifest
from pipegen.data.splits import assign
from pipegen.errors import OpError
from pipegen.ops.sampling_sections import Splits
from pipegen.ops.sources.listing.base import Listing, Location

CHARACTERS = ["a", "b", "é", "-", ".", "_", "0", "1", "日", "\U0001f600", "\udcff", "/x", "~"]
PARTS: list[dict[str, Any]] = [
    {"train": 0.7, "validation": 0.2, "test": 0.1},
    {"train": 0.75, "validation": 0.2},
    {"train": 1 / 3, "validation": 1 / 3, "x": 1 / 3},
]


def test_nothing_has_moved() -> None:
    """The number is that of the implementation which held a Python object for each record."""
    chance = random.Random(11)
    digest = hashlib.sha256()
    for _ in range(600):
        listing, splits = _listing(chance), Splits(**_section(chance))
        digest.update(json.dumps(_outcome(listing, splits)).encode())
    assert digest.hexdigest() == "cd2d2a4043a3bdef91cdd34aea9c1582d10af305fdfc989b179e1b6adcb43285"


def _listing(chance: random.Random) -> Listing:
    n, classes = chance.choice([1, 2, 5, 17, 60, 200]), chance.choice([1, 2, 5])
    keys: set[str] = set()
    while len(keys) < n:
        name = "".join(chance.choice(CHARACTERS) for _ in range(chance.randrange(24)))
        keys.add(f"c{chance.randrange(classes)}/g{chance.randrange(1, chance.choice([3, 9, 40]))}_{name}")
    ordered = sorted(keys)
    if chance.random() < 0.5:
        chance.shuffle(ordered)
    return Listing.labelled(
        "/data",
        Location.below("/data", ordered, [chance.choice([0, 5, 100, 2**32 - 1, 2**33]) for _ in ordered]),
        tuple(int(key[1 : key.index("/")]) for key in ordered),
        tuple(f"c{i}" for i in range(classes)),
        parts=tuple(chance.choice(["train", "validation"]) for _ in ordered) if chance.random() < 0.1 else None,
        in_table=chance.random() < 0.3,
    )


def _section(chance: random.Random) -> dict[str, Any]:
    section: dict[str, Any] = {"seed": chance.randrange(3), "parts": chance.choice(PARTS)}
    kind = chance.choice(["random", "folds", "hash", "keras"])
    if kind == "folds":
        section |= {"parts": chance.choice([{}, {"test": 0.2}]), "folds": {"count": chance.choice([2, 3, 5]), "fold": 1}}
    elif kind == "keras":
        section |= {"method": "keras", "parts": {"train": 0.8, "validation": 0.2}}
    elif kind == "hash":
        section["method"] = "hash"
    if kind != "keras" and chance.random() < 0.5:
        section["group"] = {"path": chance.choice([r"(g\d+)_", r"g\d", r"(g[1-5])_"])}
    if kind in ("random", "folds") and chance.random() < 0.5:
        section["stratify"] = "label"
    return section


def _outcome(listing: Listing, splits: Splits) -> list[Any]:
    names = [*(["train", "validation"] if splits.folds is not None else []), *splits.parts]
    try:
        manifest = Manifest(listing, assign(splits, listing, names), "image_folder")
    except OpError as error:
        return [error.code, error.message, error.field, error.help]
    held = [[*map(_whole, (manifest.members[s], manifest.labels(s), manifest.ids(s))), list(manifest.files(s))] for s in names]
    weights = [list((manifest.class_weights(s) or {}).items()) for s in names]
    return [names, held, weights, manifest.fingerprint, manifest.split_fingerprint, [manifest.mean_bytes(s) for s in names]]


def _whole(numbers: Any) -> list[int]:
    return [int(number) for number in numbers]
