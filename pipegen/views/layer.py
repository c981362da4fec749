"""A Keras layer that does the evaluation stages on batches inside a model, saved and loaded with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from pipegen.backend.running.requests import served
from pipegen.phases.layered import plan_of_layer, steps_said
from pipegen.views.serving import physical_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@keras.saving.register_keras_serializable(package="pipegen")
class EvaluationLayer(keras.layers.Layer):
    """Does the steps of a pipeline that come behind the batch, as evaluation has them; `pipe.layer()` makes it.

    It takes what `pipe.dataset(split, stages="element")` gives as `x`, and gives what the model would receive else. It has no weights and
    draws nothing. A model that holds it is saved as any other; to load it, import this class first: `from pipegen import EvaluationLayer`.

    Args:
        steps: What it does, as plain values.
        options: Of every Keras layer, such as `name`.
    """

    def __init__(self, steps: Mapping[str, Any], **options: Any) -> None:
        super().__init__(**{"trainable": False, "autocast": False, "name": "evaluation_steps", **options})
        self.steps = steps
        self._plan = physical_of(*plan_of_layer(steps), jit=False)
        self._run = served(self._plan)

    def call(self, inputs: Any) -> Any:
        """Runs the stages on a batch: a tensor, or a tuple or a map of them."""
        wanted = self._plan.plan.emit.output.x
        if isinstance(wanted, dict):
            given = {name: inputs[key] for key, name in wanted.items()}
        else:
            given = dict(zip([wanted] if isinstance(wanted, str) else wanted, [inputs] if isinstance(wanted, str) else inputs, strict=True))
        return self._run({name: tf.cast(value, self._plan.plan.read[name].dtype) for name, value in given.items()})

    def get_config(self) -> dict[str, Any]:
        """Returns what Keras saves of it."""
        return {**super().get_config(), "steps": self.steps}


def layers_in(model: Any) -> Iterator[EvaluationLayer]:
    """Yields the layers of this kind that a model holds, at any depth."""
    for layer in getattr(model, "layers", ()):
        if isinstance(layer, EvaluationLayer):
            yield layer
        yield from layers_in(layer)


def layer_mismatches(model: Any, own: Mapping[str, Any], split: str, *, element: bool) -> list[str]:
    """Returns what is wrong about the layers in a model, for batches that are finished, or such as `stages="element"` gives."""
    held = list(layers_in(model))
    if element and not held:
        return [f"these batches leave {steps_said(own)} to a layer, and the model holds none: it needs `pipe.layer()` behind its input"]
    if held and not element:
        done = f"the model does {steps_said(held[0].steps)} in its layer `{held[0].name}`, and the pipeline has done so already"
        return [f'{done}: feed it `pipe.dataset({split!r}, stages="element")`, or leave the layer out']
    if held and held[0].steps != own:
        made = f"the layer `{held[0].name}` was made by another spec, and does {steps_said(held[0].steps)}"
        return [f"{made}; this one leaves {steps_said(own)} to it: build the model with its `pipe.layer()`"]
    return []
