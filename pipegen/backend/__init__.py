"""From a plan to `tf.data`. TensorFlow starts here."""
