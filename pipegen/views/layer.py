"""`EvaluationLayer`, a Keras layer that runs the evaluation steps on batches inside of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf

from pipegen.backend.running.requests import served
from pipegen.phases.layered import plan_of_layer, steps_said
from pipegen.views.serving import physical_of


@keras.saving.register_keras_serializable(package="pipegen")
class EvaluationLayer(keras.layers.Layer):
    """The evaluation steps of a pipeline that work on batches; `pipe.layer()` makes it.

    Its input is `x` of `pipe.dataset(split, stages="element")`; its output is the usual input of the model. It has no weights and draws
    nothing. A model with this layer is saved as usual; before loading it, import this class: `from pipegen import EvaluationLayer`.

    Args:
        steps: The steps, as plain values.
        options: Options of every Keras layer, such as `name`.
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
        """Returns the arguments from which Keras rebuilds it."""
        return {**super().get_config(), "steps": self.steps}


def layers_in(model: Any) -> Iterator[EvaluationLayer]:
    """Yields the `EvaluationLayer`s of a model, at any depth."""
    for layer in getattr(model, "layers", ()):
        if isinstance(layer, EvaluationLayer):
            yield layer
        yield from layers_in(layer)


def layer_mismatches(model: Any, own: Mapping[str, Any], split: str, *, element: bool) -> list[str]:
    """Lists mismatches of the layers in a model, for complete batches, or for those of `stages="element"`."""
    held = list(layers_in(model))
    if element and not held:
        return [f"these batches leave {steps_said(own)} to a layer, but the model has none: use `pipe.layer()` behind its input"]
    if held and not element:
        done = f"the model does {steps_said(held[0].steps)} in its layer `{held[0].name}`, but the pipeline has done so already"
        return [f'{done}: feed it `pipe.dataset({split!r}, stages="element")`, or leave the layer out']
    if held and held[0].steps != own:
        made = f"the layer `{held[0].name}` was made by another spec, and does {steps_said(held[0].steps)}"
        return [f"{made}; this spec leaves {steps_said(own)} to it: build the model with its `pipe.layer()`"]
    return []
