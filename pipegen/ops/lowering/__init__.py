"""Holds what several steps share of their lowering to TensorFlow, which is imported when one of these functions first uses it."""
