"""The systems, in the order of the table. To add one: a file beside this one, and a line here."""

from __future__ import annotations

from benchmarks.systems.base import Photos, System, UnavailableError
from benchmarks.systems.image_data_generator import ImageDataGeneratorSystem
from benchmarks.systems.limits import DecodeAndCropOnly, DecodeOnly
from benchmarks.systems.pipegen_system import PipegenCached, PipegenSystem
from benchmarks.systems.tf_data_tutorial import TfDataTutorial

SYSTEMS: tuple[System, ...] = (
    PipegenSystem(),
    PipegenCached(),
    ImageDataGeneratorSystem(),
    TfDataTutorial(),
    DecodeOnly(),
    DecodeAndCropOnly(),
)

__all__ = ["SYSTEMS", "Photos", "System", "UnavailableError"]
