"""Lowering of stages to TensorFlow functions, compiled by XLA."""
