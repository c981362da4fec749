"""The constructor's arguments as steps of a spec, in the order of `ImageDataGenerator`."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import field
from typing import Any, get_args

from pipegen.frozen import dataclass
from pipegen.migrate.findings import Finding, Findings
from pipegen.migrate.nodes import flattened, root_name
from pipegen.migrate.signatures import is_keras
from pipegen.migrate.values import Class, Const, Dotted, Generator, Local, Unknown, Value, is_number
from pipegen.ops.transforms.whiten import LARGEST

_LIBRARIES = ("builtins", "numpy", "cv2", "skimage", "scipy", "PIL")
_NAMING = (ast.Name, ast.Attribute, ast.expr_context)


@dataclass
class Params:
    """The params of a spec: the text of each by name, and the findings about values of some."""

    texts: dict[str, str] = field(default_factory=dict)
    told: list[tuple[Finding, Sequence[str]]] = field(default_factory=list)


def grouped(node: ast.expr, text: str) -> str:
    """Text of an expression, in brackets if an attribute of it needs them."""
    return text if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)) else f"({text})"


@dataclass(frozen=True)
class Step:
    """Text of one step in a spec, and a comment for it."""

    text: str
    comment: str = ""


_FILLS = ("nearest", "reflect", "wrap")
_ORDERS = {0: "nearest", 3: "bicubic"}
RANDOM = (
    "rotation_range", "width_shift_range", "height_shift_range", "shear_range", "zoom_range", "channel_shift_range", "horizontal_flip",
    "vertical_flip", "brightness_range",
)  # fmt: skip
STATISTICS = ("featurewise_center", "featurewise_std_normalization", "zca_whitening")


@dataclass
class Steps:
    """Writes the steps of one generator."""

    generator: Generator
    size: tuple[int, int] | None  # height and width of the images, if known
    files: bool  # true if the images come from files, so that their values are 0 to 255
    findings: Findings
    fitted: bool  # true if `fit` is called on the generator
    channels: int  # number of channels of the images
    found: list[Step] = field(default_factory=list)

    def augmentation(self) -> None:
        """Writes random steps as one run: rotation, shift, shear, zoom, flips; then colours."""
        look = self._look()
        if degrees := self._amount("rotation_range"):
            self.found.append(Step(f"random_rotation: {{degrees: {degrees}, {look}}}"))
        self._shift(look)
        self._shear(look)
        self._zoom(look)
        self._flip(look if self.found else "")
        name = "channel_shift_range"
        if shift := self._amount(name):
            self.found.append(Step(f"random_channel_shift: {{delta: {shift}}}"))
            message = f"`{name}` clipped to the smallest and largest value of each image; the step clips to the range of all images"
            self._say("PG623", name, message)
        if "brightness_range" in self.generator.args:
            self._brightness()

    def values(self) -> None:
        """Writes steps on values, which run on every split."""
        given, name = self.generator.argument("preprocessing_function"), "rescale"
        function = None
        if given is not None and not (isinstance(given, Const) and given.value is None):
            function = function_step(given, self.generator.line_of("preprocessing_function"), self.findings)
        if function is not None and function.text.startswith("python:"):
            self.found.append(Step("cast: {dtype: float32}", "the dtype that Keras passed to the function"))
        rescale = self._number(name)
        if function is not None:
            preset = function.text.startswith("normalize: {preset")
            comment = f"rescale={rescale:g} was applied in addition, and is left out" if rescale and preset else function.comment
            self.found.append(Step(function.text, comment))
            rescale = None if preset else rescale
        if rescale:
            byte = math.isclose(rescale, 1 / 255, rel_tol=1e-6)
            if byte and self.files and function is None:
                self.found.append(Step("rescale: {to: [0, 1]}"))
            else:
                self.found.append(Step(f"rescale: {{scale: {number(rescale)}}}", "1/255" if byte else ""))
        self._statistics()

    # Random geometric changes

    def _look(self) -> str:
        """Arguments that all geometric steps have: fill and interpolation."""
        mode, order = self._known("fill_mode", "nearest"), self._known("interpolation_order", 1)
        fill = "nearest"
        if mode == "constant":
            fill = f"{{constant: {number(self._number('cval') or 0.0)}}}"
        elif mode in _FILLS:
            fill = str(mode)
        else:
            self._say("PG630", "fill_mode", f"`fill_mode={mode!r}` has no equivalent", "the spec has `nearest`, the default")
        if mode == "wrap":
            message = "`fill_mode='wrap'` repeated the image with a period one pixel too short; `wrap` repeats the whole image"
            self._say("PG623", "fill_mode", message)
        if order not in (0, 1, 3):
            self._say("PG630", "interpolation_order", f"`interpolation_order={order!r}` has no equivalent", "the spec is bilinear")
        method = f", interpolation: {_ORDERS[order]}" if isinstance(order, int) and order in _ORDERS else ""
        return f"fill: {fill}{method}"

    def _shift(self, look: str) -> None:
        parts = []
        remarks = []
        for name, key, axis in (("width_shift_range", "x", 1), ("height_shift_range", "y", 0)):
            share, remark = self._share(name, axis)
            parts += [f"{key}: {number(share)}"] if share else []
            remarks += [remark] if remark else []
        if parts:
            self.found.append(Step(f"random_translation: {{{', '.join(parts)}, {look}}}", "; ".join(remarks)))

    def _share(self, name: str, axis: int) -> tuple[float | None, str]:
        """Largest shift of images, as a fraction of the side."""
        value = self._known(name)
        if isinstance(value, (list, tuple)) and value and all(isinstance(v, (int, float)) for v in value):
            message = f"`{name}={value!r}` draws one of these numbers with a random sign; the spec draws any number up to the largest"
            self._say("PG621", name, message)
            most, pixels = max(abs(float(v)) for v in value), max(value) >= 1
        elif not is_number(value):
            if value not in (None, False):
                self._say("PG610", name, f"`{name}={value!r}` is not a distance", "it is left out of the spec")
            return None, ""
        elif isinstance(value, int) and value > 0:
            most, pixels = float(value - 1), True
            if most:
                message = f"`{name}={value}` draws whole pixels from -{value - 1} to {value - 1}; the spec draws any number between them"
                self._say("PG621", name, message)
        else:
            most, pixels = abs(float(value)), value >= 1
        if not pixels or not most:
            return most or None, ""
        if self.size is None:
            message = f"`{name}` is in pixels, but the size of the images is not known"
            self._say("PG610", name, message, "add it as a fraction of the side")
            return None, ""
        side = self.size[axis]
        return round(most / side, 6), f"{number(most)} of {side} pixels"

    def _shear(self, look: str) -> None:
        degrees = self._number("shear_range")
        if degrees is not None and abs(degrees) >= 90:
            self._say("PG630", "shear_range", f"`shear_range={degrees:g}` is invalid: a shear is below 90 degrees")
        elif degrees:
            silenced = "pipegen: ignore[PG503] as in the old code" if abs(degrees) < 1 else ""
            self.found.append(Step(f"random_shear: {{degrees: {number(abs(degrees))}, {look}}}", silenced))

    def _zoom(self, look: str) -> None:
        """Writes `zoom_range`, which scales coordinates: 0.8 magnifies by 1 / 0.8."""
        name = "zoom_range"
        value = self._known(name)
        if _is_pair(value):
            low, high = sorted(float(v) for v in value)
        elif is_number(value):
            low, high = 1 - abs(value), 1 + abs(value)
        else:
            if value not in (None, False):
                self._say("PG610", name, f"`zoom_range={value!r}` is neither a number nor a pair", "it is left out of the spec")
            return
        if (low, high) == (1.0, 1.0):
            return
        if low <= 0:
            message = f"`zoom_range={value!r}` reaches factors of zero and below, which have no equivalent"
            self._say("PG630", name, message, "it is left out")
            return
        written = f"{value:g}" if isinstance(value, (int, float)) else str(list(value))
        comment = f"zoom_range={written}: 1/{number(high)} to 1/{number(low)}"
        factors = f"[{number(1 / high)}, {number(1 / low)}]"
        self.found.append(Step(f"random_zoom: {{x: {factors}, y: {factors}, {look}}}", comment))
        message = "`zoom_range` draws a divisor of coordinates; the spec draws the magnification uniformly from the same range"
        self._say("PG621", name, message)

    def _flip(self, look: str) -> None:
        across, down = self._truth("horizontal_flip"), self._truth("vertical_flip")
        if across or down:
            args = [] if across and not down else [f"axis: {'both' if across else 'vertical'}"]
            args += [look] if look else []
            self.found.append(Step(f"random_flip: {{{', '.join(args)}}}" if args else "random_flip"))

    # Values

    def _brightness(self) -> None:
        name = "brightness_range"
        value = self._known(name)
        if _is_pair(value):
            low, high = (number(v) for v in sorted(max(0.0, float(v)) for v in value))
            self.found.append(Step(f"random_brightness: {{factor: [{low}, {high}]}}"))
            message = f"`{name}` truncated values to integers, and before Keras 2.9 stretched images to 0..255; the step multiplies"
            self._say("PG623", name, message)
        elif value is not None:
            self._say("PG630", name, f"`brightness_range={value!r}` is not a pair, which Keras rejects, too", "it is left out")

    def _statistics(self) -> None:
        """Writes means and standard deviations, each image's own first, as in Keras."""
        own_scale = self._truth("samplewise_std_normalization")
        if self._truth("samplewise_center") or own_scale:
            self.found.append(Step(f"standardize: {{statistics: samplewise{'' if own_scale else ', scale: false'}}}"))
        whiten = self._truth("zca_whitening")
        scale = self._truth("featurewise_std_normalization") and not whiten
        centre = self._truth("featurewise_center") or self._truth("featurewise_std_normalization") or whiten
        if centre and self.fitted:
            text = self._whitening() if whiten else None
            self.found.append(Step(text or f"standardize: {{statistics: featurewise{'' if scale else ', scale: false'}}}"))
            message = "`fit` computed its statistics on its array; the step is fitted to the training split"
            help_ = "the statistics include `preprocessing_function` and the steps before it"
            self.findings.add("PG623", self.generator.line, message, help_)
        self._known("data_format")
        dtype = self.generator.known("dtype")
        if isinstance(dtype, Unknown) or dtype not in (None, "float32", "float16"):
            self._say("PG610", "dtype", "`dtype` is not known, or not a dtype of a model's input", "the spec gives float32")

    def _whitening(self) -> str | None:
        if self.size is not None and self.size[0] * self.size[1] * self.channels > LARGEST:
            side = math.isqrt(LARGEST // self.channels)
            message = f"`zca_whitening` of images of {self.size[0]}×{self.size[1]} needs a matrix too large for memory"
            self._say("PG630", "zca_whitening", message, f"the spec only centres the images: `whiten` supports up to {side}×{side}")
            return None
        epsilon = self._number("zca_epsilon")
        message = "`zca_epsilon` was added to singular values; the step adds it to variances. With many examples, the results are similar"
        self._say("PG623", "zca_whitening", message)
        return f"whiten: {{center: channel{f', epsilon: {number(epsilon)}' if epsilon and 0 < epsilon <= 1 and epsilon != 1e-6 else ''}}}"

    # Arguments

    def _say(self, code: str, name: str, message: str, help: str = "") -> Finding:
        return self.findings.add(code, self.generator.line_of(name), message, help)

    def _number(self, name: str) -> float | None:
        """A given, non-zero number; reports any other value."""
        value = self._known(name)
        if is_number(value) and math.isfinite(value):
            return float(value) or None
        if value not in (None, False):
            self._say("PG610", name, f"`{name}={value!r}` is not a number", "it is left out of the spec")
        return None

    def _amount(self, name: str) -> str:
        """An absolute number; empty for zero."""
        value = self._number(name)
        return "" if value is None else number(abs(value))

    def _truth(self, name: str) -> bool:
        given = self.generator.argument(name)
        of_library = isinstance(given, Dotted) and (is_keras(given.name) or given.name.split(".")[0] in _LIBRARIES)
        return of_library or isinstance(given, (Class, Local)) or bool(self._known(name))  # a function or a class is true

    def _known(self, name: str, default: Any = None) -> Any:
        """Python value of an argument; `default` if it is not given, and for an unknown one, which is reported."""
        value = self.generator.known(name, default)
        if not isinstance(value, Unknown):
            return value
        line = value.line or self.generator.line_of(name)
        self.findings.add("PG610", line, f"`{name}` is not known: {value.reason}", "add its step by hand")
        return default


def _is_pair(value: object) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 2 and all(isinstance(v, (int, float)) for v in value)


def number(value: float) -> str:
    """A number in YAML, with at most twelve digits."""
    if value == int(value) and abs(value) < 1e9:
        return str(int(value))
    text = f"{value:.12g}"
    return text if len(text) < 8 else f"{value:.6g}" if "e" not in f"{value:.6g}" and abs(value) >= 0.01 else repr(value)


def augments(generator: Generator) -> bool:
    """True if a generator has random changes, as far as known."""
    return any(generator.known(name) for name in RANDOM)


def permission(generator: Generator | Unknown) -> str:
    """Argument of `build` that permits the imported `preprocessing_function` of a generator, if it has one; else empty."""
    value = generator.argument("preprocessing_function") if isinstance(generator, Generator) else None
    called = python_function(value) if value is not None and preset_of(value) is None else ""
    return f', allow_code=["{re.split("[.:]", called)[0]}"]' if called else ""


def function_step(value: Value, line: int, findings: Findings) -> Step | None:
    """Step that does the same as a preprocessing function; `None`, with a finding, if there is none."""
    preset = preset_of(value)
    if preset is not None:
        return Step(f"normalize: {{preset: {preset}}}")
    if isinstance(value, Local):
        if (called := _only_calls(value)) is not None:
            return function_step(called, line, findings)
        result, argument = _result(value)
        scale, offset = (_form(result, argument) if result is not None and argument is not None else None) or (0.0, 0.0)
        if scale != 0:
            return Step(f"rescale: {{scale: {number(scale)}{f', offset: {number(offset)}' if offset else ''}}}")
    if importable := python_function(value):
        name = importable.replace(":", ".")
        message = f"`{name}` is called by a `python` step: it gives float32 of the same shape, and the same for the same image"
        help_ = "a function that draws random numbers takes a generator as well: `random_python`, see `pipegen ops random_python`"
        findings.add("PG621", line, message, help_)
        return Step(f"python: {{function: {importable}}}")
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
    given, callee = result.args[0], result.func
    if not isinstance(given, ast.Name) or given.id != argument or not all(isinstance(n, _NAMING) for n in ast.walk(callee)):
        return None
    root = root_name(callee)
    bound = function.frame.module.scope.bindings.get(root, [])  # imported at the top of the file
    return Dotted(bound[0].dotted + ast.unparse(callee)[len(root) :]) if len(bound) == 1 and bound[0].kind == "import" else None


def _result(function: Local) -> tuple[ast.expr | None, str | None]:
    """The single expression that a function returns, and the name of its argument."""
    node = function.node
    if len(node.args.args) != 1:
        return None, None
    argument = node.args.args[0].arg
    if isinstance(node, ast.Lambda):
        return node.body, argument
    body = [s for s in flattened(node.body) if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    return (body[0].value, argument) if len(body) == 1 and isinstance(body[0], ast.Return) else (None, None)


def _form(node: ast.expr, x: str) -> tuple[float, float] | None:
    """Scale and offset of an expression that is linear in a variable."""
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
