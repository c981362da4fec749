"""Finds the Python functions that a spec names, in the modules that the caller allows and nowhere else.

A spec is data, so the permission never comes out of one, nor out of the environment: it is an argument of whoever builds. Modules
are imported as any other, and only those that are allowed.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable
from dataclasses import replace
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from pipegen.arguments import got
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.suggest import closest
from pipegen.errors import SpecError
from pipegen.ops.families.custom import CustomTransform
from pipegen.plan.recipe import step_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.phases.specs import Spec
    from pipegen.spec.source_map import KeyPath

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


class Calls(Protocol):
    """Names a function and says how it calls it: a step, or a test."""

    op: ClassVar[str]

    @property
    def function(self) -> str:
        """The function, as `module:function`."""
        ...

    @property
    def module(self) -> str:
        """The module."""
        ...

    @property
    def name(self) -> str:
        """The function's name there."""
        ...

    @property
    def call(self) -> str:
        """Writes how it is called."""
        ...

    @property
    def num_arguments(self) -> int:
        """Counts the values that it is given."""
        ...


class _Unusable(Exception):
    """Why a function cannot be called: the code of the finding, its message and its help."""


def allowed_modules(names: Iterable[str]) -> tuple[str, ...]:
    """Returns the modules whose functions may be called, as a caller names them; a package stands for the modules below it too.

    Raises:
        TypeError: For anything but a list, such as one text in its place.
        ValueError: For what is no module's name.
    """
    if isinstance(names, str):
        raise TypeError(f"`allow_code` is a list of modules, such as [{names!r}]")
    if not isinstance(names, Iterable):
        raise TypeError(f'`allow_code` is a list of modules, such as ["my_pkg"], got {got(names)}')
    modules = tuple(names)
    for name in modules:
        if not isinstance(name, str) or _MODULE.fullmatch(name) is None:
            raise ValueError(f"`allow_code` names modules, such as 'my_pkg' or 'my_pkg.filters', and {name!r} is no name of one")
    return modules


def is_allowed(module: object, allowed: tuple[str, ...]) -> bool:
    """Returns whether a module is one of those, or below one."""
    return isinstance(module, str) and any(module == m or module.startswith(f"{m}.") for m in allowed)


def with_functions(spec: Spec, allowed: tuple[str, ...]) -> Spec:
    """The spec with the functions that its steps call, of modules that are allowed; the same spec where they call none.

    Raises:
        SpecError: `PG240` for a module that is not allowed, `PG241` for a function that is not there or cannot be called so.
    """
    steps = list(spec.model.transforms)
    custom = enumerate(steps)
    calls = {i: (step, step_path(i, step)) for i, step in custom if isinstance(step, CustomTransform) and not step.has_been_handed}
    for index, callee in find_functions(calls, spec, allowed).items():
        steps[index] = calls[index][0].with_callee(callee)
    if all(map(is_, steps, spec.model.transforms)):
        return spec
    return replace(spec, model=spec.model.model_copy(update={"transforms": tuple(steps)}))


def find_functions(calls: Mapping[int, tuple[Calls, KeyPath]], spec: Spec, allowed: tuple[str, ...]) -> dict[int, Callable[..., Any]]:
    """Returns the function of each step or test that calls one; each is given with its place in the spec.

    Raises:
        SpecError: As `with_functions`.
    """
    findings: list[Diagnostic] = []
    found: dict[int, Callable[..., Any]] = {}
    for index, (step, path) in calls.items():
        try:
            found[index] = _found(step, allowed)
        except _Unusable as problem:
            code, message, help_ = problem.args
            findings.append(make(code, message, spec.loaded.locate.label((*path, "function")), help=help_))
    if findings:
        raise SpecError(findings)
    return found


def _found(step: Calls, allowed: tuple[str, ...]) -> Callable[..., Any]:
    if not is_allowed(step.module, allowed):
        raise _Unusable("PG240", f"`{step.op}` calls `{step.function}`, and nobody has allowed `{step.module}`", _how_to_allow(step.module))
    module = _imported(step)
    if not hasattr(module, step.name):
        near = closest(step.name, [name for name, value in vars(module).items() if callable(value)])
        help_ = (f"did you mean `{step.module}:{near}`?",) if near else ()
        raise _Unusable("PG241", f"the module `{step.module}` has no function `{step.name}`", help_)
    found = getattr(module, step.name)
    if not callable(found):
        kind = type(found).__name__
        raise _Unusable("PG241", f"`{step.function}` is no function but a `{kind}`", (f"name something to call as `{step.call}`",))
    home = getattr(found, "__module__", None) if inspect.isroutine(found) or inspect.isclass(found) else None
    if home and not is_allowed(home, allowed):  # what a module has imported for its own use is not the module's
        message = f"`{step.function}` comes from the module `{home}`, which nobody has allowed"
        raise _Unusable("PG240", message, _how_to_allow(home))
    _check_call(step, found)
    callee: Callable[..., Any] = found
    return callee


def _how_to_allow(module: str) -> tuple[str, ...]:
    top = module.partition(".")[0]
    return (
        f'if you trust that code: `pipegen.build(…, allow_code=["{top}"])`, or `--allow-code {top}` on the command line',
        "a spec alone runs no code",
    )


def _imported(step: Calls) -> ModuleType:
    try:
        return importlib.import_module(step.module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{step.module}.".startswith(f"{error.name}."):
            raise _Unusable("PG241", f"`{step.module}` cannot be imported: it needs `{error.name}`, which is not installed", ()) from None
        raise _Unusable("PG241", f"there is no module `{error.name}`", _near_modules(error.name)) from None
    except (Exception, SystemExit) as error:
        said = " ".join(str(error).split())
        what = f"`{step.module}` cannot be imported: {type(error).__name__}" + (f": {said}" if said else "")
        raise _Unusable("PG241", what, (f'`python -c "import {step.module}"` shows where',)) from None


def _near_modules(missing: str) -> tuple[str, ...]:
    """Says what to do about a missing module. What lies above it is there, and was imported on the way."""
    above, _, name = missing.rpartition(".")
    path = getattr(importlib.import_module(above), "__path__", None) if above else None
    if above and path is None:
        return (f"`{above}` is a module, and no package with modules in it",)
    near = closest(name, [found.name for found in pkgutil.iter_modules(path)])
    hint = (f"did you mean `{above + '.' if above else ''}{near}`?",) if near else ()
    return (*hint, "it is looked for as `import` does: install it, or put its folder on PYTHONPATH")


def _check_call(step: Calls, function: Callable[..., Any]) -> None:
    """Checks that a function can be called with what the step gives it; one that does not say what it takes is given the benefit."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*[None] * step.num_arguments)
    except TypeError:
        other = "random_python" if step.num_arguments == 1 else "python"
        see = f", or see `pipegen ops {other}`" if isinstance(step, CustomTransform) else ""
        message = f"`{step.function}` takes {signature}, and `{step.op}` calls it as `{step.call}`"
        raise _Unusable("PG241", message, (f"give it those arguments and no more{see}",)) from None
