"""Lets the tests of kinds use one that the package does not know, and its source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipegen.ops import kinds, registry, sources
from pipegen.ops.kinds import base

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent / "open_set"


@pytest.fixture(scope="module")
def open_set() -> Iterator[None]:
    """A file for the kind and one for its source, in the folders where the registries look."""
    added = ((kinds, "kinds"), (sources, "sources"))
    cached = (base.kinds, base.kind_named, registry.sources)
    for package, name in added:
        package.__path__.append(str(HERE / name))
    for function in cached:
        function.cache_clear()
    yield
    for package, name in added:
        package.__path__.remove(str(HERE / name))
    for function in cached:
        function.cache_clear()
