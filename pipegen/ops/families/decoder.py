"""The family of decoders: steps that make pixels out of a file's bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.ops.base import ElementTransform
from pipegen.ops.traits import Family, Traits

if TYPE_CHECKING:
    import tensorflow as tf

    from pipegen.ops.kinds.base import FeatureKind
    from pipegen.ops.lowering.decoding import Found, WindowOf
    from pipegen.types import FeatureType


class DecodeTransform(ElementTransform):
    """A file's bytes become an image. It can decode a window alone, or at a fraction of the size."""

    @classmethod
    def acts_on(cls, kind: FeatureKind) -> bool:
        return kind.storage == "encoded"

    @classmethod
    def known_kinds(cls) -> list[str]:
        return ["encoded"]

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.ELEMENT, decodes=True, decodes_windows=True, decodes_scaled=True)

    def decode(self, contents: tf.Tensor, need: tuple[int, int] | None = None) -> tf.Tensor:
        """Decode the whole image.

        Args:
            contents: string scalar: a file's bytes.
            need: What the next step's `needed_size` says: where the step's arguments allow it, the image may come back
                at a fraction of its size whose sides are no smaller.

        Returns:
            Pixels `(height, width, channels)` of the dtype that `infer` says.
        """
        raise NotImplementedError

    def stored_size(self, contents: tf.Tensor) -> tf.Tensor:
        """The height and width of what `decode` gives without `need`, in pixels: int32 `(2,)`."""
        import tensorflow as tf

        return tf.shape(self.decode(contents))[:2]

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
            Pixels `(height, width, channels)` of the dtype that `infer` says.
        """
        raise NotImplementedError

    def survey(self, contents: list[tf.Tensor], need: tuple[int, int] | None = None, window: WindowOf | None = None) -> list[Found]:
        """Finds out what decoding needs to know of several files, for all of them at once.

        Args:
            contents: string scalars: the bytes of `n` files.
            need: As for `decode` and `decode_window`.
            window: As for `decode_window`, but of sizes `(n,)`, and with windows `(n, 4)`.

        Returns:
            What `decode_surveyed` is told of each file. Nothing, unless a decoder says otherwise.
        """
        return [() for _ in contents]

    def decode_surveyed(
        self,
        contents: tf.Tensor,
        found: Found,
        need: tuple[int, int] | None = None,
        window: WindowOf | None = None,
        *,
        whole: bool = False,
    ) -> tf.Tensor:
        """Decodes a file of which a survey says `found`, as `decode` or with a window `decode_window` does."""
        return self.decode(contents, need) if window is None else self.decode_window(contents, window, need, whole=whole)
