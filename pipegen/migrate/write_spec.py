"""Text of a spec for a group of iterators, with its params, and of the call of `pipegen.build` that stands for the group."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from pipegen.migrate.calls import form_of, hold_table_numbers
from pipegen.migrate.edits import Edits
from pipegen.migrate.evaluate import Evaluator
from pipegen.migrate.findings import Findings
from pipegen.migrate.groups import WITHOUT_CLASSES, Group, Written, class_mode, folder_below, names_folders, weighted
from pipegen.migrate.homes import array_stands, of_function, stands
from pipegen.migrate.nodes import Row
from pipegen.migrate.sources import Sources
from pipegen.migrate.steps import RANDOM, Params, Step, Steps, grouped, permission
from pipegen.migrate.values import Argument, Flow, Generator, Seq, Table, Unknown, origins_of, plain

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
    params: Params = field(default_factory=Params)

    def text(self) -> str:
        """The spec."""
        source = Sources(self.group, self.findings, self.params).lines()
        steps, batch, order = self._steps(), self._batch(), self._order()
        report_settings(self.group, self.params, self.findings)
        file = self.file if self.file.isprintable() else ascii(self.file)  # a control character would end the comment
        lines = [
            "# yaml-language-server: $schema=pipegen.schema.json",
            f"# Written by `pipegen migrate {file}`. Paths are relative to this file.",
            "pipegen: 1",
            "params:",
            *(f"  {name}: {text}" for name, text in self.params.texts.items()),
            *source,
            *(["transforms:", *(f"  - {s.text}" + (f"  # {s.comment}" if s.comment else "") for s in steps)] if steps else []),
            *order,
            f"batch: {{size: {batch}{', remainder: keep' if self.group.drawn else ''}}}",
            *self._output(),
        ]
        return "\n".join(lines) + "\n"

    def _steps(self) -> list[Step]:
        flow = self.group.first
        for split, each in self.group.parts.items():
            self._report_arguments(split, each)
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
        writer = Steps(generator, size, self.group.method != "flow", self.findings, id(generator) in self.fitted, channels)
        if "train" in self.group.parts:
            writer.augmentation()
        writer.values()
        return steps + writer.found

    def _report_unpacked(self, thing: Generator | Flow) -> None:
        argument = thing.args["**"]
        reason = argument.value.reason if isinstance(argument.value, Unknown) else "it is not a dict"
        self.findings.add("PG610", argument.node.lineno, f"the unpacked arguments are not known: {reason}", "add them by hand")

    def _report_arguments(self, split: str, flow: Flow) -> None:
        """Reports unknown arguments of an iterator that are not reported elsewhere, and those that the spec has for every split alike, or
        not at all."""
        if "**" in flow.args:
            self._report_unpacked(flow)
        for name, default in _DEFAULTS.items():
            value = flow.known(name)
            if isinstance(value, Unknown):
                message = f"`{name}` of the {split} data is not known: {value.reason}"
                self.findings.add("PG610", flow.line_of(name), message, f"the spec assumes {default}: check if that is right")
        first = self.group.first
        every = f"the spec has that of line {first.line} for every split"
        for name, usual in (("color_mode", "rgb"), ("interpolation", "nearest"), ("keep_aspect_ratio", False)):
            if flow.get(name, usual) != first.get(name, usual):
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
        square = is_square(flow)
        names = ["size"] if square else ["height", "width"]
        size = self._size(flow, names)
        method = _METHODS.get(str(flow.get("interpolation", "nearest")))
        if method is None:
            self.findings.add("PG630", flow.line_of("interpolation"), "this `interpolation` is unknown", "the spec has bilinear")
            method = "bilinear"
        if flow.get("interpolation") == "hamming":
            self.findings.add("PG623", flow.line, "`interpolation='hamming'` becomes `bilinear` with antialiasing")
        smooth = ", antialias: true" if method in ("bilinear", "bicubic", "lanczos3") else ""
        crop = ", mode: crop" if flow.get("keep_aspect_ratio") else ""
        shown = "$size" if square else "[$height, $width]"
        for name, side in zip(names, size, strict=False):
            self.params.texts[name] = f"{{type: int, default: {side}, min: 1}}"
        default = method == "nearest" and "interpolation" not in flow.args
        comment = "Keras' default; `bilinear` with `antialias: true` looks better" if default else ""
        steps.append(Step(f"resize: {{size: {shown}{crop}, method: {method}{smooth}}}", comment))
        return size, steps

    def _size(self, flow: Flow, names: list[str]) -> tuple[int, int]:
        value = flow.known("target_size", (256, 256))
        if isinstance(value, (list, tuple)) and len(value) >= 2 and all(isinstance(v, int) and 1 <= v <= 32767 for v in value[:2]):
            others = {str(other.get("target_size", (256, 256))) for other in self.group.parts.values()}
            if len(others) > 1:
                self.findings.add("PG623", flow.line, "the splits have different `target_size`; the spec has the training data's")
            return int(value[0]), int(value[1])
        reason = value.reason if isinstance(value, Unknown) else f"{value!r} is not a pair of integers"
        help_ = "the spec has 224 by 224: put the size there"
        said = self.findings.add("PG610", flow.line_of("target_size"), f"`target_size` is not known: {reason}", help_)
        self.params.told += [(said, names)] if isinstance(value, Unknown) else []
        return 224, 224

    def _order(self) -> list[str]:
        lines, train, seeded = [], self.group.parts.get("train"), seeded_flow(self.group)
        if seeded is not None and origins_of(seeded.argument("seed")):
            self.params.texts["seed"] = f"{{type: int, default: {seeded.get('seed')}, min: 0}}"
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
            said = self.findings.add("PG610", flow.line_of("batch_size"), f"`batch_size` is not known: {reason}", help_)
            self.params.told += [(said, ["batch"])] if isinstance(value, Unknown) else []
            value = 32
        for split, other in self.group.parts.items():
            size = other.get("batch_size", 32)
            if other is not flow and size != value:
                message = f"the {split} data had batches of {size}; the spec has one size, {value}"
                self.findings.add("PG622", other.line, message, "metrics and predictions do not depend on it")
        if "train" in self.group.parts and not self.group.drawn:
            message = "an incomplete last batch of a training epoch is dropped"
            self.findings.add("PG622", flow.line, message, "`batch: {remainder: keep}` keeps it; evaluation keeps it always")
        self.params.texts["batch"] = f"{{type: int, default: {value}, min: 1}}"
        return "$batch"

    def _output(self) -> list[str]:
        mode = class_mode(self.group.first)
        labels, classes = Sources(self.group).labelled(), self.group.first.get("classes")
        lines = []
        if mode in ("input", "input_image"):
            lines.append("x: image, y: image")
        elif self.group.pairs:
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


def report_settings(group: Group, params: Params, findings: Findings) -> None:
    """Reports the default of each argument that may change at run time, and its place in the spec."""
    told: set[tuple[str, ...]] = set()
    things: dict[int, Flow | Generator] = {id(f): f for f in group.flows}
    things.update({id(f.generator): f.generator for f in group.flows if isinstance(f.generator, Generator)})
    for thing in things.values():
        for name, argument in thing.args.items():
            origins = origins_of(argument.value)
            here = params_of(group, thing, name, params) if isinstance(thing, Flow) else []
            key = (name, *origins, *(here if name in ("directory", "dataframe") else ()))
            if not origins or key in told or name in _UNWRITTEN:
                continue
            told.add(key)
            known = argument.value.path if isinstance(argument.value, Table) else plain(argument.value)
            shown = "known" if isinstance(known, Unknown) else repr(str(known) if isinstance(known, str) else known)
            message = f"`{name}` is {shown} unless {' or '.join(origins)} says otherwise"
            said = findings.add("PG613", argument.node.lineno, message, _help(group, thing, name, here))
            params.told += [(said, here)] if here else []


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


def params_of(group: Group, flow: Flow, argument: str, params: Params) -> list[str]:
    """Params of a spec that hold an argument of one of its iterators."""
    masks = {split: pair.mask for split, pair in group.pairs.items()}
    split = next((s for s, f in (*group.parts.items(), *masks.items()) if f is flow), "")
    what = "masks" if flow in masks.values() else "images"
    folders = [what, f"{split}_{what}"] if group.pairs or flow.method == "flow_from_dataframe" else ["data", split]
    names = {"directory": folders, "dataframe": ["table", f"{split}_table"]}
    if flow is seeded_flow(group):
        names["seed"] = ["seed"]
    if flow is group.first:
        names.update(target_size=["size", "height", "width"], batch_size=["batch"])
    return [name for name in names.get(argument, ()) if name in params.texts]


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


@dataclass
class BuildCall:
    """Writes the call for one spec."""

    written: Written
    evaluator: Evaluator
    edits: Edits
    findings: Findings
    home: ast.stmt  # the statement that the call comes before
    left_out: list[Flow]  # iterators that the spec does not read
    problem: str = field(init=False, default="")  # reason why there is no call

    def text(self) -> str | None:
        """The call; `None`, with `problem` set, if the form or place of the arrays is uncertain."""
        data = self._data()
        if data is None:
            return None
        return f"pipegen.build({_quoted(self.written.file)}{self._params()}{data}{permission(self.written.group.first.generator)})"

    def _data(self) -> str | None:
        """Arrays and tables of the code; `None` if their form or place is uncertain."""
        group = self.written.group
        sources = Sources(group)
        parts = {}
        for split, flow in group.parts.items():
            if flow.method != "flow" and not sources.in_memory(flow):
                continue
            given = self._arrays(flow) if flow.method == "flow" else self._table(flow)
            if given is None:
                return None
            parts[split] = given
        if parts and sources.is_whole() and len(set(parts.values())) == 1:
            return f", data={next(iter(parts.values()))}"
        return ", data={" + ", ".join(f'"{split}": {given}' for split, given in parts.items()) + "}" if parts else ""

    def _table(self, flow: Flow) -> str | None:
        self.problem = "its table may not be a DataFrame"
        if "dataframe" not in flow.args or "**" in flow.args:
            return None
        node = flow.args["dataframe"].node
        if array_stands(self.evaluator, node, flow, self.home):
            return self.edits.source(node)
        self._missing(flow, "table")
        return None

    def _missing(self, flow: Flow, what: str) -> None:
        verb = "does" if what == "table" else "do"
        self.problem = f"the {what} of line {flow.line} {verb} not exist or may differ before line {self.home.lineno}"

    def _arrays(self, flow: Flow) -> str | None:
        self.problem = "its arrays are not separate arguments"
        if "x" not in flow.args or isinstance(flow.argument("x"), Seq) or "**" in flow.args:
            return None
        arrays = [flow.args[name].node for name in ("x", "y", "sample_weight") if name in flow.args]
        if not all(array_stands(self.evaluator, node, flow, self.home) for node in arrays):
            self._missing(flow, "arrays")
            return None
        node = flow.args["x"].node
        image = f'"image": {self.edits.source(node)}'
        if hold_table_numbers(self.evaluator, node, flow.frame):  # integers from a table are cast, as Keras did
            image = f'"image": {grouped(node, self.edits.source(node))}.astype("float32")'
        if flow.known("y") is None:
            return f"{{{image}}}"
        label, value = self.edits.source(flow.args["y"].node), flow.argument("y")
        name = Sources(self.written.group).given_labels()
        if name == "label" and form_of(value) == "one-hot":
            label = f"{grouped(flow.args['y'].node, label)}.argmax(axis=1)"
        weight = f', "weight": {self.edits.source(flow.args["sample_weight"].node)}' if weighted(flow) else ""
        return f'{{{image}, "{name}": {label}{weight}}}'

    def _params(self) -> str:
        """Params that are known only at run time, or may change then, if their expression is valid here."""
        given: dict[str, str] = {}
        flows = [flow for flow in self.written.group.flows if flow not in self.left_out]
        paths, numbers = (p for f in flows for p in self._paths(f)), (n for f in flows for n in self._numbers(f))
        for name, text in (*paths, *numbers):
            given.setdefault(name, text)
        self._report_lost(given)
        self._note(given)
        return ", params={" + ", ".join(f'"{name}": {text}' for name, text in given.items()) + "}" if given else ""

    def _report_lost(self, given: dict[str, str]) -> None:
        """Reports values that may change at run time and are not passed on."""
        group = self.written.group
        for flow in group.flows:
            for name, argument in flow.args.items():
                lost = [p for p in params_of(group, flow, name, self.written.params) if p not in given]
                if lost and origins_of(argument.value) and flow not in self.left_out:
                    self._lost(lost[0], argument)

    def _lost(self, param: str, argument: Argument) -> None:
        message = f"`{argument.name}` is not passed on: its expression has another value, or none, in line {self.home.lineno}"
        self.findings.add("PG615", argument.line, message, f'add it to the call of `build`: `params={{"{param}": …}}`')

    def _note(self, given: dict[str, str]) -> None:
        """Notes, for each value that is unknown or may change, that the call passes it."""
        for finding, params in self.written.params.told:
            if all(param in given for param in params):
                default = "the spec alone has this default" if finding.code == "PG613" else finding.help
                help_ = default.replace("the spec has", "the spec alone has").replace("put the", "put the usual")
                self.findings.exchange(finding, f"the call of `build` gives it; {help_}")

    def _paths(self, flow: Flow) -> Iterator[tuple[str, str]]:
        group, declared = self.written.group, self.written.params
        for param in params_of(group, flow, "directory", declared):
            text = self._text(flow, "directory") if self._varies(flow, "directory") else ""
            below = folder_below(flow) if group.pairs else ""
            if text:
                yield param, f"os.path.join({text}, {below!r})" if below else text
        table = flow.argument("dataframe")
        if isinstance(table, Table) and table.named is not None and origins_of(self.evaluator.value(*table.named)):
            node, frame = table.named
            for param in params_of(group, flow, "dataframe", declared):
                if of_function(frame) is of_function(flow.frame) and stands(self.evaluator, node, frame, self.home):
                    yield param, self.edits.source(node)

    def _numbers(self, flow: Flow) -> Iterator[tuple[str, str]]:
        for argument in ("target_size", "batch_size", "seed"):
            names = params_of(self.written.group, flow, argument, self.written.params)
            if names and self._varies(flow, argument):
                texts = self._sides(flow, names) if argument == "target_size" else [(names[0], self._text(flow, argument))]
                yield from ((name, text) for name, text in texts if text)

    def _sides(self, flow: Flow, names: list[str]) -> list[tuple[str, str]]:
        """Height and width, or the one side."""
        node = flow.args["target_size"].node
        side = sides(flow)
        if names == ["size"] and side is not None:
            return [("size", self._standing(side, flow))]
        if isinstance(node, Row):
            pairs = zip(names, node.elts, strict=False) if len(names) == 2 else ()
            return [(name, self._standing(part, flow)) for name, part in pairs]
        named = isinstance(flow.argument("target_size"), Seq) or (len(names) == 2 and not isinstance(node, ast.Constant))
        text = self._text(flow, "target_size") if named else ""
        return [(name, f"{text}[{i}]" if text else "") for i, name in enumerate(names)]

    def _text(self, flow: Flow, argument: str) -> str:
        """An argument as an expression that is valid before the call; empty if there is none."""
        given = flow.args[argument]
        if given.unpacked and not isinstance(given.node, (ast.Name, ast.Attribute)):
            return ""
        text = self._standing(given.node, flow)
        return f'{text}["{argument}"]' if text and given.unpacked else text

    def _standing(self, node: ast.expr, flow: Flow) -> str:
        """Text of an expression that is valid before the call; else empty."""
        return self.edits.source(node) if stands(self.evaluator, node, flow.frame, self.home) else ""

    def _varies(self, flow: Flow, argument: str) -> bool:
        """True if an argument is unknown or may change at run time."""
        value = flow.argument(argument)
        return argument in flow.args and (isinstance(plain(value), Unknown) or bool(origins_of(value)))


def hint(written: Written) -> str:
    """The call, as far as it is known without the surrounding code."""
    group = written.group
    sources = Sources(group)
    given = sources.given_labels()
    split, flow = next(iter(group.parts.items()))
    x, y, table = (_named(flow, argument, name) for argument, name in (("x", "x"), ("y", "y"), ("dataframe", "df")))
    inner = f'{{"image": {x}, "{given}": {y}}}' if given else f'{{"image": {x}}}'
    tables = any(sources.in_memory(flow) for flow in group.parts.values())
    inner = table if tables else inner
    several = f', data={{"{split}": {inner}' + (", …}" if len(group.parts) > 1 else "}")
    data = "" if group.method != "flow" and not tables else f", data={inner}" if sources.is_whole() else several
    return f"pipegen.build({_quoted(written.file)}{data}{permission(group.first.generator)})"


def _named(flow: Flow, argument: str, name: str) -> str:
    """The name that the code gives as an argument; else the one in `name`, which stands for an expression."""
    given = flow.args.get(argument)
    return given.node.id if given is not None and not given.unpacked and isinstance(given.node, ast.Name) else name


def _quoted(name: str) -> str:
    """A file's name as a Python literal."""
    return json.dumps(name, ensure_ascii=not name.isprintable())
