"""Describes features as sources have them: arrays, classes, numbers in columns, files that hold no picture."""
