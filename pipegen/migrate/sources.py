"""The sections `source` and `splits` of a spec, from the data of each iterator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from pipegen.migrate.calls import form_of
from pipegen.migrate.findings import Findings
from pipegen.migrate.groups import UNLABELLED, WITHOUT_CLASSES, Group, all_in_one, class_mode, data_key, folder_of, takes_share, weighted
from pipegen.migrate.steps import Params, number
from pipegen.migrate.values import Flow, Generator, Share, Table, Unknown, is_number
from pipegen.spec.compose import flow_scalar

_KEY = "'([^/]+)[.][^./]+$'"  # pattern for the name of a file without folders and extension
_SUBSETS = {"train": "training", "validation": "validation"}


@dataclass
class Sources:
    """Writes the sections `source` and `splits` of a group, with params for paths and shares."""

    group: Group
    findings: Findings = field(default_factory=Findings)
    params: Params = field(default_factory=Params)

    def labelled(self) -> bool:
        """True if the first iterator has class labels."""
        flow = self.group.first
        if flow.method == "flow":
            return self.given_labels() == "label"
        return class_mode(flow) not in WITHOUT_CLASSES and self._has_labels(flow)

    def given_labels(self) -> str:
        """Kind of the second array of `flow`: `label` if its form is known, else `target`; empty without one."""
        flows = [flow for flow in self.group.parts.values() if flow.known("y") is not None]
        forms = {form_of(flow.argument("y")) for flow in flows}
        return "" if not flows else "label" if len(forms) == 1 and None not in forms else "target"

    def lines(self) -> list[str]:
        """The sections."""
        if self.group.pairs:
            return self._paired()
        if self._is_dealt():
            return self._dealt()
        source = f"source: {self._source(self.group.first, 'data')}" if self.is_whole() else ""
        if self.is_shared():
            which = "files of each class" if self.group.first.method == "flow_from_directory" else "rows"
            return [source, self._share_line(f"the first {which} are validation, as in Keras")]
        if source:
            return [source]
        self._report_shares()
        sources = {split: self._source(flow, split) for split, flow in self._readable().items()}
        return ["source:", "  by_split:", *(f"    {split}: {source}" for split, source in sources.items())]

    def is_whole(self) -> bool:
        """True if one source serves all parts, without `by_split`."""
        return self._is_dealt() or self.is_shared() or (self.labelled() and list(self._readable()) == ["train"])

    def in_memory(self, flow: Flow) -> str:
        """Reason why an iterator's table cannot be read from a file; empty if it can."""
        if flow.method != "flow_from_dataframe":
            return ""
        table = flow.argument("dataframe")
        if not isinstance(table, Table):
            return table.reason if isinstance(table, Unknown) and table.reason else "it does not come from a file"
        built = next((c for c in self._columns(flow) if c in table.changed), None)
        if built is not None:
            return f"code computes the column `{built}`"
        return "`train_test_split` selects its rows" if table.split is not None and not self._is_dealt() else ""

    def _columns(self, flow: Flow) -> list[str]:
        given = [flow.get("x_col", "filename"), flow.get("y_col", "class"), flow.get("weight_col")]
        return [c for each in given for c in (each if isinstance(each, (list, tuple)) else [each]) if isinstance(c, str)]

    def _readable(self) -> dict[str, Flow]:
        """Parts that one source can hold: all with labels like the first."""
        first = self.group.first
        bare = not self._has_labels(first)
        return {s: f for s, f in self.group.parts.items() if first.method == "flow" or (not self._has_labels(f)) == bare}

    def left_out(self) -> list[Flow]:
        """Iterators without labels beside labelled ones; they become `predict_on`."""
        kept = self._readable()
        return [flow for split, flow in self.group.parts.items() if split not in kept]

    def _report_shares(self) -> None:
        for flow in self.group.parts.values():
            if flow.get("subset") is not None and takes_share(flow):
                message = f"`subset={flow.get('subset')!r}` takes a share of the data, but the spec takes all of it"
                help_ = "move the files of this share into a folder of their own, and name it in the spec"
                self.findings.add("PG611", flow.line, message, help_)

    def _paired(self) -> list[str]:
        """Images and masks, paired by file name."""
        shared, splits = self.is_shared(), list(self.group.parts)
        if not shared:
            self._report_shares()
        alone = shared or len(splits) == 1
        texts = {split: self._pair(split, "" if alone else f"{split}_") for split in (splits[:1] if shared else splits)}
        if not shared:
            return ["source:", "  by_split:", *(f"    {split}: {text}" for split, text in texts.items())]
        message = "validation has the first of all files; Keras took the first files of each subfolder"
        self.findings.add("PG620", self.group.first.line, message, "with one subfolder, the files are the same")
        return [f"source: {next(iter(texts.values()))}", self._share_line("the first files are validation, as in Keras")]

    def _pair(self, split: str, prefix: str) -> str:
        flows = {"image": self.group.parts[split], "mask": self.group.pairs[split].mask}
        paths = [self._path(f"{prefix}{what}s", folder_of(flow), flow.line, "the folder") for what, flow in flows.items()]
        line = flows["mask"].line
        message = "masks hold class indices; Keras treated them as images, with interpolation and scaling"
        help_ = "add for example `values: {0: 0, 255: 1}` to the mask: the values in its files, and their classes"
        self.findings.add("PG623", line, message, help_)
        message = "images and masks are paired by file name; Keras paired them by order"
        self.findings.add("PG611", line, message, "if the names differ in more than the folder and the extension, change `key`")
        features = f"image: {{kind: image, path: {paths[0]}}}, mask: {{kind: mask, of: image, path: {paths[1]}}}"
        return f"{{files: {{key: {_KEY}, features: {{{features}}}}}}}"

    # Both subsets of the same data

    def _share_line(self, comment: str) -> str:
        """Section `splits` for `validation_split`."""
        train = self.group.first
        share = train.generator.get("validation_split") if isinstance(train.generator, Generator) else None
        if not is_number(share) or not 0 < share < 1:
            self.findings.add("PG610", train.line, "`validation_split` is not known", "the spec has 0.2: put the share there")
            share = 0.2
        parts = [number(round(1 - share, 10)), number(share)]
        return f"splits: {{method: keras, parts: {{train: {parts[0]}, validation: {parts[1]}}}}}  # {comment}"

    def _is_dealt(self) -> bool:
        """True if the parts are the two results of one `train_test_split`."""
        tables = [f.argument("dataframe") for f in self.group.parts.values()]
        if list(self.group.parts) != ["train", "validation"] or not all(isinstance(t, Table) for t in tables):
            return False
        train, validation = cast("list[Table]", tables)
        both = train.split is not None and train.split is validation.split and (train.part, validation.part) == ("train", "test")
        flows = self.group.parts.values()
        return both and not any(c in t.changed for f, t in zip(flows, (train, validation), strict=True) for c in self._columns(f))

    def is_shared(self) -> bool:
        """True if the parts are subsets of the same data, or the only part is a subset."""
        parts = self.group.parts
        if not all(flow.get("subset") == _SUBSETS.get(split, "") for split, flow in parts.items()):
            return False
        keys = [data_key(flow) for flow in parts.values()]
        return len(keys) == 1 or (keys[0] is not None and keys[0] == keys[1])

    def stray(self) -> Flow | None:
        """An iterator whose share of its data does not fit into one spec, if there is one."""
        if self.is_shared() or self._is_dealt():
            return None
        flows = self.group.parts.values()
        tables = ((flow, flow.argument("dataframe")) for flow in flows)
        dealt = (flow for flow, table in tables if isinstance(table, Table) and table.split is not None and not self.in_memory(flow))
        return next((flow for flow in flows if flow.get("subset") is not None and takes_share(flow)), next(dealt, None))

    def _dealt(self) -> list[str]:
        """A table split by `train_test_split`."""
        train = self.group.first
        split = cast("Share", cast("Table", train.argument("dataframe")).split)
        source, test, line = self._source(train, "data"), split.test, split.node.lineno
        stratify = ", stratify: label" if split.stratified and self.labelled() else ""
        self.findings.add("PG620", line, "`train_test_split` becomes `splits`, which selects other rows, but the same ones in every run")
        if isinstance(test, int):
            self.findings.add("PG610", line, "the split is a count of rows", "the spec has 0.2: put the share there")
            test = 0.2
        return [f"source: {source}", f"splits: {{parts: {{train: {number(round(1 - test, 10))}, validation: {number(test)}}}{stratify}}}"]

    # Single sources

    def _source(self, flow: Flow, name: str) -> str:
        if flow.method == "flow_from_directory":
            return self._folder(flow, name)
        if flow.method == "flow_from_dataframe":
            return self._csv(flow, name)
        return self._arrays(flow)

    def _path(self, name: str, path: object, line: int, what: str) -> str:
        """A param for a path; an unknown path gets a placeholder."""
        if not isinstance(path, str) or not path:
            unknown = path if isinstance(path, Unknown) else Unknown("")
            message = f"{what} is not known: {unknown.reason or 'it is not a text'}"
            default = f"path/to/{name}"
            help_ = f"the spec has `{default}`: put the path there, or `--set {name}=…`"
            said = self.findings.add("PG610", unknown.line or line, message, help_)
            self.params.told += [(said, [name])] if unknown is path else []
            self.params.texts[name] = f"{{type: path, default: {default}}}  # not known from the code"
        else:
            self.params.texts[name] = f"{{type: path, default: {flow_scalar(path)}}}"
        return f"${name}"

    def _folder(self, flow: Flow, name: str) -> str:
        given = flow.known("directory", Unknown("no folder is given", flow.line))
        path = self._path(name, given, flow.line, "the folder")
        classes = "" if all_in_one(flow) else self._classes(flow)
        extra = "" if classes or self._has_labels(flow) else ", labels: none"
        if flow.get("follow_links"):
            extra += ", follow_links: true"
        return f"{{image_folder: {{path: {path}{classes}{extra}}}}}"

    def _has_labels(self, flow: Flow) -> bool:
        return class_mode(flow) not in UNLABELLED and not all_in_one(flow)

    def _classes(self, flow: Flow) -> str:
        classes = flow.known("classes")
        if isinstance(classes, (list, tuple)) and classes and all(isinstance(c, str) for c in classes):
            return f", classes: [{', '.join(flow_scalar(c) for c in classes)}]"
        if classes is not None:
            reason = classes.reason if isinstance(classes, Unknown) else f"{classes!r} is not a list of names"
            self.findings.add("PG610", flow.line_of("classes"), f"`classes` is not known: {reason}", "add `classes` to the source")
        return ""

    def _csv(self, flow: Flow, name: str) -> str:
        table, made = flow.argument("dataframe"), self.in_memory(flow)
        table = table if isinstance(table, Table) and not made else Table("")
        if not made:
            empty = Unknown("it is empty", flow.line)
            path = self._path("table" if name == "data" else f"{name}_table", table.path or empty, flow.line, "the table's path")
        features = ", ".join(self._features(flow, name, table))
        if made:
            message = f"the table is made by code, so it is passed to `build`: {made}"
            help_ = "to read it from a file, save it with `to_csv`, and write a `csv` source"
            self.findings.add("PG611", flow.line_of("dataframe"), message, help_)
            return f"{{dataframe: {{features: {{{features}}}}}}}"
        tab = '"\\t"' if table.separator == "\t" else None
        form = "" if table.separator is None else f", separator: {tab or flow_scalar(table.separator)}"
        form += "" if table.header else ", header: false"
        return f"{{csv: {{path: {path}{form}, features: {{{features}}}}}}}"

    def _features(self, flow: Flow, name: str, table: Table) -> list[str]:
        features = [f"image: {{kind: image, column: {self._column(flow, table, 'x_col', 'filename')}{self._root(flow, name, table)}}}"]
        if class_mode(flow) in WITHOUT_CLASSES:
            features += self._targets(flow, table)
        elif self._has_labels(flow):
            features.append(f"label: {{kind: label, column: {self._column(flow, table, 'y_col', 'class')}{self._classes(flow)}}}")
            message = "Keras sorts classes as texts; pipegen sorts a column of integers as numbers"
            self.findings.add("PG624", flow.line, message)
        if weighted(flow):
            features.append(f"weight: {{kind: weight, column: {self._column(flow, table, 'weight_col', 'weight')}}}")
        return features

    def _targets(self, flow: Flow, table: Table) -> list[str]:
        """Numbers as targets: one column, several as one vector, or several outputs."""
        value = flow.known("y_col", "class")
        if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value) or not value:
            return [f"target: {{kind: tensor, column: {self._column(flow, table, 'y_col', 'class')}}}"]
        columns = [self._known(table, v) for v in value]
        if class_mode(flow) == "multi_output":
            return [f"target_{i}: {{kind: tensor, column: {column}}}" for i, column in enumerate(columns, 1)]
        return [f"target: {{kind: tensor, columns: [{', '.join(columns)}]}}"]

    def _known(self, table: Table, name: str) -> str:
        """A column's name in the spec."""
        if not table.header:
            return str(table.names.index(name)) if table.names and name in table.names else "0"
        return flow_scalar(name)

    def _column(self, flow: Flow, table: Table, argument: str, default: str) -> str:
        value: Any = flow.known(argument, default)
        if not isinstance(value, str):
            line = flow.line_of(argument)
            reason = value.reason if isinstance(value, Unknown) else "several columns are not a single label"
            self.findings.add("PG610", line, f"`{argument}` is not known: {reason}", f"the spec has `{default}`: put the column there")
            value = default
        return self._known(table, value)

    def _root(self, flow: Flow, name: str, table: Table) -> str:
        given = flow.known("directory")
        if given is None:
            return ", root: ." if "/" in table.path else ""
        param = "images" if name == "data" else f"{name}_images"
        path = given if not isinstance(given, str) or given else "."
        return f", root: {self._path(param, path, flow.line, 'the folder of the images')}"

    def _arrays(self, flow: Flow) -> str:
        given = self.given_labels()
        label = ", label: {kind: label}" if given == "label" else ", target: {kind: tensor}" if given else ""
        if given == "target" and "y" in flow.args:
            message = "the labels may be class indices or one-hot rows: the model gets them unchanged"
            if form_of(flow.argument("y")) is not None:
                message = "the labels of the splits do not have one known form: the model gets them unchanged"
            help_ = "for class names and class weights, make the feature `label: {kind: label}`, and pass class indices"
            self.findings.add("PG611", flow.line_of("y"), message, help_)
        weight = ", weight: {kind: weight}" if weighted(flow) else ""
        return f"{{arrays: {{features: {{image: {{kind: image}}{label}{weight}}}}}}}"
