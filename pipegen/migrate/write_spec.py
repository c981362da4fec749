"""Text of a spec for a group of iterators; its params, and remarks about those that the command line or the environment may change."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from pipegen.migrate.findings import Findings
from pipegen.migrate.groups import Group
from pipegen.migrate.known import origins_of, reason_of
from pipegen.migrate.labels import WITHOUT_CLASSES, class_mode, names_folders, weighted
from pipegen.migrate.nodes import Row
from pipegen.migrate.sources import Sources
from pipegen.migrate.steps import RANDOM, Knob, Knobs, Step, Steps
from pipegen.migrate.values import Flow, Generator, Seq, Table, Unknown, plain

_METHODS = {
    "nearest": "nearest", "bilinear": "bilinear", "bicubic": "bicubic", "lanczos": "lanczos3", "box": "area", "hamming": "bilinear",
}  # fmt: skip
_DEFAULTS = {
    "class_mode": "`categorical`", "color_mode": "`rgb`", "shuffle": "true", "seed": "0", "subset": "all of the data",
    "follow_links": "false", "interpolation": "`nearest`", "keep_aspect_ratio": "false",
}  # fmt: skip
"""Text in the spec for unknown arguments of an iterator."""
_ENCODINGS = {"categorical": "one_hot", "binary": "binary"}


@dataclass
class Writer:
    """Writes one spec."""

    group: Group
    file: str  # name of the script, for comments
    findings: Findings
    fitted: frozenset[int] = frozenset()  # ids of the generators on which `fit` is called
    params: dict[str, str] = field(default_factory=dict)
    knobs: Knobs = field(init=False)

    def __post_init__(self) -> None:
        self.knobs = Knobs(self.params)

    def text(self) -> str:
        """The spec."""
        source = Sources(self.group, self.findings, self.params, self.knobs).lines()
        steps, batch, order = self._steps(), self._batch(), self._order()
        report_settings(self.group, tuple(self.params), tuple(self.knobs.found), self.findings)
        file = self.file if self.file.isprintable() else ascii(self.file)  # a control character would end the comment
        lines = [
            "# yaml-language-server: $schema=pipegen.schema.json",
            f"# Written by `pipegen migrate {file}`. Paths are relative to this file.",
            "pipegen: 1",
            "params:",
            *(f"  {name}: {text}" for name, text in self.params.items()),
            *source,
            *(["transforms:", *(f"  - {s.text}" + (f"  # {s.comment}" if s.comment else "") for s in steps)] if steps else []),
            *order,
            f"batch: {{size: {batch}{', remainder: keep' if self.group.drawn else ''}}}",
            *self._output(),
        ]
        if not self.params:
            lines.remove("params:")
        return "\n".join(lines) + "\n"

    def _steps(self) -> list[Step]:
        flow = self.group.first
        for split, each in self.group.parts.items():
            self._report_unknown(split, each)
            self._report_differences(split, each)
        size, steps = self._resize(flow)
        generator = flow.generator
        if not isinstance(generator, Generator):
            message = f"the generator of `{flow.method}` is not known: {generator.reason}"
            self.findings.add("PG612", flow.line, message, "add its steps by hand")
            return steps
        if "**" in generator.args:
            self._report_unpacked(generator)
        if generator.classes:
            methods = ", ".join(dict.fromkeys(f"`{m.name}`" for c in generator.classes for m in c.body if hasattr(m, "name")))
            own = f" with {methods} of its own" if methods else ""
            message = f"`{generator.classes[0].name}` is a subclass of ImageDataGenerator{own}"
            self.findings.add("PG612", generator.line, message, "the spec has only its constructor's arguments")
        channels = 1 if flow.get("color_mode") == "grayscale" else 3
        writer = Steps(generator, size, self.group.method != "flow", self.findings, id(generator) in self.fitted, channels, self.knobs)
        if "train" in self.group.parts:
            steps += writer.augmentation()
        return steps + writer.values()

    def _report_unpacked(self, thing: Generator | Flow) -> None:
        argument = thing.args["**"]
        reason = argument.value.reason if isinstance(argument.value, Unknown) else "it is not a dict"
        self.findings.add("PG610", argument.node.lineno, f"the unpacked arguments are not known: {reason}", "add them by hand")

    def _report_unknown(self, split: str, flow: Flow) -> None:
        """Reports unknown arguments of an iterator that are not reported elsewhere."""
        if "**" in flow.args:
            self._report_unpacked(flow)
        for name, default in _DEFAULTS.items():
            value = flow.known(name)
            if isinstance(value, Unknown):
                message = f"`{name}` of the {split} data is not known: {reason_of(value)}"
                self.findings.add("PG610", flow.line_of(name), message, f"the spec assumes {default}: check if that is right")

    def _report_differences(self, split: str, flow: Flow) -> None:
        """Reports arguments that the spec has for every split alike, or not at all."""
        first = self.group.first
        every = f"the spec has that of line {first.line} for every split"
        for name, default in (("color_mode", "rgb"), ("interpolation", "nearest"), ("keep_aspect_ratio", False)):
            if flow.get(name, default) != first.get(name, default):
                self.findings.add("PG623", flow.line, f"the {split} data has another `{name}`; {every}")
        if class_mode(flow) != class_mode(first) and flow.method != "flow" and flow not in Sources(self.group).left_out():
            self.findings.add("PG624", flow.line, f"the {split} data has another `class_mode`; {every}")
        if flow.method == "flow_from_dataframe" and flow.get("validate_filenames", True):
            message = f"Keras dropped rows of the {split} table without an image, with a warning; now they are an error"
            self.findings.add("PG620", flow.line, message, "`errors: {missing: drop}` drops them with a warning, as before")
        if flow.get("save_to_dir") is not None:
            message = "`save_to_dir` is left out: no images are written while the model trains"
            help_ = "`pipegen export` writes augmented images with their random numbers"
            self.findings.add("PG630", flow.line_of("save_to_dir"), message, help_)

    def _resize(self, flow: Flow) -> tuple[tuple[int, int] | None, list[Step]]:
        if self.group.method == "flow":
            return None, []
        steps, mode = [], flow.get("color_mode", "rgb")
        if mode in ("grayscale", "rgba"):
            steps.append(Step(f"decode: {{channels: {1 if mode == 'grayscale' else 4}}}"))
        elif mode != "rgb":
            message, help_ = f"`color_mode={mode!r}` has no equivalent yet", "the spec gives three channels"
            self.findings.add("PG630", flow.line_of("color_mode"), message, help_)
        message = "a JPEG is rotated upright by its EXIF orientation, which Keras ignored"
        self.findings.add("PG623", flow.line, message, "`- decode: {exif: ignore}` as the first step also ignores it")
        size = self._size(flow)
        method = _METHODS.get(str(flow.get("interpolation", "nearest")))
        if method is None:
            self.findings.add("PG630", flow.line_of("interpolation"), "this `interpolation` is unknown", "the spec has bilinear")
            method = "bilinear"
        if flow.get("interpolation") == "hamming":
            self.findings.add("PG623", flow.line, "`interpolation='hamming'` becomes `bilinear` with antialiasing")
        smooth = ", antialias: true" if method in ("bilinear", "bicubic", "lanczos3") else ""
        crop = ", mode: crop" if flow.get("keep_aspect_ratio") else ""
        square = is_square(flow)
        shown = "$size" if square else "[$height, $width]"
        for name, side in (("size", size[0]),) if square else (("height", size[0]), ("width", size[1])):
            self.params[name] = f"{{type: int, default: {side}, min: 1}}"
        default = method == "nearest" and "interpolation" not in flow.args
        comment = "Keras' default; `bilinear` with `antialias: true` looks better" if default else ""
        steps.append(Step(f"resize: {{size: {shown}{crop}, method: {method}{smooth}}}", comment))
        return size, steps

    def _size(self, flow: Flow) -> tuple[int, int]:
        value = flow.known("target_size", (256, 256))
        if isinstance(value, (list, tuple)) and len(value) >= 2 and all(isinstance(v, int) and 1 <= v <= 32767 for v in value[:2]):
            others = {str(other.get("target_size", (256, 256))) for other in self.group.parts.values()}
            if len(others) > 1:
                self.findings.add("PG623", flow.line, "the splits have different `target_size`; the spec has the training data's")
            return int(value[0]), int(value[1])
        reason = value.reason if isinstance(value, Unknown) else f"{value!r} is not a pair of integers"
        help_ = "the spec has 224 by 224: put the size there"
        self.findings.add("PG610", flow.line_of("target_size"), f"`target_size` is not known: {reason}", help_)
        return 224, 224

    def _order(self) -> list[str]:
        lines, train, seeded = [], self.group.parts.get("train"), seeded_flow(self.group)
        if seeded is not None and origins_of(seeded.argument("seed")):
            self.params["seed"] = f"{{type: int, default: {seeded.get('seed')}, min: 0}}"
            lines.append("seed: $seed")
        elif seeded is not None:
            lines.append(f"seed: {seeded.get('seed')}")
        if train is not None and train.get("shuffle", True) in (False, 0):
            lines.append("shuffle: none")
        return lines

    def _batch(self) -> str:
        flow = self.group.first
        value = flow.known("batch_size", 32)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            reason = value.reason if isinstance(value, Unknown) else f"{value!r} is not a size"
            help_ = "the spec has 32: put the size there"
            self.findings.add("PG610", flow.line_of("batch_size"), f"`batch_size` is not known: {reason}", help_)
            value = 32
        for split, other in self.group.parts.items():
            size = other.get("batch_size", 32)
            if other is not flow and size != value:
                message = f"the {split} data had batches of {size}; the spec has one size, {value}"
                self.findings.add("PG622", other.line, message, "metrics and predictions do not depend on it")
        if "train" in self.group.parts and not self.group.drawn:
            message = "an incomplete last batch of a training epoch is dropped"
            self.findings.add("PG622", flow.line, message, "`batch: {remainder: keep}` keeps it; evaluation keeps it always")
        self.params["batch"] = f"{{type: int, default: {value}, min: 1}}"
        return "$batch"

    def _output(self) -> list[str]:
        mode = class_mode(self.group.first)
        labels, classes = Sources(self.group).labelled(), self.group.first.get("classes")
        lines = []
        if mode in ("input", "input_image"):
            lines.append("x: image, y: image")
        elif self.group.masks:
            lines.append("x: image, y: mask")
        elif mode is None and any(names_folders(flow) for flow in self.group.parts.values()):
            lines.append("x: image, y: null")  # the folders are classes of the source, which the model does not receive
        elif labels and mode == "binary" and isinstance(classes, (list, tuple)) and len(classes) > 2:
            message = "`class_mode='binary'` of more than two classes gave their indices as floats; the spec gives integers"
            self.findings.add("PG624", self.group.first.line, message, "use the loss `sparse_categorical_crossentropy`")
        elif labels and isinstance(mode, str) and mode in _ENCODINGS:
            lines.append(f"encode: {{label: {_ENCODINGS[mode]}}}")
        elif self.group.method == "flow" and Sources(self.group).given_labels() == "target":
            lines.append("y: target")
        elif mode in WITHOUT_CLASSES:
            columns = self.group.first.get("y_col", "class")
            count = len(columns) if isinstance(columns, (list, tuple)) else 1
            lines.append(f"y: [{', '.join(f'target_{i + 1}' for i in range(count))}]" if mode == "multi_output" else "y: target")
        if weighted(self.group.first):
            lines.append("sample_weight: weight")
        generator = self.group.first.generator
        if isinstance(generator, Generator) and generator.get("data_format") == "channels_first":
            lines.append("channels: first")
        if isinstance(generator, Generator) and generator.get("dtype") == "float16":
            lines.append("dtype: float16")
        return [f"output: {{{', '.join(lines)}}}"] if lines else []


_ONCE = ("batch_size", "target_size", "seed", "color_mode", "interpolation", "keep_aspect_ratio", "class_mode")
"""Arguments of iterators that a spec has once for all splits."""
_UNWRITTEN = ("save_to_dir", "save_prefix", "save_format", "validate_filenames", "ignore_class_split")
"""Arguments of iterators that have no form in a spec."""


def report_settings(group: Group, params: tuple[str, ...], knobs: tuple[Knob, ...], findings: Findings) -> None:
    """Reports the default of each argument that may change at run time, and its place in the spec."""
    told: set[tuple[str, ...]] = set()
    things: dict[int, Flow | Generator] = {id(f): f for f in group.flows}
    things.update({id(f.generator): f.generator for f in group.flows if isinstance(f.generator, Generator)})
    for thing in things.values():
        for name, argument in thing.args.items():
            origins = origins_of(argument.value)
            own = [knob.param for knob in knobs if knob.argument == name and thing is group.first.generator]
            here = params_of(group, thing, name, params) if isinstance(thing, Flow) else own
            key = (name, *origins, *(here if name in ("directory", "dataframe") else ()))
            if not origins or key in told or name in _UNWRITTEN:
                continue
            told.add(key)
            known = argument.value.path if isinstance(argument.value, Table) else plain(argument.value)
            shown = "known" if isinstance(known, Unknown) else repr(str(known) if isinstance(known, str) else known)
            message = f"`{name}` is {shown} unless {' or '.join(origins)} says otherwise"
            findings.add("PG613", argument.node.lineno, message, _help(group, thing, name, here))


def _help(group: Group, thing: Flow | Generator, name: str, here: list[str]) -> str:
    """Place of an argument in the spec, or what replaces it there."""
    if here:
        given = ", ".join(f'"{param}": …' for param in here)
        return f"the spec has it as the default of `{'` and `'.join(here)}`: `params={{{given}}}` gives another"
    own = thing is group.first or thing is group.first.generator
    if not own and isinstance(thing, Generator) and name in RANDOM:
        return "the spec augments the training split only, so it does not have this value"
    if not own and (isinstance(thing, Generator) or name in _ONCE):
        model = group.first.generator if isinstance(thing, Generator) and isinstance(group.first.generator, Generator) else group.first
        return f"the spec has one value for every split, that of line {model.line}"
    return "the spec has this value: if you run the code with another one, change it there"


def params_of(group: Group, flow: Flow, argument: str, params: tuple[str, ...]) -> list[str]:
    """Params of a spec that hold an argument of one of its iterators."""
    split = next((s for s, f in (*group.parts.items(), *group.masks.items()) if f is flow), "")
    if argument == "directory":
        what = "masks" if flow in group.masks.values() else "images"
        names = [what, f"{split}_{what}"] if group.masks or flow.method == "flow_from_dataframe" else ["data", split]
    elif argument == "dataframe":
        names = ["table", f"{split}_table"]
    elif argument == "seed":
        names = ["seed"] if flow is seeded_flow(group) else []
    elif flow is group.first:
        names = {"target_size": ["size", "height", "width"], "batch_size": ["batch"]}.get(argument, [])
    else:
        names = []
    return [name for name in names if name in params]


def seeded_flow(group: Group) -> Flow | None:
    """Iterator whose seed is the spec's."""
    seeds = ((flow, flow.get("seed")) for flow in group.parts.values())
    return next((flow for flow, seed in seeds if isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0), None)


def is_square(flow: Flow) -> bool:
    """True if the images of an iterator are square, whatever its options are at run time."""
    if "target_size" not in flow.args or sides(flow) is not None:
        return True
    argument = flow.args["target_size"]
    value, known = argument.value, plain(argument.value)
    if isinstance(known, Unknown):
        return isinstance(argument.node, Row) and len(argument.node.elts) != 2
    if not isinstance(known, (list, tuple)) or len(known) < 2 or known[0] != known[1]:
        return not isinstance(known, (list, tuple)) or len(known) < 2
    return not origins_of(value) or (isinstance(value, Seq) and value.items[0] is value.items[1])


def sides(flow: Flow) -> ast.expr | None:
    """Expression for both height and width, if there is one."""
    size = flow.args["target_size"].node if "target_size" in flow.args else None
    if not isinstance(size, Row) or len(size.elts) != 2 or ast.dump(size.elts[0]) != ast.dump(size.elts[1]):
        return None
    return size.elts[0]
