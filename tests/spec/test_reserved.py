"""Reserved words of the language are not registered."""

from __future__ import annotations

from pipegen.ops.kinds.base import kinds
from pipegen.ops.registry import sources
from pipegen.spec.step_list import KINDS, SOURCES


def test_what_is_registered_is_not_reserved() -> None:
    assert not KINDS & {kind.name for kind in kinds()}
    assert not set(SOURCES) & set(sources())
