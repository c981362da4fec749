"""Parts of a mix that are sampled: each pass through a part is a sampled epoch of it, and its share stays what its weight says."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from pipes import SIZE, at, picture
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mix_walk import Walk
from mixes import build, pixels

from pipegen.data.rounding import mixture
from pipegen.data.sampling import balanced, repeated, weighted
from tests.sampling.counting import groups_of_slots

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]


def order(sizes: list[int], epochs: dict[int, Any], examples: int, weights: list[float]) -> Any:
    from pipegen.backend.index.interleaving import Counts, MixedOrder
    from pipegen.backend.index.order import Order
    from pipegen.backend.reading.sampled import sampled

    passes = [epochs[i].size if i in epochs else n for i, n in enumerate(sizes)]
    parts = [
        Order(n, 4, "keep", (0, 1), None, "global", 0, 5 + i, sampled=sampled(epochs[i]) if i in epochs else None)
        for i, n in enumerate(passes)
    ]
    counts = Counts(mixture(examples, [[weight] for weight in weights]))
    return MixedOrder(examples, 4, "keep", (0, 1), None, "global", 0, 7, parts=tuple(parts), counts=counts, begins=(0, *accumulate(sizes)))


@settings(max_examples=3)
@given(
    labels=st.lists(st.integers(0, 3), min_size=2, max_size=30).map(np.array),
    rule=st.sampled_from(["balance", "repeat", "weights"]),
    weight=st.sampled_from([0.2, 0.5, 0.7]),
    which=st.integers(0, 1),
)
def test_each_pass_of_a_sampled_part_has_what_a_sampled_epoch_has(labels: Array, rule: str, weight: float, which: int) -> None:
    """Against the walk over the groups in plain Python, pass by pass."""
    import tensorflow as tf

    rules = {
        "balance": lambda: balanced(labels, 1.0, 3),
        "repeat": lambda: repeated(labels, 0.4, 3),
        "weights": lambda: weighted(labels + 1.0, 3),
    }
    made = rules[rule]()
    sizes = [9, 9]
    sizes[which] = len(labels)
    weights = [weight, round(1 - weight, 3)]
    mixed = order(sizes, {which: made}, 50, weights)
    seen: dict[int, list[tuple[int, int]]] = {}
    walk = Walk(50, [[w] for w in weights])
    begin = [0, sizes[0], sum(sizes)]
    for epoch in range(4):
        found = mixed.found(epoch, tf.range(50, dtype=tf.int64))
        record, cycle, stood = (part.numpy() for part in found)
        mine = (record >= begin[which]) & (record < begin[which + 1])
        assert [int((~mine).sum()), int(mine.sum())] == [walk.counts(epoch)[1 - which], walk.counts(epoch)[which]]
        for r, c, o in zip(record[mine].tolist(), cycle[mine].tolist(), stood[mine].tolist(), strict=True):
            seen.setdefault(c, []).append((r - begin[which], o))
        assert not stood[~mine].any()
    done = walk.before(4)[which]
    assert sorted(seen) == list(range(-(-done // made.size)))
    for number in range(done // made.size):
        records = [record for record, _ in seen[number]]
        assert len(set(seen[number])) == len(seen[number]) == made.size, "copies are numbered"
        slots = Counter(groups_of_slots(made, number))
        groups = Counter(records if made.sizes is None else labels[records].tolist())
        assert groups == slots


COMMON: list[Any] = [{"resize": {"size": SIZE}}, "random_flip", {"random_rotation": {"degrees": 20}}]
SHAPES = {"photos": {"cat": 8, "dog": 2}, "drawings": {"cat": 3, "fox": 4}}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from PIL import Image

    folder = tmp_path_factory.mktemp("sampled-mix")
    for part, classes in SHAPES.items():
        for name, n in classes.items():
            (folder / part / name).mkdir(parents=True)
            for i in range(n):
                Image.fromarray(picture(100 * len(part) + 10 * ord(name[0]) + i, 30 + i, 40)).save(folder / part / name / f"{i}.png")
    return folder


def spec(root: Path, epoch: Any = 40, sampling: Any = None, **own: Any) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "photos": {"weight": 0.7, "source": {"image_folder": {"path": str(root / "photos")}}},
        "drawings": {"weight": 0.3, "source": {"image_folder": {"path": str(root / "drawings")}}},
    }
    if sampling is not None:
        parts["photos"]["sampling"] = sampling
    mix = {"mix": {"epoch": epoch, "parts": parts}}
    return {"pipegen": 1, "source": mix, "transforms": COMMON, "batch": {"size": 8}, **own}


def keys(pipe: Any, epoch: int) -> list[str]:
    names = list(pipe._manifest.keys("train"))
    return [names[record] for record in pipe._engine.order_of("train", epoch).tolist()]


@pytest.mark.nightly
def test_classes_of_a_part_are_balanced_and_its_share_stays(root: Path) -> None:
    pipe = build(spec(root, sampling={"balance": "label"}))
    every: Counter[str] = Counter()
    for epoch in range(5):
        own = keys(pipe, epoch)
        assert sum(key.startswith("photos/") for key in own) == 28
        every += Counter(own)
    # 140 examples are 14 passes of 10, each with 5 cats and 5 dogs
    assert sum(n for key, n in every.items() if key.startswith("photos/cat")) == 70
    assert {n for key, n in every.items() if key.startswith("photos/dog")} == {35}
    assert {n for key, n in every.items() if key.startswith("photos/cat")} <= {8, 9}
    assert {n for key, n in every.items() if key.startswith("drawings")} <= {8, 9}
    weights = pipe.class_weights
    seen = {"cat": 0.35 + 0.3 * 3 / 7, "dog": 0.35, "fox": 0.3 * 4 / 7}
    assert weights == pytest.approx({i: 1 / (3 * seen[name]) for i, name in enumerate(pipe.class_names)})
    told = str(pipe.explain())
    assert "photos: a pass has 10 examples, drawn from 10" in told
    assert "`dog` (2 examples), is seen 2.5 times a pass" in told


@pytest.mark.nightly
def test_it_resumes_and_hosts_share_it_and_a_cache_changes_nothing(root: Path, tmp_path: Path) -> None:
    made = spec(root, sampling={"repeat_factor": {"threshold": 0.9}})
    pipe = build(made)
    whole = pixels(at(pipe, epoch=1))

    def same(found: list[Any], wanted: list[Any]) -> None:
        assert [label for label, _ in found] == [label for label, _ in wanted]
        assert all(np.array_equal(a, b) for (_, a), (_, b) in zip(found, wanted, strict=True))

    same(pixels(at(pipe, epoch=1, step=2)), whole[16:])
    shares = [pixels(pipe.dataset("train", epoch=1, shard=(i, 2))) for i in range(2)]
    same([one for step in range(5) for share in shares for one in share[4 * step : 4 * step + 4]], whole)
    pipe.seek(1, 3)
    other = build(made | {"batch": {"size": 4}})
    other.restore(pipe.state())
    same(pixels(other.train), whole[24:])
    for cache in ("memory", {"disk": str(tmp_path)}):
        cached = build(made, cache=cache)
        list(cached.train)
        same(pixels(cached.train), whole)


@pytest.mark.nightly
def test_an_example_is_what_it_is_in_the_part_alone(root: Path) -> None:
    """By its pass and how often it has stood there: a part that is called like its source has that one's ids."""
    both = spec(root, sampling={"balance": "label"})
    parts = both["source"]["mix"]["parts"]
    both["source"]["mix"]["parts"] = {"image_folder": parts["photos"], "drawings": parts["drawings"]}
    pipe = build(both)
    alone = build(
        {"pipegen": 1, "source": parts["photos"]["source"], "sampling": {"balance": "label"}, "transforms": COMMON, "batch": {"size": 1}}
    )
    named = list(alone._manifest.keys("train"))
    held: dict[tuple[str, int, int], Array] = {}
    for cycle in range(3):
        order = alone._engine.executor("train").order.found(cycle, np.arange(10))
        for record, stood, (_, image) in zip(order.record.numpy(), order.occurrence.numpy(), pixels(at(alone, epoch=cycle)), strict=True):
            held[named[record], cycle, int(stood)] = image
    names, order = list(pipe._manifest.keys("train")), pipe._engine.executor("train").order.found(0, np.arange(40))
    compared = 0
    shown = pixels(at(pipe, epoch=0))
    for record, cycle, stood, (_, image) in zip(*(part.numpy().tolist() for part in order), shown, strict=True):
        part, _, key = names[record].partition("/")
        if part == "image_folder" and (key, cycle, stood) in held:
            assert np.array_equal(image, held[key, cycle, stood])
            compared += 1
    assert compared > 15


@pytest.mark.nightly
@pytest.mark.parametrize(("sampling", "examples"), [(None, 14), ({"repeat_factor": {"threshold": 0.8}}, 17), ({"subset": {"count": 5}}, 7)])
def test_an_epoch_named_by_a_part_is_one_pass_of_what_it_samples(root: Path, sampling: Any, examples: int) -> None:
    """round(n / 0.7): of 10 photographs; of 8 and 2 of factor √(0.8 / 0.2); of a subset of 5."""
    pipe = build(spec(root, "photos", sampling, batch={"size": 1}))
    assert pipe.steps("train") == examples
    if sampling is not None and "subset" in sampling:
        assert len({key for epoch in range(6) for key in keys(pipe, epoch) if key.startswith("photos")}) == 5
        assert "photos: the subset has 5 of 10 examples, the same in every pass" in str(pipe.explain())


def test_what_is_wrong_with_the_sampling_of_a_part_is_said_there(root: Path) -> None:
    from pipegen.phases.compilation import inspect

    for sampling, code, path in (
        ({"balance": "sort"}, "PG217", "source.mix.parts.photos.sampling.balance"),
        ({"weights": "label"}, "PG472", "source.mix.parts.photos.sampling.weights"),
        ({"subset": {"where": "a > 1"}}, "PG472", "source.mix.parts.photos.sampling.subset.where"),
        ({"balance": "label", "weights": "label"}, "PG105", "source.mix.parts.photos.sampling.balance"),
    ):
        findings = [d for d in inspect(spec(root, sampling=sampling)).diagnostics.items if d.severity.value == "error"]
        assert [(d.code, d.labels[0].path) for d in findings] == [(code, path)]
