"""`decode: {jpeg: accurate}`: Pillow's pixels, at full size and never a window alone, whatever comes next."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image
from planning import built, compiled, interpret, load_spec, records, run_plan

from pipegen.ops.families.decoder import Decode, DecodeWindow

Array = np.ndarray[Any, Any]

FILES = [(subsampling, shape) for subsampling in (0, 1, 2) for shape in ((97, 131), (64, 80))]


def jpeg(subsampling: int, height: int, width: int) -> bytes:
    """A picture with strong colours, as a JPEG."""
    rng = np.random.default_rng(subsampling)
    y, x = np.mgrid[:height, :width]
    waves = np.stack([127 + 127 * np.sin(x / (2 + c) + y / (7 - 2 * c)) for c in range(3)], -1)
    waves[height // 3 : height // 2] = rng.integers(0, 2, waves[height // 3 : height // 2].shape) * 255
    stream = io.BytesIO()
    Image.fromarray(waves.astype(np.uint8)).save(stream, "JPEG", quality=80, subsampling=subsampling)
    return stream.getvalue()


@pytest.mark.tf
@pytest.mark.smoke
@pytest.mark.parametrize("channels", [1, 3])
def test_pixels_are_pillow_s(channels: int) -> None:
    """Of gray, too, which Pillow makes of the colours: stored luma differs from that by up to 20 levels."""
    import tensorflow as tf

    from pipegen.ops.transforms.decode import Decode

    for subsampling, shape in FILES:
        contents = jpeg(subsampling, *shape)
        expected = np.asarray(Image.open(io.BytesIO(contents)).convert("RGB" if channels == 3 else "L")).reshape(*shape, channels)
        accurate, fast = (Decode(jpeg=how, channels=channels).decode(tf.constant(contents)).numpy() for how in ("accurate", "fast"))
        np.testing.assert_array_equal(accurate, expected)
        assert (fast != accurate).any(), "that is what it is for"


@pytest.mark.tf
@pytest.mark.smoke
@pytest.mark.parametrize("channels", [1, 3])
def test_pixels_are_tensorflow_s(channels: int) -> None:
    import tensorflow as tf

    from pipegen.ops.transforms.decode import Decode

    for subsampling, shape in FILES:
        contents = tf.constant(jpeg(subsampling, *shape))
        expected = tf.io.decode_image(contents, channels=channels, expand_animations=False).numpy()
        np.testing.assert_array_equal(Decode(jpeg="tensorflow", channels=channels).decode(contents).numpy(), expected)
        if subsampling and channels > 1:
            assert (Decode(channels=channels).decode(contents).numpy() != expected).any(), "that is what it is for"


@pytest.mark.parametrize("crop", ["random_resized_crop: {size: 18}", "random_crop: {size: 18}", "resize: {size: 18}"])
def test_no_window_and_no_scale(crop: str) -> None:
    for how, leaves in (("accurate", True), ("tensorflow", True), ("fast", False)):
        text = f"{{transforms: [{{decode: {{jpeg: {how}}}}}, {{{crop}}}]}}"
        done = compiled(built(text), load_spec(text))
        stages = [stage for stage in done.plan.stages() if isinstance(stage, (Decode, DecodeWindow))]
        plain = all(isinstance(stage, Decode) and stage.needed is None for stage in stages)
        assert plain == leaves, crop


@pytest.mark.nightly
@pytest.mark.tf
def test_a_crop_shows_pillow_s_pixels() -> None:
    """Through every pass, one by one and in chunks: a window that is decoded alone could not, since its border depends on what lies
    outside."""
    data = records(tuple(jpeg(2, 97, 131) for _ in range(4)))
    text = "{transforms: [{decode: {jpeg: accurate}}, {random_crop: {size: [60, 70]}}], output: {dtype: uint8}, batch: {size: 4}}"
    spec, plan = load_spec(text), compiled(built(text), load_spec(text)).plan
    whole = np.asarray(Image.open(io.BytesIO(jpeg(2, 97, 131))))
    windows = np.lib.stride_tricks.sliding_window_view(whole, (60, 70, 3))[..., 0, :, :, :]
    ((images, _),) = run_plan(plan, spec, data)
    for image in (*interpret(plan, spec, data)["image"], *images):
        assert (windows == image).all((-1, -2, -3)).any()


def test_scaled_says_nothing_then() -> None:
    from pipegen.ops.transform import Transform
    from pipegen.ops.transforms.decode import Decode

    with pytest.raises(ValueError, match="`jpeg: accurate` decodes at full size"):
        Decode.model_validate({"jpeg": "accurate", "scaled": "auto"})
    same: list[Transform] = [Decode(jpeg="accurate"), Decode(jpeg="accurate", scaled="never")]
    assert same[0].meaning() == same[1].meaning()
