"""Everything heavy, imported in an order that works: in the benchmark, and once in the server that its worker processes are
forked from, so that they start at once and without TensorFlow's threads.

PyTorch comes first, since a build of it may bring an LLVM that crashes when TensorFlow's is there before.
"""

from __future__ import annotations

import contextlib
import importlib
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # it would ask the network for a newer version

for _name in ("torch.utils.data", "torchvision.transforms.v2", "cv2", "albumentations", "tensorflow", "keras"):
    with contextlib.suppress(Exception):  # what is not there, or does not work, is told by the system that needs it
        importlib.import_module(_name)
