"""Parts of a mix that draw from their easiest examples: in exact counts, over the numbers that the weights give them."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from pipes import picture
from typing import Any

import numpy as np
import pytest
from mix_walk import Walk
from mixes import build
from PIL import Image

pytestmark = pytest.mark.tf

SIZE, OTHER, EPOCH = 11, 5, 26


def drawn(weights: list[list[float]], shares: list[float], epochs: int) -> list[tuple[list[int], list[int]]]:
    """The records of the first part in each epoch, and the passes that they are of."""
    import tensorflow as tf

    from pipegen.backend.index.interleaving import Counts, MixedOrder
    from pipegen.backend.index.order import Order
    from pipegen.backend.reading.sampled import PacedTensors
    from pipegen.data.rounding import mixture
    from pipegen.data.sampling import easiest_first, paced

    made = mixture(EPOCH, weights)
    easiest = easiest_first(np.arange(SIZE) * 7 % SIZE, np.arange(SIZE, dtype=np.uint64), shares, SIZE, 3)
    own = PacedTensors(paced(easiest, lambda epoch: made.before(epoch)[0]))
    plain = Order(OTHER, 4, "keep", (0, 1), None, "global", 0, 6)
    part = Order(SIZE, 4, "keep", (0, 1), None, "stored", 0, 5, sampled=own, passes=own.found)
    order = MixedOrder(
        EPOCH, 4, "keep", (0, 1), None, "global", 0, 7, parts=(part, plain), counts=Counts(made), begins=(0, SIZE, SIZE + OTHER)
    )
    found = []
    for epoch in range(epochs):
        record, cycle, stood = (values.numpy() for values in order.found(epoch, tf.range(EPOCH, dtype=tf.int64)))
        mine = record < SIZE
        assert not stood.any()
        found.append((record[mine].tolist(), cycle[mine].tolist()))
    return found


@pytest.mark.parametrize(
    ("weights", "shares"),
    [
        ([[0.5], [0.5]], [0.3, 0.3, 0.3, 0.6, 0.6, 1.0]),
        ([[0.0, 0.1, 0.2, 0.1, 0.3], [1.0]], [0.2, 0.4, 0.6, 0.8, 1.0]),
        ([[0.9], [0.1]], [1.0, 0.05]),
    ],
)
def test_a_part_draws_from_its_easiest_in_turn(weights: list[list[float]], shares: list[float]) -> None:
    epochs, walk = 9, Walk(EPOCH, weights)
    found = drawn(weights, shares, epochs)
    ranked = sorted(range(SIZE), key=lambda i: i * 7 % SIZE)
    since: Counter[int] = Counter()
    visited: set[tuple[int, int]] = set()
    before = 0
    for epoch, (records, cycles) in enumerate(found):
        k = math.ceil(shares[min(epoch, len(shares) - 1)] * SIZE - 1e-9)
        if k != before:
            since, before = Counter(), k
        assert len(records) == walk.counts(epoch)[0]
        assert set(records) <= set(ranked[:k])
        since += Counter(records)
        m = since.total()
        assert {since[i] for i in ranked[:k]} <= {m // k, -(-m // k)}
        visits = set(zip(records, cycles, strict=True))
        assert len(visits) == len(records), "a pass has no example twice, so that each visit has draws of its own"
        assert not visits & visited
        visited |= visits


def test_a_pass_begins_where_all_of_the_easiest_have_been_seen() -> None:
    from pipegen.data.sampling import easiest_first, paced

    easiest = easiest_first(np.arange(10), np.arange(10, dtype=np.uint64), [0.5, 1.0], 10, 3)
    made = paced(easiest, lambda epoch: 7 * epoch)
    assert (made.begins.tolist(), made.counts.tolist(), made.passes.tolist()) == ([0, 7], [5, 10], [0, 2]), "7 of 5 are two passes"


def spec(root: Path, **part: Any) -> dict[str, Any]:
    """A table of scored pictures beside a folder of others."""
    lines = ["file,label,loss"]
    for i in range(SIZE):
        Image.fromarray(picture(i, 12, 12)).save(root / f"{i}.png")
        lines.append(f"{i}.png,{i % 2},{i * 7 % SIZE}")
    (root / "t.csv").write_text("\n".join(lines) + "\n")
    for i in range(OTHER):
        (root / "p" / "0").mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture(90 + i, 12, 12)).save(root / "p" / "0" / f"{i}.png")
    features = {"image": {"kind": "image", "column": "file"}, "label": {"kind": "label"}, "loss": {"kind": "tensor"}}
    parts = {
        "scored": {"weight": 0.5, "source": {"csv": {"path": str(root / "t.csv"), "features": features}}, **part},
        "others": {"weight": 0.5, "source": {"image_folder": {"path": str(root / "p")}}},
    }
    steps = [{"resize": {"size": 8}}, "random_flip"]
    return {
        "pipegen": 1,
        "source": {"mix": {"epoch": "scored", "parts": parts}},
        "transforms": steps,
        "batch": {"size": 4, "remainder": "keep"},
    }


@pytest.mark.nightly
@pytest.mark.parametrize("end", ["low", "high"])
def test_a_spec_orders_a_part(tmp_path: Path, end: str) -> None:
    """The table's own numbers say which pictures are seen; the other part has what it has without."""
    made = spec(tmp_path, order={"by": "loss", "from": end, "pace": {"step": {0: 0.3, 2: 1}}})
    pipe, plain = build(made), build(spec(tmp_path))
    assert pipe.steps("train") == plain.steps("train") == 6, "an epoch goes once through the part, whatever its pace"
    keys = list(pipe._manifest.keys("train"))
    told = {f"scored/{i}.png": i * 7 % SIZE for i in range(SIZE)}
    easiest = sorted(told, key=lambda key: told[key], reverse=end == "high")[:4]
    seen: list[Counter[str]] = []
    for epoch in range(3):
        mine = [keys[i] for i in pipe._engine.order_of("train", epoch).tolist()]
        theirs = [keys[i] for i in plain._engine.order_of("train", epoch).tolist()]
        assert [key for key in mine if key.startswith("others")] == [key for key in theirs if key.startswith("others")]
        seen.append(Counter(key for key in mine if key.startswith("scored")))
    assert set(seen[0]) == set(seen[1]) == set(easiest)
    assert sorted((seen[0] + seen[1]).values()) == [5, 5, 6, 6]
    assert seen[2] == Counter(told.keys()), "all of them, once each"
    assert "scored: epoch 0 draws" in str(pipe.explain())
    pipe.seek(1, 2)
    other = build(made | {"batch": {"size": 2, "remainder": "keep"}})
    other.restore(pipe.state())
    whole = [image for x, _ in pipe.dataset("train", epoch=1) for image in x.numpy()]
    assert np.array_equal([image for x, _ in other.train for image in x.numpy()], whole[8:])


def test_what_is_wrong_with_the_order_of_a_part_is_said_there(tmp_path: Path) -> None:
    from pipegen.phases.compilation import inspect

    at = "source.mix.parts.scored.order"
    for section, more, code, path in (
        ({"by": "los", "pace": 1}, {}, "PG217", f"{at}.by"),
        ({"by": "image", "pace": 1}, {}, "PG472", f"{at}.by"),
        ({"by": "loss", "pace": 0}, {}, "PG105", f"{at}.pace"),
        ({"by": "loss", "pace": 1}, {"sampling": {"balance": "label"}}, "PG471", at),
    ):
        findings = [d for d in inspect(spec(tmp_path, order=section, **more)).diagnostics.items if d.severity.value == "error"]
        assert [(d.code, d.labels[0].path) for d in findings] == [(code, path)]
    findings = [d for d in inspect(spec(tmp_path, order={"by": "loss", "pace": 1}) | {"shuffle": {"window": 4}}).diagnostics.items]
    assert "PG470" in [d.code for d in findings]
