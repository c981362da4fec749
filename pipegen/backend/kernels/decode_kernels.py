"""Lowering of decoders and crops on single examples."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import tensorflow as tf

from pipegen.backend.index.draws import own_draws, step_of
from pipegen.ops.families.crops import window_name
from pipegen.ops.families.decoder import Decode, DecodeWindow
from pipegen.plan import stages as s

if TYPE_CHECKING:
    from pipegen.backend.features import Features, Found
    from pipegen.ops.lowering.decoding import Survey
    from pipegen.ops.step_bases import CropTransform


def decode(stage: Decode, features: Features, found: Found | None) -> None:
    """Decodes a file; fails if its size is not that of the image it is aligned with."""
    decoder, contents = stage.ref.step, features[stage.feature]
    if stage.like is None:
        features[stage.feature] = (
            decoder.decode(contents, stage.needed) if found is None else decoder.decode_surveyed(contents, found, stage.needed)
        )
        return
    name, other = stage.like
    image = other.step.fitted(decoder.decode(contents), features[name])
    own, wanted = tf.shape(image)[:2], other.step.stored_size(features[name])
    message = tf.strings.format(f"its size is {{}}, but that of `{name}`, which it is aligned with, is {{}} (height, width)", (own, wanted))
    same = tf.debugging.Assert(tf.reduce_all(own == wanted), [message])
    with tf.control_dependencies([same] if same is not None else []):
        features[stage.feature] = tf.identity(image)


def decode_window(stage: DecodeWindow, features: Features, found: Found | None) -> None:
    """Decodes a window of a file."""
    crop, decoder, contents, draws = stage.crop.step, stage.decode.step, features[stage.feature], features["@draws"]

    def window(height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        # Inside the function, so that an example with a surveyed window slices no draws.
        return step_of(stage.crop, draws).window(own_draws(stage.crop, draws), height, width)

    if found is None:
        pixels = decoder.decode_window(contents, window, stage.needed, whole=stage.whole)
    else:
        pixels = decoder.decode_surveyed(contents, found, stage.needed, window, whole=stage.whole)
    features[stage.feature] = crop.finish(pixels)


def crop(stage: s.Crop, features: Features) -> None:
    """Cuts a window out of an image."""
    step: CropTransform = stage.ref.step
    image = features[stage.feature]
    shape = tf.shape(image)
    window = features.get(window_name(stage.ref))
    if window is None:
        draws = features["@draws"]
        window = step_of(stage.ref, draws).window(own_draws(stage.ref, draws), shape[0], shape[1])
    features[stage.feature] = step.finish(step.cut(image, window))


def survey(stage: Decode | DecodeWindow, examples: list[Features]) -> Survey | None:
    """Surveys several examples at once, if the decoder can."""
    contents = [features[stage.feature] for features in examples]
    window = None
    if isinstance(stage, DecodeWindow):
        draws = tf.stack([features["@draws"] for features in examples])
        window = partial(step_of(stage.crop, draws).window, own_draws(stage.crop, draws))
    return stage.decode.step.survey(contents, stage.needed, window)
