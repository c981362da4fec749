"""Features as sources have them: arrays, classes, numbers in columns, files of arrays."""
