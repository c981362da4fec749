"""The values that arguments of steps take: magnitudes, schedules, fills, arithmetic and presets; no TensorFlow."""
