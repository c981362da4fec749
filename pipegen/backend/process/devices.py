"""Finds the devices that TensorFlow sees, and keeps it off those of another framework."""

from __future__ import annotations

import tensorflow as tf


def resolve_device(device: str) -> str:
    """A TensorFlow device name; `auto` is the first accelerator, or the CPU.

    Raises:
        ValueError: When there is no such device.
    """
    if device != "auto":
        try:
            wanted = tf.DeviceSpec.from_string(device if device.startswith("/") else f"/{device}")
        except ValueError:
            raise ValueError(f"`{device}` is no device name; such as `GPU:0`") from None
        there = [tf.DeviceSpec.from_string(d.name) for d in tf.config.list_logical_devices()]
        if not any((d.device_type, d.device_index) == (wanted.device_type, wanted.device_index or 0) for d in there):
            known = ", ".join(f"{d.device_type}:{d.device_index}" for d in there)
            raise ValueError(f"there is no device `{device}`; TensorFlow sees {known}")
        return str(wanted.to_string())
    for kind in ("GPU", "TPU"):
        found = tf.config.list_logical_devices(kind)
        if found:
            return str(found[0].name)
    return "/CPU:0"


def hide_accelerators() -> None:
    """Keep TensorFlow off the GPU, which belongs to another framework; does nothing once TensorFlow has started."""
    try:
        tf.config.set_visible_devices([], "GPU")
    except RuntimeError:
        return
