"""pipegen compiles a YAML spec into an optimised `tf.data` pipeline.

    text ── spec/ ──▶ PipelineSpec, and where each value stands
         ── plan/ ──▶ Plan: typed nodes, the plainest that mean what the spec says
         ── passes/ ▶ Plan: fast, each rewrite recorded
         ── backend/ ▶ tf.data.Dataset; TensorFlow starts here

Importing pipegen imports neither TensorFlow nor Keras nor NumPy; `build` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.release import __version__ as __version__

if TYPE_CHECKING:
    from pipegen.api.building import build
    from pipegen.api.pipeline import Pipeline
    from pipegen.errors import DataError, ModelMismatchError, PipegenError, SpecError, StateError
    from pipegen.phases.compilation import load
    from pipegen.phases.specs import Spec

__all__ = [
    "DataError",
    "ModelMismatchError",
    "PipegenError",
    "Pipeline",
    "Spec",
    "SpecError",
    "StateError",
    "__version__",
    "build",
    "load",
]

_HOMES = {
    "DataError": "errors",
    "ModelMismatchError": "errors",
    "Pipeline": "api.pipeline",
    "PipegenError": "errors",
    "Spec": "phases.specs",
    "SpecError": "errors",
    "StateError": "errors",
    "build": "api.building",
    "load": "phases.compilation",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'pipegen' has no attribute {name!r}")
    import importlib

    from pipegen.garbage import uncollected

    with uncollected():
        value = getattr(importlib.import_module(f"pipegen.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
