"""Writes photographs as files that a table names, and in archives: forms in which images stay files."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import tarfile
import zipfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    Photo = tuple[bytes, int]
    Rows = Iterable[tuple[str, int]]
    Write = Callable[[Path, Sequence[Photo]], None]

NAMES = ("file", "label")
COLUMNS = {"image": {"kind": "image", "column": "file"}, "label": {"kind": "label", "column": "label"}}
QUERY = "select file, label from photos order by file"


def write_images(folder: Path, photos: Sequence[Photo]) -> list[tuple[str, int]]:
    """Writes image files to the folder `images`, and returns the name below `folder`, and the class, of each."""
    (folder / "images").mkdir()
    named = [(f"images/{i:06}.jpg", content, label) for i, (content, label) in enumerate(photos)]
    for name, content, _ in named:
        (folder / name).write_bytes(content)
    return [(name, label) for name, _, label in named]


def _csv(folder: Path, rows: Rows) -> None:
    with (folder / "photos.csv").open("w", newline="") as file:
        csv.writer(file).writerows([NAMES, *rows])


def _jsonl(folder: Path, rows: Rows) -> None:
    lines = [json.dumps(dict(zip(NAMES, row, strict=True))) for row in rows]
    (folder / "photos.jsonl").write_text("\n".join(lines))


def _excel(folder: Path, rows: Rows) -> None:
    from openpyxl import Workbook

    book = Workbook()
    for row in (NAMES, *rows):
        book.active.append(row)
    book.save(folder / "photos.xlsx")


def _sql(folder: Path, rows: Rows) -> None:
    with sqlite3.connect(folder / "photos.db") as opened:
        opened.execute("CREATE TABLE photos (file TEXT, label INTEGER)")
        opened.executemany("INSERT INTO photos VALUES (?, ?)", rows)
    opened.close()


TABLES: dict[str, tuple[str, Callable[[Path, Rows], None]]] = {
    "csv": ("photos.csv", _csv),
    "jsonl": ("photos.jsonl", _jsonl),
    "excel": ("photos.xlsx", _excel),
    "sql": ("photos.db", _sql),
}
"""By the source: the file, and what writes it."""


def written_as(op: str) -> Write:
    """Returns what writes image files and a table of them."""
    return lambda folder, photos: TABLES[op][1](folder, write_images(folder, photos))


def read_as(op: str) -> Callable[[Path], dict[str, Any]]:
    """Returns the source of that table."""

    def source(folder: Path) -> dict[str, Any]:
        features = {name: {**column, **({"root": str(folder)} if name == "image" else {})} for name, column in COLUMNS.items()}
        if op == "sql":
            place = {"url": f"sqlite:///{folder}/photos.db", "query": QUERY, "snapshot": str(folder / "snapshot")}
        else:
            place = {"path": str(folder / TABLES[op][0])}
        return {op: {**place, "features": features}}

    return source


def write_zip_folder(folder: Path, photos: Sequence[Photo]) -> None:
    """A ZIP archive of class folders."""
    with zipfile.ZipFile(folder / "photos.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _in_classes(photos):
            archive.writestr(name, content)


def write_tar_folder(folder: Path, photos: Sequence[Photo]) -> None:
    """A tar archive of class folders."""
    with tarfile.open(folder / "photos.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in _in_classes(photos):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def _in_classes(photos: Sequence[Photo]) -> Iterable[tuple[str, bytes]]:
    return ((f"photos/class_{label:03}/{i:06}.jpg", content) for i, (content, label) in enumerate(photos))
