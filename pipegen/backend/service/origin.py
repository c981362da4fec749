"""The origin of a batch: the version of TensorFlow, the processor, and settings that change the last bit."""

from __future__ import annotations

import os
from typing import NamedTuple

import tensorflow as tf

_SEPARATOR = "|"
_FLAGS = r"avx\w*|amx\w*|fma\w*|f16c|sse\w*|sve\w*|bf16|asimd\w*"
"""Instruction sets for which TensorFlow and XLA have their own code."""
_ONEDNN = "TF_ENABLE_ONEDNN_OPTS"


class Origin(NamedTuple):
    """The software and hardware of a process. Unknown parts are empty.

    Attributes:
        tensorflow: The version of TensorFlow, such as `2.21.0`.
        processor: The model of the processor.
        instructions: Its instruction sets.
        onednn: `TF_ENABLE_ONEDNN_OPTS`.
    """

    tensorflow: str
    processor: str
    instructions: str
    onednn: str

    @classmethod
    def parse(cls, text: bytes) -> Origin:
        """Parses the result of `origin_there`."""
        parts = text.decode("utf-8", "replace").split(_SEPARATOR)
        return cls(*(part.strip() for part in (*parts, "", "", "", "")[:4]))

    def differs(self, other: Origin) -> str:
        """Describes the difference of another origin; "" if batches of both are equal to the bit, as far as known."""
        told = [bool(a and b) for a, b in zip(self, other, strict=True)]
        if told[0] and self.tensorflow != other.tensorflow:
            return f"TensorFlow {other.tensorflow} in place of {self.tensorflow}"
        if told[1] and self.processor != other.processor:
            return f"a processor {other.processor!r} in place of {self.processor!r}"
        if told[2] and self.instructions != other.instructions:
            ours, theirs = set(self.instructions.split()), set(other.instructions.split())
            only = [*(f"without {name}" for name in sorted(ours - theirs)), *(f"with {name}" for name in sorted(theirs - ours))]
            return f"a processor {other.processor!r} {', '.join(only)}"
        if self.onednn != other.onednn:
            return f"{_ONEDNN}={other.onednn} in place of {self.onednn}"
        return ""


def origin_here() -> Origin:
    """Returns the origin of this process."""
    found = Origin.parse(tf.function(_read, autograph=False)().numpy())
    # The environment may have changed between the start of the process and the import of TensorFlow.
    return found._replace(tensorflow=tf.version.VERSION, onednn=os.environ.get(_ONEDNN, "1"))


def origin_there() -> tf.Tensor:
    """Returns the origin of the process that runs the graph, for `Origin.parse`: a string scalar, computed once a process."""
    signature = [tf.TensorSpec([], tf.resource)]

    def nothing(held: tf.Tensor) -> tuple[()]:  # noqa: ARG001 - TensorFlow names an input by it
        return ()

    def make(held: tf.Tensor) -> tuple[()]:
        tf.raw_ops.AssignVariableOp(resource=held, value=_read())
        return ()

    there, lacking = (tf.function(f, signature, autograph=False).get_concrete_function() for f in (nothing, make))
    held = tf.raw_ops.VarHandleOp(dtype=tf.string, shape=[], shared_name="pipegen_origin")
    made = tf.raw_ops.If(cond=tf.raw_ops.VarIsInitializedOp(resource=held), input=[held], Tout=[], then_branch=there, else_branch=lacking)
    with tf.control_dependencies([made]):
        return tf.raw_ops.ReadVariableOp(resource=held, dtype=tf.string)


def _read() -> tf.Tensor:
    """Reads the origin of this process, using only operations."""
    # The version is in the name of the folder `*.dist-info` beside the package.
    library = _line("/proc/self/maps", r".*/tensorflow/libtensorflow_framework\.so.*")
    folder = tf.strings.regex_replace(library, r"^[^/]*(/.*)/tensorflow/libtensorflow_framework.*$", r"\1")
    installed = tf.io.matching_files(tf.strings.join([folder, "/tensorflow*-*.dist-info/METADATA"]))
    wanted = tf.strings.regex_full_match(installed, r".*/tensorflow(_cpu|_gpu|_intel|_rocm|_cpu_aws)?-[0-9][^/]*\.dist-info/METADATA")
    metadata = tf.boolean_mask(installed, wanted)
    first = tf.concat([metadata, [""]], 0)[0]
    version = tf.strings.regex_replace(first, r"^.*/tensorflow\w*-([^/]*)\.dist-info/METADATA$", r"\1")
    processor = tf.strings.join([_line("/proc/cpuinfo", rf"{name}\s*:.*") for name in ("model name", "CPU implementer", "CPU part")])
    processor = tf.strings.regex_replace(processor, r"(model name|CPU implementer|CPU part)\s*:\s*", " ")
    flags = _line("/proc/cpuinfo", r"(flags|Features)\s*:.*")
    words = tf.strings.split(flags)
    words = tf.boolean_mask(words, tf.strings.regex_full_match(words, _FLAGS))
    environment = _line("/proc/self/environ", r"(.|\x00|\n)*")
    named = tf.strings.regex_full_match(environment, rf"(.|\n)*(^|\x00){_ONEDNN}=[0-9]+(\x00(.|\n)*|$)")
    set_to = tf.strings.regex_replace(environment, rf"^((.|\n)*\x00)?{_ONEDNN}=([0-9]+)(\x00(.|\n)*)?$", r"\3")
    parts = [version, processor, tf.strings.reduce_join(words, separator=" "), tf.where(named, set_to, "1")]
    return tf.strings.join([tf.strings.regex_replace(part, r"\|", " ") for part in parts], _SEPARATOR)


def _line(file: str, pattern: str) -> tf.Tensor:
    """Returns the first line of a file that fully matches a pattern: a string scalar, "" without such a line or file."""
    lines = tf.data.TextLineDataset(file).filter(lambda line: tf.strings.regex_full_match(line, pattern))
    return lines.ignore_errors(log_warning=False).concatenate(tf.data.Dataset.from_tensors("")).take(1).get_single_element()
