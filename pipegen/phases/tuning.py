"""Lets a spec have the settings that `pipegen tune` found on this machine."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipegen.phases.machine import machine

if TYPE_CHECKING:
    from pipegen.phases.specs import Spec


def tuned_key(spec: Spec) -> str:
    """Returns what an answer of `pipegen tune` is kept by: the meaning of a spec and its `runtime` section, which was there when it ran."""
    return hashlib.sha256(f"{spec.hash}\n{spec.model.runtime.model_dump_json()}".encode()).hexdigest()


def with_tuned(spec: Spec, examples: int) -> Spec:
    """Returns a spec with what `pipegen tune` found for it on this machine, where it says `auto` and has about as many examples."""
    found = machine().tuned.get(tuned_key(spec))
    if found is None or not found.suits(examples):
        return spec
    runtime = spec.model.runtime
    settings = {name: value for name, value in found.settings.items() if getattr(runtime, name) == "auto"}
    if not settings:
        return spec
    kept: dict[str, Any] = {name: settings.get(name) for name in found.settings}
    plain = {name: value for name, value in settings.items() if name != "cache"}  # which is a preference: it has to fit, too
    model = spec.model.model_copy(update={"runtime": runtime.model_copy(update=plain)})
    return replace(spec, model=model, tuned=replace(found, **kept))


def untuned(spec: Spec) -> Spec:
    """Returns a spec as it was before `with_tuned`: another machine has other answers."""
    if spec.tuned is None:
        return spec
    plain = {name: "auto" for name in spec.tuned.settings if name != "cache"}
    model = spec.model.model_copy(update={"runtime": spec.model.runtime.model_copy(update=plain)})
    return replace(spec, model=model, tuned=None)
