"""Photographs, and one dispatcher with one worker for all tests of a file."""

from __future__ import annotations

from pipes import write_photos
from typing import TYPE_CHECKING

import pytest
from fleet import Fleet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 43 photographs in three classes."""
    return write_photos(tmp_path_factory.mktemp("photos"))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """One dispatcher and one worker."""
    made = Fleet(tmp_path_factory.mktemp("fleet"))
    yield made
    made.end()
