"""Random parameters of one image, drawn from NumPy's legacy stream in Keras' order, so that equal seeds draw equal parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.compat.geometry import shift_names

if TYPE_CHECKING:
    from pipegen.compat.arguments import Arguments


def stream(seed: int | None) -> Any:
    """NumPy's global stream or, for a seed, a separate one: the same numbers, without an effect on the program's other draws."""
    import numpy as np

    return np.random if seed is None else np.random.RandomState(seed)


def draw(generator: Arguments, height: int, width: int, rng: Any) -> dict[str, Any]:
    """Draws the parameters of one image; see `ImageDataGenerator.get_random_transform`."""
    theta = rng.uniform(-generator.rotation_range, generator.rotation_range) if generator.rotation_range else 0
    down = _shift(rng, generator.height_shift_range, height)
    across = _shift(rng, generator.width_shift_range, width)
    shear = rng.uniform(-generator.shear_range, generator.shear_range) if generator.shear_range else 0
    low, high = generator.zoom_range
    zx, zy = (1, 1) if low == 1 and high == 1 else rng.uniform(low, high, 2)
    # Both coins are always thrown, to stay in step with Keras' stream.
    coins = [rng.random_sample() < 0.5 for _ in range(2)]
    channel_shift = generator.channel_shift_range
    intensity = rng.uniform(-channel_shift, channel_shift) if channel_shift != 0 else None
    bright = generator.brightness_range
    for_height, for_width = shift_names(generator.geometry)
    shifts = {for_height: down, for_width: across}
    return {
        "theta": theta,
        "tx": shifts["tx"],
        "ty": shifts["ty"],
        "shear": shear,
        "zx": zx,
        "zy": zy,
        "flip_horizontal": coins[0] and bool(generator.horizontal_flip),
        "flip_vertical": coins[1] and bool(generator.vertical_flip),
        "channel_shift_intensity": intensity,
        "brightness": None if bright is None else rng.uniform(bright[0], bright[1]),
    }


def is_choice(given: Any) -> bool:
    """Checks if a shift is drawn from a list, or from the whole numbers below a limit."""
    import numpy as np

    if isinstance(given, (int, np.integer)):
        return int(given) > 0
    return not isinstance(given, (float, np.floating))


def _shift(rng: Any, given: Any, side: int) -> Any:
    """Draws a distance in pixels; numbers that are all below 1 are fractions of the side."""
    import numpy as np

    if not given:
        return 0
    distance = rng.choice(given) * rng.choice([-1, 1]) if is_choice(given) else rng.uniform(-given, given)
    return distance * side if np.max(given) < 1 else distance
