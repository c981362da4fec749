"""Steps that make images like others, which lie in files beside the spec: what they are is a part of the step's meaning."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.transform import Transform

if TYPE_CHECKING:
    from collections.abc import Iterable

_ENDINGS = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif"})
MOST = 1000
_SIDE = 256
"""The longer side at which references are kept, in pixels: of histograms and of low frequencies, nothing more is seen."""


class ReferenceTransform(Transform):
    """A step that draws one of some reference images for each example.

    The files' content is a part of the spec's hash, and so of its lock and of what caches are known by; their names are not.
    """

    references: Annotated[str, Field(min_length=1)]
    """The reference images: a file, a folder (every image in it), or a pattern such as `styles/*.jpg`; relative to the spec's file. At most
    1,000 of JPEG, PNG, WebP, BMP or GIF."""

    def meaning(self) -> dict[str, Any]:
        """The arguments, with what the files hold in place of where they lie; where there are none, with what is written."""
        known = sorted(_digest(path) for path in files_of(self.references))
        return super().meaning() | {"references": known or self.references}

    def require_references(self) -> None:
        """Looks whether there are references.

        Raises:
            OpError: `PG401`.
        """
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
                raise OpError("PG401", f"the reference `{path.name}` of `{self.op}` is no image: {error}", field="references") from None

    def pictures(self, channels: int) -> list[np.ndarray[Any, Any]]:
        """The references in an order that their content decides: uint8 `(height, width, channels)` each, of 1 or 3 channels, the longer
        side 256 pixels or less."""
        return [_pixels(*_known(path), channels) for path in sorted(files_of(self.references), key=_digest)]


def references_of(steps: Iterable[Transform]) -> Iterator[tuple[int, ReferenceTransform]]:
    """Yields the steps with references, and those within steps, each with the number of the step of the spec."""
    for number, step in enumerate(steps):
        for one in (step, *step.inner_steps()):
            if isinstance(one, ReferenceTransform):
                yield number, one


def files_of(references: str) -> list[Path]:
    """Returns the image files at a path, sorted."""
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
    """Returns what a file is known by in this process."""
    about = path.stat()
    return str(path), about.st_mtime_ns, about.st_size


def _digest(path: Path) -> str:
    return _digest_of(*_known(path))


@lru_cache(2 * MOST)
def _digest_of(path: str, _changed: int, _size: int) -> str:
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
