"""Paste the objects of other examples by their masks."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.pasting import PastingTransform
from pipegen.ops.lowering.threefry import half_words, key_of


class CopyPaste(PastingTransform):
    """Pastes objects of another example over each image, at the place where they are there, and the same pixels of its masks over
    the masks (Ghiasi and others: Simple Copy-Paste is a Strong Data Augmentation Method for Instance Segmentation, CVPR 2021).

    A mask says what an object is: all pixels of a class index other than `background` and `ignore`. Of the other example's objects, each is
    taken with the probability `objects`. A mask of instances (a mask `with: boxes`) tells single objects apart: the boxes of those that are
    pasted come beside the own ones, with their labels and what else they have. Of own objects, those that are covered whole go, as in the
    paper, and a box of which an outermost pixel is covered ends at those that are left; `min_visibility` and `min_area` count the share of
    its pixels. Keypoints that are pasted over are absent, and pasted objects bring theirs, unless an image has one of each name. Edges are
    not blended, which the paper finds not to matter. Steps before it that scale and mirror (`random_affine`, `random_flip`) make every
    paste another one, as there.

    The other example is one of the 8 around it in the epoch's order (positions 0 to 7, 8 to 15 and so on), whatever the batch size;
    a batch size that is a multiple of 8 for each host saves computing examples twice. A label of the whole image becomes soft, weighed
    by the share of the pixels that is pasted, and needs `output: {encode: {label: one_hot}}`. Steps that fix the size come before.
    """

    op = "copy_paste"
    kinds = frozenset({"image", "mask"})
    examples = (
        Example("copy_paste", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("copy_paste: {objects: 0.5, probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    objects: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The probability with which each object (each class index, or each box of an instance mask) of the other example is pasted."""
    background: Annotated[int, Field(ge=0, le=255)] = 0
    """The class index of what is no object. Of an instance mask it is 0."""

    def num_draws(self) -> int:
        return super().num_draws() + 2

    def pasted(self, masks: tf.Tensor, u: tf.Tensor, ignore: int) -> tf.Tensor:
        index = tf.cast(masks[..., 0], tf.int32)
        words = tf.cast(half_words(key_of(u[:, 2:4]), 256), tf.int32)
        taken = words < round(self.objects * (1 << 16))
        shown = tf.logical_and(index != self.background, index != ignore)
        chosen = tf.gather(taken, tf.reshape(index, [tf.shape(index)[0], -1]), batch_dims=1)
        found = tf.logical_and(tf.reshape(chosen, tf.shape(index)), shown)
        return tf.logical_and(found, self.acts(u)[:, None, None])[..., None]
