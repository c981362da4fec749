"""Imports the Python functions that a spec names, from modules that the caller allows and from no others.

A spec is data, so it cannot allow anything, nor can the environment: the permission is an argument of `build` and of commands.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import is_
from typing import TYPE_CHECKING, Any

from pipegen.arguments import got
from pipegen.data.named_files import finding_of
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError, SpecError
from pipegen.memory import ram_budget
from pipegen.ops.families.custom import CustomTransform
from pipegen.phases.layered import readers_of, source_of
from pipegen.plan.check import PREPARE, SERVICE, WITHOUT
from pipegen.plan.nodes import Plan
from pipegen.plan.recipe import step_path
from pipegen.spec.source_map import KeyPath
from pipegen.spec.units import format_bytes

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest
    from pipegen.ops.datatests.python import Python
    from pipegen.phases.specs import Spec


_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def allowed_modules(names: Iterable[str]) -> tuple[str, ...]:
    """Checks the names of modules whose functions may be called; a package includes the modules below it. Raises `TypeError` for anything
    but a list, such as a single text; `ValueError` for an invalid name."""
    if isinstance(names, str):
        raise TypeError(f"`allow_code` is a list of modules, such as [{names!r}]")
    if not isinstance(names, Iterable):
        raise TypeError(f'`allow_code` is a list of modules, such as ["my_pkg"], got {got(names)}')
    modules = tuple(names)
    for name in modules:
        if not isinstance(name, str) or _MODULE.fullmatch(name) is None:
            raise ValueError(f"`allow_code` names modules, such as 'my_pkg' or 'my_pkg.filters', and {name!r} is not a valid name")
    return modules


def is_allowed(module: object, allowed: tuple[str, ...]) -> bool:
    """Decides if a module is an allowed one, or below one."""
    return isinstance(module, str) and any(module == m or module.startswith(f"{m}.") for m in allowed)


def with_functions(spec: Spec, allowed: tuple[str, ...]) -> Spec:
    """Gives steps the functions that they call. Raises `SpecError`: `PG240` for a module that is not allowed, `PG241` for a function
    that is missing or takes other arguments."""
    steps = list(spec.model.transforms)
    calls = {
        i: (step, step_path(i, step)) for i, step in enumerate(steps) if isinstance(step, CustomTransform) and not step.has_been_handed
    }
    for index, callee in find_functions(calls, spec, allowed).items():
        steps[index] = calls[index][0].with_callee(callee)
    if all(map(is_, steps, spec.model.transforms)):
        return spec
    return replace(spec, model=spec.model.model_copy(update={"transforms": tuple(steps)}))


def find_functions(
    calls: Mapping[int, tuple[CustomTransform | Python, KeyPath]], spec: Spec, allowed: tuple[str, ...]
) -> dict[int, Callable[..., Any]]:
    """Imports the functions of steps or tests, which are given with their places in the spec; raises `SpecError` as `with_functions`."""
    findings: list[Diagnostic] = []
    found: dict[int, Callable[..., Any]] = {}
    for index, (step, path) in calls.items():
        try:
            found[index] = _found(step, allowed)
        except OpError as problem:
            findings.append(finding_of(problem, spec.loaded.locate.label((*path, "function"))))
    if findings:
        raise SpecError(findings)
    return found


def _found(step: CustomTransform | Python, allowed: tuple[str, ...]) -> Callable[..., Any]:
    """Imports the function of a step or a test; raises `OpError` if it cannot be called."""
    if not is_allowed(step.module, allowed):
        message = f"`{step.op}` calls `{step.function}`, and the module `{step.module}` is not allowed"
        raise OpError("PG240", message, help=_how_to_allow(step.module))
    try:
        module = importlib.import_module(step.module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{step.module}.".startswith(f"{error.name}."):
            raise OpError("PG241", f"`{step.module}` cannot be imported: it needs `{error.name}`, which is not installed") from None
        raise OpError("PG241", f"module `{error.name}` not found", help=_near_modules(error.name)) from None
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split())
        message = f"`{step.module}` cannot be imported: {type(error).__name__}" + (f": {reason}" if reason else "")
        raise OpError("PG241", message, help=(f'`python -c "import {step.module}"` shows where',)) from None
    if not hasattr(module, step.name):
        near = closest(step.name, [name for name, value in vars(module).items() if callable(value)])
        help_ = (f"did you mean `{step.module}:{near}`?",) if near else ()
        raise OpError("PG241", f"the module `{step.module}` has no function `{step.name}`", help=help_)
    found = getattr(module, step.name)
    if not callable(found):
        kind = type(found).__name__
        raise OpError("PG241", f"`{step.function}` is a `{kind}`, not a function", help=(f"name something to call as `{step.call}`",))
    home = getattr(found, "__module__", None) if inspect.isroutine(found) or inspect.isclass(found) else None
    if home and not is_allowed(home, allowed):  # allowing a module does not allow what it imports
        message = f"`{step.function}` comes from the module `{home}`, which is not allowed"
        raise OpError("PG240", message, help=_how_to_allow(home))
    _check_call(step, found)
    return found


def _how_to_allow(module: str) -> tuple[str, ...]:
    top = module.partition(".")[0]
    return (
        f'if you trust that code: `pipegen.build(…, allow_code=["{top}"])`, or `--allow-code {top}` on the command line',
        "a spec alone runs no code",
    )


def _near_modules(missing: str) -> tuple[str, ...]:
    """Suggests a module near a missing one, whose parents exist: they were imported before it."""
    above, _, name = missing.rpartition(".")
    path = getattr(importlib.import_module(above), "__path__", None) if above else None
    if above and path is None:
        return (f"`{above}` is a module, not a package",)
    near = closest(name, [found.name for found in pkgutil.iter_modules(path)])
    hint = (f"did you mean `{above + '.' if above else ''}{near}`?",) if near else ()
    return (*hint, "install it, or put its folder on PYTHONPATH")


def _check_call(step: CustomTransform | Python, function: Callable[..., Any]) -> None:
    """Checks that a function accepts the number of arguments that the step passes."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions have no signature
        return
    try:
        signature.bind(*[None] * step.num_arguments)
    except TypeError:
        other = "random_python" if step.num_arguments == 1 else "python"
        see = f", or see `pipegen ops {other}`" if isinstance(step, CustomTransform) else ""
        message = f"`{step.function}` takes {signature}, and `{step.op}` calls it as `{step.call}`"
        raise OpError("PG241", message, help=(f"give it those arguments and no more{see}",)) from None


LARGEST = 2**31 - 2**28  # the most bytes of arrays in a graph, which has at most 2 GiB when it is serialised


def service_findings(spec: Spec, manifest: Manifest, plans: Mapping[str, Plan]) -> Iterator[Diagnostic]:
    """Reports records of the training split that are read by Python, or are too large for the graph that workers get."""
    plan = plans.get("train")
    if spec.model.runtime.service is None or plan is None:
        return
    locate, budget, held = spec.loaded.locate.label, ram_budget(spec.model.runtime), 0
    asked = locate(SERVICE, "workers are asked for here", key=True)
    for name, _, reader, features in readers_of(manifest, plan):
        place, python = locate(source_of(spec, name), key=True), reader.python(features, budget)
        if python:
            message = f"the training split reads {python} by Python, which workers do not have"
            yield make("PG486", message, place, asked, help=(PREPARE, WITHOUT))
        held += reader.held_bytes(features, budget)
        if held > LARGEST:
            message = f"the arrays of the training split have {format_bytes(held)}, too much for a worker's graph of less than 2 GiB"
            yield make("PG487", message, place, asked, help=(PREPARE, WITHOUT))
            return
