"""Arguments of steps: magnitudes, schedules, fills, arithmetic and presets; no TensorFlow."""
