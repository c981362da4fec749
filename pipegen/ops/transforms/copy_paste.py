"""`copy_paste`: objects of other images."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.families.item_stages import PastingTransform
from pipegen.ops.lowering.random import half_words, key_of
from pipegen.ops.traits import same_type


class CopyPaste(PastingTransform):
    """Pastes objects of another example into each image at the same place, and their mask pixels into the masks (Ghiasi and others: Simple
    Copy-Paste is a Strong Data Augmentation Method for Instance Segmentation, CVPR 2021).

    A mask defines the objects: all pixels of a class index other than `background` and `ignore`. Each object of the other example is pasted
    with the probability `objects`. A mask of instances (a mask `with: boxes`) separates single objects: the boxes of pasted objects are
    added, with their labels and other features. Objects of the image that are wholly covered are removed, as in the paper; a box whose
    outermost pixels are covered shrinks to the visible ones, and `min_visibility` and `min_area` count the share of its pixels. Covered
    keypoints become absent, and pasted objects bring theirs, unless an image has one keypoint of each name. Edges are not blended, which
    makes no difference according to the paper. Earlier steps that scale and mirror (`random_affine`, `random_flip`) vary what is pasted, as
    in the paper.

    The other example is from the same group of 8 in the epoch's order (positions 0 to 7, 8 to 15 and so on), whatever the batch size; a
    batch size that is a multiple of 8 for each host avoids computing examples twice. A label of the whole image becomes soft, weighed by
    the share of pasted pixels, and needs `output: {encode: {label: one_hot}}`. Put the step after those that fix the size.
    """

    op = "copy_paste"
    draws = 4
    kinds = frozenset({"image", "mask"})
    examples = same_type("copy_paste", "copy_paste: {objects: 0.5, probability: 0.5}")

    objects: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The probability with which each object (each class index, or each box of an instance mask) of the other example is pasted."""
    background: Annotated[int, Field(ge=0, le=255)] = 0
    """The class index of pixels without an object; for an instance mask it is 0."""

    def pasted(self, masks: tf.Tensor, u: tf.Tensor, ignore: int) -> tf.Tensor:
        index = tf.cast(masks[..., 0], tf.int32)
        words = tf.cast(half_words(key_of(u[:, 2:4]), 256), tf.int32)
        taken = words < round(self.objects * (1 << 16))
        shown = tf.logical_and(index != self.background, index != ignore)
        chosen = tf.gather(taken, tf.reshape(index, [tf.shape(index)[0], -1]), batch_dims=1)
        found = tf.logical_and(tf.reshape(chosen, tf.shape(index)), shown)
        return tf.logical_and(found, self.acts(u)[:, None, None])[..., None]
