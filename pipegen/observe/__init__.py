"""Observation of runs and machines: `pipegen doctor`, `monitor`, `profile` and `tune`.

The modules that watch a run (`sampler`, `run_record`, `picture`, `watch`) use no spec and no TensorFlow. `machine` reads `/proc`, `/sys`
and control groups below a root that tests replace, `asking` queries TensorFlow in another process, and `storage` reads files that were
dropped from the page cache.
"""
