"""The machine and the software that figures belong to."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.systems.base import cores

if TYPE_CHECKING:
    from benchmarks.data import Dataset, Photos

PACKAGES = (
    "pipegen", "tensorflow", "keras", "numpy", "scipy", "pillow", "nvidia-dali-cuda120", "torch", "torchvision",
    "albumentations", "opencv-python-headless", "grain", "turboloader", "spdl",
)  # fmt: skip


def environment(data: Dataset) -> dict[str, Any]:
    """What to know about a run besides its figures."""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "cpu": _cpu(),
        "cores": cores(),
        "load_average": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": platform.platform(),
        "python": platform.python_version(),
        "commit": _commit(),
        "packages": {name: _version(name) for name in PACKAGES},
        "data": {kind: _folder(photos) for kind, photos in data.folders.items()} | {"arrays": {"count": data.num_arrays}},
    }


def _folder(photos: Photos) -> dict[str, int]:
    sizes = [os.stat(file).st_size for file in photos.files]
    return {"count": len(sizes), "mean_bytes": round(sum(sizes) / len(sizes)), "classes": len(photos.classes)}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of this checkout, with a `+` where files differ from it."""
    here = Path(__file__).parent
    try:
        head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True, check=True)
        changed = subprocess.run(["git", "status", "--porcelain", "-uno"], cwd=here, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())
