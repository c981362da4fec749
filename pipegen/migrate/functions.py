"""`preprocessing_function` as a step: a Keras application's, a function that only scales, or one of an imported module."""

from __future__ import annotations

import ast
import re
from typing import get_args

from pipegen.migrate.amounts import Step, number
from pipegen.migrate.findings import Findings
from pipegen.migrate.nodes import flattened
from pipegen.migrate.signatures import is_keras
from pipegen.migrate.values import Dotted, Local, Unknown, Value


def permission(value: Value) -> str:
    """Argument of `build` that permits an imported `preprocessing_function`; else empty."""
    called = python_function(value) if preset_of(value) is None else ""
    return f', allow_code=["{re.split("[.:]", called)[0]}"]' if called else ""


def function_step(value: Value, line: int, findings: Findings) -> Step | None:
    """Step that does the same as a preprocessing function; `None`, with a finding, if there is none."""
    preset = preset_of(value)
    if preset is not None:
        return Step(f"normalize: {{preset: {preset}}}")
    if isinstance(value, Local):
        if _only_calls(value) is not None:
            return function_step(_only_calls(value) or value, line, findings)
        linear = _linear(value)
        if linear is not None:
            scale, offset = linear
            return Step(
                f"rescale: {{scale: {number(scale)}, offset: {number(offset)}}}" if offset else f"rescale: {{scale: {number(scale)}}}"
            )
    called = python_function(value)
    if called:
        name = called.replace(":", ".")
        message = f"`{name}` is called by a `python` step: it gives float32 of the same shape, and the same for the same image"
        help_ = "a function that draws random numbers takes a generator as well: `random_python`, see `pipegen ops random_python`"
        findings.add("PG621", line, message, help_)
        return Step(f"python: {{function: {called}}}")
    name = value.name if isinstance(value, Dotted) else getattr(getattr(value, "node", None), "name", "")
    message = f"`preprocessing_function` is {f'`{name}`' if name else 'a function of this file'}, which a spec cannot call"
    if isinstance(value, Unknown) and value.reason:
        message = f"`preprocessing_function` is not known, and a spec cannot call it: {value.reason}"
    help_ = "write it as steps (`pipegen ops` lists them); or move it into a module of its own and import it, for a `python` step"
    findings.add("PG630", line, message, help_)
    return None


def python_function(value: Value | None) -> str:
    """`module:function` of a function that the script imports, or that its function only calls; else empty."""
    if isinstance(value, Local) and isinstance(value.node, ast.FunctionDef):
        value = _only_calls(value)
    if not isinstance(value, Dotted) or is_keras(value.name) or value.name.startswith(("tensorflow.", "tf.", ".")):
        return ""  # TensorFlow's functions take tensors, and its modules cannot be imported by name
    module, _, name = value.name.rpartition(".")
    # A capitalised name is a class, and a function in it cannot be imported.
    return f"{module}:{name}" if module and not any(part[:1].isupper() for part in value.name.split(".")) else ""


def preset_of(value: Value) -> str | None:
    """Preset of `normalize` for a Keras application's `preprocess_input`."""
    if not isinstance(value, Dotted) or not is_keras(value.name) or not value.name.endswith(".preprocess_input"):
        return None
    from pipegen.ops.arguments.arithmetic import Preset

    module = value.name.split(".")[-2]
    if module == "imagenet_utils":
        return "caffe"
    return module if module in get_args(Preset) else None


def _only_calls(function: Local) -> Value | None:
    """Function that a function only calls with its own argument."""
    result, argument = _result(function)
    if not isinstance(result, ast.Call) or len(result.args) != 1 or result.keywords or argument is None:
        return None
    given = result.args[0]
    if not isinstance(given, ast.Name) or given.id != argument or not isinstance(result.func, (ast.Name, ast.Attribute)):
        return None
    dotted = _dotted(result.func, function)
    return Dotted(dotted) if dotted else None


def _dotted(node: ast.expr, function: Local) -> str:
    """Full name of something imported at the top of the file or in the function's own scope."""
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value, function)
        return f"{owner}.{node.attr}" if owner else ""
    if not isinstance(node, ast.Name):
        return ""
    bound = function.frame.module.scope.bindings.get(node.id, [])
    return bound[0].dotted if len(bound) == 1 and bound[0].kind == "import" else ""


def _result(function: Local) -> tuple[ast.expr | None, str | None]:
    """The single expression that a function returns, and the name of its argument."""
    node = function.node
    if isinstance(node, ast.ClassDef) or len(node.args.args) != 1:
        return None, None
    argument = node.args.args[0].arg
    if isinstance(node, ast.Lambda):
        return node.body, argument
    body = [s for s in flattened(node.body) if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    return (body[0].value, argument) if len(body) == 1 and isinstance(body[0], ast.Return) else (None, None)


def _linear(function: Local) -> tuple[float, float] | None:
    """Scale and offset of a function that is linear in its argument."""
    result, argument = _result(function)
    found = _form(result, argument) if result is not None and argument is not None else None
    return found if found is not None and found[0] != 0 else None


def _form(node: ast.expr, x: str) -> tuple[float, float] | None:
    if isinstance(node, ast.Name):
        return (1.0, 0.0) if node.id == x else None
    if isinstance(node, ast.Constant):
        return (0.0, float(node.value)) if isinstance(node.value, (int, float)) and not isinstance(node.value, bool) else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _form(node.operand, x)
        return (-inner[0], -inner[1]) if inner is not None else None
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _form(node.left, x), _form(node.right, x)
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.Add):
        return left[0] + right[0], left[1] + right[1]
    if isinstance(node.op, ast.Sub):
        return left[0] - right[0], left[1] - right[1]
    if isinstance(node.op, ast.Mult) and (left[0] == 0 or right[0] == 0):
        factor, other = (left[1], right) if left[0] == 0 else (right[1], left)
        return other[0] * factor, other[1] * factor
    if isinstance(node.op, ast.Div) and right[0] == 0 and right[1] != 0:
        return left[0] / right[1], left[1] / right[1]
    return None
