"""Names the vector units of the processor, which decide how fast pictures are computed."""

from __future__ import annotations

from collections.abc import Iterator

from pipegen.doctor.examination import Examination
from pipegen.doctor.line import Line

_NAMES = ("avx", "avx2", "fma", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_tile", "asimd", "sve", "sve2", "bf16")


def check(examination: Examination) -> Iterator[Line]:
    """Names the processor and what it has; TensorFlow's builds for x86 end in SIGILL without AVX."""
    found = examination.machine.processor
    flags = (found.get("flags") or found.get("Features") or "").split()
    if not flags:
        yield Line("vector units", "unknown: /proc/cpuinfo names none", "note")
        return
    has = [name for name in _NAMES if name in flags]
    model = found.get("model name", "a processor of unknown name")
    figures = {"model": model, "units": has}
    if "flags" not in found or "avx2" in has:
        yield Line("vector units", f"{', '.join(has) or 'none'} ({model})", figures=figures)
    elif "avx" in has:
        remedy = "let the virtual machine have its host's processor (`-cpu host`), or use a machine of 2013 or later, for faster resampling"
        yield Line("vector units", f"{', '.join(has)}, but no AVX2 ({model})", "warning", remedy, figures)
    else:
        remedy = "let the virtual machine have its host's processor (`-cpu host`), or use another machine: TensorFlow's builds need AVX"
        yield Line("vector units", f"no AVX ({model})", "error", remedy, figures)
