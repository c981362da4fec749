"""What is said where a library cannot be imported: what brings it, or where it is installed and does not load, another release of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from pipegen.errors import OpError
from pipegen.lazy import how_to_install
from pipegen.ops.sources.arrow import ArrowTables
from pipegen.ops.sources.stores.field_types import MissingLibrary
from pipegen.ops.sources.table_sources import Parquet

DOES_NOT_LOAD = "pyarrow requires NumPy 2.0 or newer, found 1.26.4"


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """PyArrow 26.0.1, which does not load beside NumPy 1.26, as its own module says."""
    installed(tmp_path / "site", "pyarrow", "26.0.1")
    package = tmp_path / "site" / "pyarrow"
    package.mkdir()
    (package / "__init__.py").write_text(f"raise ImportError({DOES_NOT_LOAD!r})")
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return tmp_path


def installed(site: Path, name: str, version: str) -> None:
    about = site / f"{name}-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_a_release_that_does_not_fit_is_told_from_one_that_is_missing(broken: Path) -> None:
    (broken / "t.parquet").touch()
    source: Any = {"path": "t.parquet", "features": {"image": {"kind": "image", "column": "image"}}}
    with pytest.raises(OpError, match=DOES_NOT_LOAD) as parquet:
        Parquet(**source).list(broken)
    with pytest.raises(MissingLibrary, match=DOES_NOT_LOAD) as arrow:
        ArrowTables(str(broken / "t.arrow"))
    for help_ in (parquet.value.help or "", arrow.value.help):
        assert "pyarrow 26.0.1 does not work" in help_
        assert "pip install 'pyarrow<26'" in help_
        assert "pipegen[" not in help_, "which would find it installed"


@pytest.mark.parametrize(("version", "older"), [("26.0.1", "<26'"), ("1.17", "<1'"), ("0.8.6", "<0.8'"), ("0.0.24", "<0.0.24'")])
def test_an_older_release_is_one_of_an_older_series(version: str, older: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "odd_one", version)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert f"pip install 'odd-one{older}" in how_to_install("Odd One", "odd", ImportError("does not load"))


def test_what_is_not_installed_is_brought_by_the_extra() -> None:
    for error in (ModuleNotFoundError("No module named 'no_such_one'", name="no_such_one"), ImportError("what a process of our own said")):
        assert how_to_install("`no_such_one`", "odd", error) == "pip install 'pipegen[odd]'"
