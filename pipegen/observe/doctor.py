"""The checks of `pipegen doctor`, in order. Each yields lines with a fact, a verdict and a remedy."""

from __future__ import annotations

from pipegen.observe import hardware, software

CHECKS = (
    software.check_software,
    software.check_tensorflow,
    software.check_keras,
    hardware.check_cuda,
    software.check_xla,
    software.check_onednn,
    hardware.check_vector_units,
    hardware.check_cores,
    hardware.check_load,
    hardware.check_memory,
    hardware.check_descriptors,
    hardware.check_shared_memory,
    hardware.check_storage,
    software.check_tensorflow_io,
    software.check_extras,
)
"""The software first, then the machine, then optional packages."""
