"""Steps that draw one of some files for each example: reference images, or noise; their content is a part of the step's meaning."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.transform import Transform

MOST = 1000
_SIDE = 256  # the longer side of references in memory, in pixels: histograms and low frequencies need no more


class FilesTransform(Transform):
    """A step that draws one of some files for each example.

    The content of the files is a part of the spec's hash, and so of its lock and of the keys of caches; their names are not.
    """

    place: ClassVar[str]  # the argument with the path of the files
    endings: ClassVar[frozenset[str]]  # of their names
    noun: ClassVar[str]  # what a file holds
    such_as: ClassVar[str]  # a pattern of files, for advice

    def paths(self) -> list[Path]:
        """The files, sorted by the digests of their contents, so that their names do not matter; none without a place."""
        given = getattr(self, self.place)
        found = files_at(given, self.endings) if given is not None else []
        return sorted(found, key=lambda path: digest(*identity(path)))

    def meaning(self) -> dict[str, Any]:
        """The arguments, with the digests of the files in place of their path, if there are files."""
        known = [digest(*identity(path)) for path in self.paths()]
        return super().meaning() | ({self.place: known} if known else {})

    def require_files(self) -> None:
        """Checks that there are files, if a place is given, and that they can be read; `OpError` `PG401` otherwise."""
        given = getattr(self, self.place)
        if given is None:
            return
        found = files_at(given, self.endings)
        if not found:
            help_ = f"the path is relative to the spec's file; a folder, a pattern such as `{self.such_as}` or one file"
            raise OpError("PG401", f"`{self.op}` finds no {self.noun} at `{given}`", field=self.place, help=help_)
        if len(found) > MOST:
            raise OpError("PG401", f"`{self.op}` takes at most {MOST:,} {self.noun}s, and there are {len(found):,}", field=self.place)
        for path in found:
            self.require_file(path)

    def require_file(self, path: Path) -> None:
        """Checks that a file can be read; `OpError` `PG401` otherwise."""
        raise NotImplementedError


class ReferenceTransform(FilesTransform):
    """A step that draws one of some reference images for each example."""

    place = "references"
    endings = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif"})
    noun = "reference image"
    such_as = "styles/*.jpg"

    references: Annotated[str, Field(min_length=1)]
    """The reference images, relative to the spec's file: a file, a folder (every image in it), or a pattern such as `styles/*.jpg`. At most
    1,000 JPEG, PNG, WebP, BMP or GIF files."""

    def require_file(self, path: Path) -> None:
        try:
            _pixels(*identity(path), 3)
        except (OSError, ValueError) as error:
            raise OpError("PG401", f"the reference `{path.name}` of `{self.op}` is not an image: {error}", field="references") from None

    def pictures(self, channels: int) -> list[np.ndarray[Any, Any]]:
        """The references in the order of their digests: uint8 `(height, width, channels)` each, with 1 or 3 channels and at most 256 pixels
        on the longer side."""
        return [_pixels(*identity(path), channels) for path in self.paths()]


def with_files(steps: Iterable[Transform]) -> Iterator[tuple[int, FilesTransform]]:
    """Yields the steps that draw files, also inner ones, each with the number of its step in the spec."""
    for number, step in enumerate(steps):
        for one in (step, *step.inner_steps()):
            if isinstance(one, FilesTransform):
                yield number, one


def files_at(given: str, endings: frozenset[str]) -> list[Path]:
    """The files with one of these endings at a path, sorted: those of a folder or of a pattern; or a file, whatever its ending is."""
    path = Path(given)
    if path.is_dir():
        found = path.iterdir()
    elif path.is_file():
        return [path]
    else:
        try:
            found = Path(path.anchor or ".").glob(str(path.relative_to(path.anchor)))
        except (NotImplementedError, ValueError, IndexError):
            return []
    return sorted(file for file in found if file.suffix.lower() in endings and file.is_file())


def identity(path: Path) -> tuple[str, int, int]:
    """The identity of a file's content in this process."""
    about = path.stat()
    return str(path), about.st_mtime_ns, about.st_size


@lru_cache(2 * MOST)
def digest(path: str, _changed: int, _size: int) -> str:
    """Computes the SHA-256 of a file."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@lru_cache(MOST)
def _pixels(path: str, _changed: int, _size: int, channels: int) -> np.ndarray[Any, Any]:
    from PIL import Image

    with Image.open(path) as image:
        image.load()
        found = image.convert("L" if channels == 1 else "RGB")
    found.thumbnail((_SIDE, _SIDE), Image.Resampling.BOX)
    pixels = np.asarray(found)
    return pixels[..., None] if channels == 1 else pixels
