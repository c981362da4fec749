"""pipegen compiles a YAML spec into an optimised `tf.data` pipeline.

    text ── spec/ ──▶ PipelineSpec, with the place of each value
         ── plan/ ──▶ Plan: typed nodes, not optimised
         ── passes/ ▶ Plan: optimised, each rewrite recorded
         ── backend/ ▶ tf.data.Dataset; TensorFlow starts here

Importing pipegen imports neither TensorFlow nor Keras nor NumPy; `build` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.release import __version__ as __version__

if TYPE_CHECKING:
    from pipegen.api.building import build
    from pipegen.api.losses import WeightedMean
    from pipegen.api.pipeline import Pipeline
    from pipegen.api.tasks import prepare, report, test
    from pipegen.errors import DataError, ModelMismatchError, PipegenError, SpecError, StateError
    from pipegen.observe.monitor_callback import Monitor
    from pipegen.phases.compilation import load
    from pipegen.phases.specs import Spec
    from pipegen.spec.peers.objects import from_albumentations, from_keras, from_torchvision
    from pipegen.views.data_test_report import DataTestReport
    from pipegen.views.serving import EvaluationLayer

__all__ = [
    "DataError",
    "DataTestReport",
    "EvaluationLayer",
    "ModelMismatchError",
    "Monitor",
    "PipegenError",
    "Pipeline",
    "Spec",
    "SpecError",
    "StateError",
    "WeightedMean",
    "__version__",
    "build",
    "from_albumentations",
    "from_keras",
    "from_torchvision",
    "load",
    "prepare",
    "report",
    "test",
]

_PUBLIC = {
    "api.building": ("build",),
    "api.losses": ("WeightedMean",),
    "api.pipeline": ("Pipeline",),
    "api.tasks": ("prepare", "report", "test"),
    "errors": ("DataError", "ModelMismatchError", "PipegenError", "SpecError", "StateError"),
    "observe.monitor_callback": ("Monitor",),
    "phases.compilation": ("load",),
    "phases.specs": ("Spec",),
    "spec.peers.objects": ("from_albumentations", "from_keras", "from_torchvision"),
    "views.data_test_report": ("DataTestReport",),
    "views.serving": ("EvaluationLayer",),
}
_HOMES = {name: module for module, names in _PUBLIC.items() for name in names}


if not TYPE_CHECKING:  # with it, a type checker would accept every name

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'pipegen' has no attribute {name!r}")
        import importlib

        from pipegen.lazy import uncollected

        with uncollected():
            value = getattr(importlib.import_module(f"pipegen.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
