"""The quality of image data: leaks from one split into another, and oddities. Images are decoded by Pillow, not TensorFlow."""
