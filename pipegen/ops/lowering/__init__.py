"""Holds what several steps share of their lowering to TensorFlow, which is imported inside the functions."""
