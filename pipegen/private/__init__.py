"""What TensorFlow and Keras do not promise: every use of it is here, and `tests/test_private.py` tries each on the versions we support."""
