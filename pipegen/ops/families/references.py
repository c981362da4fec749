"""Steps that make images like reference images in files; the content of these files is a part of the step's meaning."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.transform import Transform

_ENDINGS = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif"})
MOST = 1000
_SIDE = 256  # the longer side of references in memory, in pixels: histograms and low frequencies need no more


class ReferenceTransform(Transform):
    """A step that draws one of some reference images for each example.

    The content of the files is a part of the spec's hash, and so of its lock and of the keys of caches; their names are not.
    """

    references: Annotated[str, Field(min_length=1)]
    """The reference images, relative to the spec's file: a file, a folder (every image in it), or a pattern such as `styles/*.jpg`. At most
    1,000 JPEG, PNG, WebP, BMP or GIF files."""

    def meaning(self) -> dict[str, Any]:
        """The arguments, with the digests of the files in place of their path, if there are files."""
        known = sorted(_digest(*_known(path)) for path in files_of(self.references))
        return super().meaning() | {"references": known or self.references}

    def require_references(self) -> None:
        """Checks that there are references, and that they are images; `OpError` `PG401` otherwise."""
        found = files_of(self.references)
        if not found:
            help_ = "the path is relative to the spec's file; a folder, a pattern such as `styles/*.jpg` or one file"
            raise OpError("PG401", f"`{self.op}` finds no reference image at `{self.references}`", field="references", help=help_)
        if len(found) > MOST:
            raise OpError("PG401", f"`{self.op}` takes at most {MOST:,} references, and there are {len(found):,}", field="references")
        for path in found:
            try:
                _pixels(*_known(path), 3)
            except (OSError, ValueError) as error:
                raise OpError("PG401", f"the reference `{path.name}` of `{self.op}` is not an image: {error}", field="references") from None

    def pictures(self, channels: int) -> list[np.ndarray[Any, Any]]:
        """The references in the order of their digests: uint8 `(height, width, channels)` each, with 1 or 3 channels and at most 256 pixels
        on the longer side."""
        about = sorted(map(_known, files_of(self.references)), key=lambda known: _digest(*known))
        return [_pixels(*known, channels) for known in about]


def references_of(steps: Iterable[Transform]) -> Iterator[tuple[int, ReferenceTransform]]:
    """Yields the steps with references, also inner ones, each with the number of its step in the spec."""
    for number, step in enumerate(steps):
        for one in (step, *step.inner_steps()):
            if isinstance(one, ReferenceTransform):
                yield number, one


def files_of(references: str) -> list[Path]:
    """The image files at a path, sorted."""
    path = Path(references)
    if path.is_dir():
        found = path.iterdir()
    elif path.is_file():
        return [path]
    else:
        try:
            found = Path(path.anchor or ".").glob(str(path.relative_to(path.anchor)))
        except (NotImplementedError, ValueError, IndexError):
            return []
    return sorted(file for file in found if file.suffix.lower() in _ENDINGS and file.is_file())


def _known(path: Path) -> tuple[str, int, int]:
    """The identity of a file's content in this process."""
    about = path.stat()
    return str(path), about.st_mtime_ns, about.st_size


@lru_cache(2 * MOST)
def _digest(path: str, _changed: int, _size: int) -> str:
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
