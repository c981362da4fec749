"""What the language keeps for later is said to be "not yet", and nothing else is said about it."""

from __future__ import annotations

import pytest
from spec_helpers import codes, read

from pipegen.ops.kinds.registry import kinds
from pipegen.ops.registry import sources
from pipegen.spec.steps import KEYS, KINDS, SOURCES


@pytest.fixture(autouse=True)
def _a_reserved_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KEYS, ("runtime", "telepathy"), "reading the user's mind")


@pytest.mark.parametrize(
    ("body", "n"),
    [
        ("runtime: {telepathy: grpc://x, cache: none}", 1),
        ("runtime: {telepathy: {address: x}, jit: never}", 1),
    ],
)
def test_reserved_syntax(body: str, n: int) -> None:
    assert codes(read(body)) == ["PG190"] * n


def test_what_is_registered_is_not_reserved() -> None:
    assert not KINDS & {kind.name for kind in kinds()}
    assert not set(SOURCES) & set(sources())


def test_a_real_mistake_beside_a_reserved_key_is_still_found() -> None:
    assert codes(read("runtime: {telepathy: x, cache: momory}")) == ["PG190", "PG105"]
