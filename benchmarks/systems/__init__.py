"""The systems, in the order of the table. To add one: a file beside this one, and a line here."""

from __future__ import annotations

from benchmarks.systems.base import System
from benchmarks.systems.dali import Dali
from benchmarks.systems.ffcv_loader import Ffcv
from benchmarks.systems.grain_loader import Grain
from benchmarks.systems.image_data_generator import ImageDataGeneratorProcesses, ImageDataGeneratorSystem
from benchmarks.systems.keras_dataset import KerasDataset
from benchmarks.systems.limits import DecodeAndCropOnly, DecodeOnly
from benchmarks.systems.pipegen_system import PipegenSystem
from benchmarks.systems.spdl_loader import Spdl
from benchmarks.systems.tf_data_expert import TfDataExpert
from benchmarks.systems.tf_data_tutorial import TfDataTutorial
from benchmarks.systems.torch_loader import Albumentations, Torchvision
from benchmarks.systems.turbo_loader import TurboLoader

SYSTEMS: tuple[System, ...] = (
    PipegenSystem(),
    ImageDataGeneratorSystem(),
    ImageDataGeneratorProcesses(),
    KerasDataset(),
    TfDataTutorial(),
    TfDataExpert(),
    Dali(),
    Ffcv(),
    TurboLoader(),
    Spdl(),
    Albumentations(),
    Torchvision(),
    Grain(),
    DecodeOnly(),
    DecodeAndCropOnly(),
)

__all__ = ["SYSTEMS", "System"]
