"""Looks at runs and at machines: `pipegen doctor`, `monitor`, `profile` and `tune`.

What watches a run (`sampler`, `records`, `picture`, `watch`) knows no spec and no TensorFlow. `machine` reads `/proc`, `/sys` and
control groups below a root that tests make up, `asking` asks TensorFlow in another process (`asked`), and `storage` reads files with
the page cache dropped.
"""
