"""The family of decoders: steps that make pixels out of a file's bytes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from pipegen.ops.base import ElementTransform
from pipegen.ops.traits import Family, Traits

if TYPE_CHECKING:
    import tensorflow as tf

    from pipegen.ops.decoding import DrawnWindow, WindowOf
    from pipegen.types import FeatureType


class DecodeTransform(ElementTransform):
    """A file's bytes become an image. It can decode a window alone, or at a fraction of the size."""

    kinds: ClassVar[frozenset[str]] = frozenset({"encoded"})

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.ELEMENT, decodes=True)

    def decode(self, contents: tf.Tensor, need: tuple[int, int] | None = None) -> tf.Tensor:
        """Decode the whole image.

        Args:
            contents: string scalar: a file's bytes.
            need: What the next step's `needed_size` says: where the step's arguments allow it, the image may come back
                at a fraction of its size whose sides are no smaller.

        Returns:
            uint8 `(height, width, channels)`.
        """
        raise NotImplementedError

    def decode_window(
        self, contents: tf.Tensor, window: WindowOf, need: tuple[int, int] | None = None, *, whole: bool = False
    ) -> tf.Tensor:
        """Decode one window of the image.

        Args:
            contents: string scalar: a file's bytes.
            window: From the height and width of what `decode` gives without `need`, int32 scalars in pixels, to the
                window in it: int32 `(4,)`: top, left, height, width.
            need: The crop's `needed_size`: the window may come back at a fraction of its size, no smaller than this.
            whole: Decode the whole image first and cut the window out: the same pixels, slower. It is what the step
                means; decoding the window alone is the rewrite.

        Returns:
            uint8 `(height, width, channels)`.
        """
        raise NotImplementedError

    def decode_each(
        self,
        contents: list[tf.Tensor],
        need: tuple[int, int] | None = None,
        window: DrawnWindow | None = None,
        *,
        u: tf.Tensor | None = None,
        whole: bool = False,
    ) -> list[tf.Tensor]:
        """What `decode`, or with a window `decode_window`, gives for each of several files.

        A decoder can find out for all of them at once what it needs to know.

        Args:
            contents: string scalars: the bytes of `n` files.
            need: As for `decode` and `decode_window`.
            window: A crop's `window`, for every file.
            u: float64 `(n, num_draws)`: the crop's draws.
            whole: As for `decode_window`.

        Returns:
            uint8 `(height, width, channels)` of each.
        """
        if window is None or u is None:
            return [self.decode(one, need) for one in contents]
        return [self.decode_window(one, partial(window, u[i]), need, whole=whole) for i, one in enumerate(contents)]
