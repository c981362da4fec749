"""The formats of files that hold an array and no picture: one file each, with a function `read`."""
