"""Folders of images in archives, read as if unpacked."""
