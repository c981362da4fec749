"""Batches made by other machines with TensorFlow's tf.data service: whole batches, identified by their steps."""
