"""Lowers stages to TensorFlow functions, and compiles them by XLA."""
