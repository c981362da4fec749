"""The checks, in the order of their lines. A new one is a file here with a function `check`, and its place in this tuple."""

from __future__ import annotations

from pipegen.doctor.checks import (
    cores,
    cuda,
    descriptors,
    extras,
    keras,
    load,
    memory,
    onednn,
    shared_memory,
    software,
    storage,
    tensorflow,
    tensorflow_io,
    vector_units,
    xla,
)

CHECKS = tuple(
    module.check
    for module in (
        *(software, tensorflow, keras, cuda, xla, onednn),
        *(vector_units, cores, load, memory, descriptors, shared_memory, storage),
        *(tensorflow_io, extras),
    )
)
"""The software first, then the machine, then what can be added."""
