"""What every test can use: `--update-golden`, and Hypothesis profiles (`HYPOTHESIS_PROFILE=ci` for more examples)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

settings.register_profile("dev", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden`."""
    parser.addoption("--update-golden", action="store_true", help="write golden files anew instead of comparing them")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that need TensorFlow come first: some take a minute, and whichever process is done early takes the quick ones."""
    slow = {item.path for item in items if item.get_closest_marker("tf")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are written anew."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="session", autouse=True)
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The user's cache folder, which is none of the user's own: what steps learn is kept there."""
    folder = tmp_path_factory.mktemp("cache-home")
    os.environ["XDG_CACHE_HOME"] = str(folder)
    return folder


@pytest.fixture(scope="session")
def photo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 43 small photographs in three classes: `daisy`, `rose` and `tulip`; of many sizes, one a PNG.

    It is shared: a test that damages or adds files works on a copy.
    """
    from pipes import write_photos

    return write_photos(tmp_path_factory.mktemp("photos"))
