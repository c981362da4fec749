"""Step ids."""

from __future__ import annotations

import itertools

from spec_helpers import read

from pipegen.spec.step_list import collisions, ids_of, step_hash


def ids(steps: str) -> tuple[str, ...]:
    loaded = read(f"transforms: [{steps}]")
    assert loaded.spec is not None
    return ids_of(loaded.spec.transforms)


def test_name_and_occurrence() -> None:
    assert ids("random_flip, {random_hue: {degrees: 5}}, random_flip, {random_flip: {id: last}}, random_flip") == (
        "random_flip",
        "random_hue",
        "random_flip#2",
        "last",
        "random_flip#4",
    )


def test_another_kind_of_step_in_between_changes_no_id() -> None:
    assert set(ids("random_flip, random_flip")) <= set(ids("{cast: {dtype: float32}}, random_flip, {resize: {size: 8}}, random_flip"))


def test_the_hash_is_pinned() -> None:
    assert step_hash("random_flip") == int.from_bytes(bytes.fromhex(f"{step_hash('random_flip'):08x}"), "big")
    assert 0 <= step_hash("random_flip") < 2**32
    assert step_hash("random_flip") != step_hash("random_flip#2")


def test_collisions_of_the_hash_are_found() -> None:
    seen: dict[int, str] = {}
    for n in itertools.count():
        name = f"s{n}"
        other = seen.setdefault(step_hash(name), name)
        if other != name:
            break
    assert collisions([(("a",), "a"), (("b",), other), (("c",), "b"), (("d",), name)]) == [((("b",), other), (("d",), name))]
    assert [d.code for d in read(f"transforms: [{{random_flip: {{id: {other}}}}}, {{random_flip: {{id: {name}}}}}]").diagnostics] == [
        "PG216"
    ]
