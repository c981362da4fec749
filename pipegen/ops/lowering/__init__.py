"""What steps come to in TensorFlow, which is imported inside the functions: what several steps share."""
