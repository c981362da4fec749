"""The nodes of a plan as they come about: stages wait until the steps of all features are known, and are then put in order, one a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.errors import InternalError
from pipegen.plan import stages as s
from pipegen.plan.nodes import Batch, Element, Kernel
from pipegen.plan.segments import varying

if TYPE_CHECKING:
    from pipegen.plan.nodes import Node
    from pipegen.plan.stages import Stage
    from pipegen.spec import models
    from pipegen.types import ElementType, FeatureType


class Assembly:
    """Takes stages, and makes nodes of them. It judges nothing: who adds a stage says what leaves it.

    Args:
        entry: The type of what the first node gives.
    """

    def __init__(self, entry: ElementType) -> None:
        self.type = entry
        """What is known of each feature behind the last stage."""
        self.edge = entry
        """The type of the edge behind the last node."""
        self.nodes: list[Node] = []
        self.waiting: list[tuple[Stage, dict[str, FeatureType]]] = []
        """Stages that are not in nodes yet, and what leaves each of their features."""
        self.held: dict[str, s.Decode] = {}
        """For a feature, the decode at a scale that the window of its next step decides."""

    def _emit(self, stage: Stage, feature: str, y: FeatureType) -> None:
        """Add a stage; with the decode that was held for it, a crop is one stage."""
        self.type = self.type.replace(**{feature: y})
        held = self.held.pop(feature, None)
        if held is not None and isinstance(stage, s.Crop):
            stage = s.DecodeWindow(feature, held.ref, stage.ref, held.needed, whole=True)
        elif held is not None:
            raise InternalError(f"`{held.ref.id}` waited for a crop and met {type(stage).__name__}")
        self.waiting.append((stage, {feature: y}))

    def _emit_all(self, stage: Stage, types: dict[str, FeatureType]) -> None:
        """Add a stage that gives several features another type."""
        self.type = self.type.replace(**types)
        self.waiting.append((stage, types))

    def _hold(self, stage: s.Decode, y: FeatureType) -> None:
        """Keep a decode until the crop that comes next."""
        self.held[stage.feature] = stage
        self.type = self.type.replace(**{stage.feature: y})

    def _pend(self, stage: s.Compose | s.ComposeColour, entry: FeatureType, y: FeatureType) -> None:
        """Add a stage that composes a matrix: until the segment ends, the edge still carries the image that entered it."""
        self.waiting.append((stage, {stage.feature: entry}))
        self.type = self.type.replace(**{stage.feature: y})

    def _place(self) -> None:
        """Make nodes of one stage each: on one example at a time, until a step has mixed them.

        What is the same in every epoch comes first, whichever feature it is about, so that it can be cached.
        """
        waiting, self.waiting = self.waiting, []
        varies = varying([stage for stage, _ in waiting])
        for _, (stage, types) in sorted(enumerate(waiting), key=lambda one: one[0] in varies):
            self.edge = self.edge.replace(**types)
            self.nodes.append(Element(self.edge, (stage,)) if self.edge.batch is None else Kernel(self.edge, (stage,)))

    def _stack(self, batch: models.Batch, split: str) -> None:
        """Stack the examples, unless they are."""
        if self.type.batch is not None:
            return
        remainder = batch.remainder_for(split)
        size = batch.size if remainder in ("drop", "pad") else 0
        self.type, self.edge = self.type.with_batch(size), self.edge.with_batch(size)
        self.nodes.append(Batch(self.edge, batch.size, remainder))
