"""Lets other machines make batches, by TensorFlow's tf.data service: whole batches, by the numbers of their steps."""
