"""Reads folders of images that lie in archives, as if they were unpacked."""
