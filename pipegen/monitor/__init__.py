"""Watches a run: processor, memory, disk, network, GPU, and how long it waits for batches. It knows no spec and no TensorFlow.

`supervise.py` runs a command and hands on signals, `sampler.py` measures, `record.py` writes and reads the JSONL file, `live.py` and
`summary.py` put figures into lines, `picture.py` draws them.
"""
