"""The forms in which a plan is run: what enters, and what is handed over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from pipegen.plan import nodes as logical

Enters = Literal["variable", "constant", "queue", "list", "request"]


@dataclass(frozen=True, slots=True)
class Form:
    """One way to run a plan.

    Attributes:
        name: What it is for.
        enters: Where its epochs come from, or, one by one, its steps or records, or whole batches of stored values.
        takes: Which of these enter.
        derived: Whether more is built on it, which may run on another machine: it names damaged files itself, and uses no memory again.
        numbered: Whether batches are handed over with their epoch and step.
        tells: Whether a batch says if all of its records are whole, in place of failing where one is damaged.
        device: Which device they are handed over on, or `None` for this host's memory.
        sends: Whether the last kernels are left to a device, which gets what enters them, and their parameters.
    """

    name: str
    enters: Enters
    takes: Literal["epoch", "step", "record", "batch"] = "epoch"
    derived: bool = False
    numbered: bool = True
    tells: bool = False
    device: str | None = None
    sends: bool = False

    @property
    def single(self) -> bool:
        """Returns whether single steps enter."""
        return self.takes == "step"

    def built_on(self) -> Form:
        """The form of the datasets that are built on this one's."""
        return replace(self, name=f"{self.name}, for datasets built on it", derived=True, numbered=False)

    def sending(self) -> Form:
        """The form that leaves the last kernels to a device."""
        return replace(self, name=f"{self.name}, for a device stage", sends=True)

    def bare(self, device: str | None = None) -> Form:
        """The form that hands over batches alone, perhaps on a device."""
        return replace(self, numbered=False, device=device or self.device)


TRAINING = Form("training", "variable")
FIXED = Form("one epoch", "constant")
"""Of any split: in evaluation, prediction, measuring for `pipegen fit`, and wherever an epoch is asked for by its number."""
REQUESTED = Form("requested batches", "queue", "step")
SERVICE = Form("workers of the tf.data service", "list", "step", derived=True, tells=True)
"""Runs on machines that have TensorFlow and nothing of this process: a batch with a damaged record is made by the trainer, which knows what
to do about it."""
EXPORTED = Form("export", "list", "step")
SHOWN = Form("preview", "list", "record")
PROBED = Form("records tried one by one", "list", "record")
"""For `validate --data`."""
SERVED = Form("serving", "request", "batch", numbered=False)
"""A function of a request rather than a dataset. It holds nothing and draws nothing, so that a file can hold it."""


def forms_of(plan: logical.Plan) -> tuple[Form, ...]:
    """Returns the forms in which a plan is run, the usual one first."""
    device = next((n.device for n in plan.nodes if isinstance(n, logical.Prefetch)), None)
    epochs = (TRAINING, FIXED) if plan.split == "train" else (FIXED,)
    usual = (epochs[0].bare(device), *epochs[1:]) if device else epochs
    served = (SERVED,) if plan.emit.output.y is None and not plan.index.draws and plan.split != "train" else ()
    return (*(form for whole in usual for form in (whole, whole.built_on())), REQUESTED, SERVICE, EXPORTED, SHOWN, PROBED, *served)
