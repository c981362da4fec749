"""TensorFlow functions that several steps share. TensorFlow is imported when one of them first uses it."""
