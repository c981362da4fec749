"""Looks at the pictures themselves: what leaks from one split into another, and what is odd. Pillow decodes, not TensorFlow."""
