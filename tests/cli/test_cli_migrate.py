"""`pipegen migrate` on the command line: what it prints and writes, and its exit codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from cli_helpers import Cli

CODE = """\
from keras.preprocessing.image import ImageDataGenerator
it = ImageDataGenerator(rescale=1 / 255).flow_from_directory("photos", target_size=(32, 32))
model.fit_generator(it)
"""


def test_it_prints_the_spec_the_changes_and_the_report(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CODE)
    result = cli("migrate", "train.py")
    assert result.exit_code == 0, result.output
    assert "=== train.pipegen.yaml" in result.stdout
    assert "+model.fit(it)" in result.stdout
    assert "changes in meaning" in result.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["train.py"]


def test_it_writes_beside_the_script_and_never_over_a_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text(CODE)
    assert cli("migrate", "code/train.py", "--write").exit_code == 0
    assert sorted(p.name for p in (tmp_path / "code").iterdir()) == ["train.migration.patch", "train.pipegen.yaml", "train.py"]
    assert cli("validate", "code/train.pipegen.yaml").exit_code == 0
    again = cli("migrate", "code/train.py", "--write")
    assert again.exit_code == 2
    assert "exists already, and is unchanged" in again.stderr


def test_a_broken_file_is_1_and_the_others_are_migrated(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("print 'ImageDataGenerator'\n")
    (tmp_path / "train.py").write_text(CODE)
    result = cli("migrate", "old.py", "train.py")
    assert result.exit_code == 1
    assert "this is Python 2" in result.stdout
    assert "=== train.pipegen.yaml" in result.stdout


def test_files_that_are_not_there_or_no_code(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "other.py").write_text("x = 1\n")
    assert cli("migrate", "nowhere.py").exit_code == 2
    assert cli("migrate", "notes.txt").exit_code == 2
    result = cli("migrate", "other.py")
    assert (result.exit_code, "nothing to migrate" in result.stdout) == (0, True)
