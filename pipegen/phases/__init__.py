"""Takes a spec through every phase before TensorFlow, and keeps the state of a run."""
