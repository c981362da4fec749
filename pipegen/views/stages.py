"""Summaries of the stages of training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.terminal import aligned

if TYPE_CHECKING:
    from pipegen.spec.models import PipelineSpec, TrainingStage


def stage_rows(spec: PipelineSpec) -> list[tuple[str, str, str]]:
    """Makes a row for each stage: its number, its epochs, and its settings."""
    rows, first = [], 0
    for number, stage in enumerate(spec.stages):
        end = first + stage.epochs
        rows.append((f"stage {number}", f"epoch {first}" if stage.epochs == 1 else f"epochs {first} to {end - 1}", _said(stage)))
        first = end
    return rows


def stages_text(spec: PipelineSpec) -> str:
    """Writes these rows as text, with a heading; empty without stages."""
    rows = stage_rows(spec)
    if not rows:
        return ""
    return "\n".join(["stages of training (--stage N shows one; below is the spec as written)", *aligned(rows), "", ""])


def stages_json(spec: PipelineSpec) -> list[dict[str, Any]]:
    """Lists the stages as plain values, with the first epoch of each."""
    return [{"initial_epoch": stage.resolved.stretch.first, **stage.model_dump(mode="json")} for stage in spec.stages]


def _said(stage: TrainingStage) -> str:
    values = [f"{name} {value}" for name, value in stage.params.items()]
    return ", ".join([*values, *([f"batch {stage.batch}"] if stage.batch is not None else [])]) or "as written"
