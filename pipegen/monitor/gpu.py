"""Reads NVIDIA's GPUs through NVML, or says why it cannot."""

from __future__ import annotations

from typing import Any


class Gpus:
    """Reads the GPUs of this machine, in NVML's order.

    Attributes:
        about: For each the name and the bytes of its memory.
        absent: Why there is none; empty where there is.
    """

    def __init__(self) -> None:
        self.about: list[dict[str, Any]] = []
        self.absent = ""
        self._handles: list[Any] = []
        try:
            import pynvml
        except ImportError:
            self.absent = "nvidia-ml-py is not installed: pip install 'pipegen[monitor]'"
            return
        self._nvml: Any = pynvml
        try:
            pynvml.nvmlInit()
            self._handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
            self.about = [{"name": _text(pynvml.nvmlDeviceGetName(h)), "memory": self._memory(h, "total")} for h in self._handles]
        except pynvml.NVMLError as error:
            self.absent, self._handles = f"no NVIDIA driver answers ({str(error).lower()})", []
        if not self._handles and not self.absent:
            self.absent = "the NVIDIA driver lists none"

    def read(self) -> list[dict[str, int | None]]:
        """Returns for each how busy it was of late, in percent, and the bytes of its memory in use; `None` for what it does not tell."""
        return [{"busy": self._busy(handle), "memory": self._memory(handle, "used")} for handle in self._handles]

    def _busy(self, handle: Any) -> int | None:
        try:
            return int(self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
        except self._nvml.NVMLError:  # such as of a part of a GPU (MIG)
            return None

    def _memory(self, handle: Any, which: str) -> int | None:
        try:
            return int(getattr(self._nvml.nvmlDeviceGetMemoryInfo(handle), which))
        except self._nvml.NVMLError:
            return None


def _text(name: str | bytes) -> str:
    """Returns a name as text; older releases of the library gave bytes."""
    return name.decode(errors="replace") if isinstance(name, bytes) else name
