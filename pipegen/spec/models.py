"""The sections of a spec as frozen models. The docstrings of fields are shown by the JSON Schema, editors and `pipegen show`.

A choice is a word or a single-key map `word: {arguments}`: a union of a literal and a model with one field.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field, PrivateAttr, WithJsonSchema, model_validator

from pipegen.errors import InternalError
from pipegen.ops.arguments.geometry import BoxFormat
from pipegen.ops.arguments.timeline import EventFormat
from pipegen.ops.data_test import DataTest
from pipegen.ops.families.selections import InnerStep
from pipegen.ops.kinds.base import Samples, having
from pipegen.ops.model import Model
from pipegen.ops.sampling_sections import Buckets, ByColumn, Curriculum, FeatureName, LengthBuckets, Padding, Sampling, Seed, Splits
from pipegen.ops.sources.features.predicate import parse_predicate
from pipegen.ops.sources.listing.base import PREDICTED, Source
from pipegen.ops.transform import SplitName, Transform, When
from pipegen.spec.units import ByteSize, Seconds
from pipegen.types import ElementType

Count = Annotated[int, Field(ge=1, le=64)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class View(Model):
    """Views of one kind, with their own steps after the common ones."""

    count: Count = 1
    """The number of views of this kind. Each has draws of its own. Several are numbered from 1: `image_local_1`, `image_local_2`."""
    transforms: tuple[InnerStep, ...] = ()
    """The steps of these views, after those in `transforms`."""
    of: FeatureName | Annotated[list[FeatureName], Field(min_length=1)] | None = None
    """The image, or images, with these views; by default all. Features aligned with an image have its views. An image without views
    keeps its name and goes through the steps of the first branch, as on other splits."""
    when: When = "train"
    """The splits with these views: `train`, `eval` (every split but train), `all`, or a list of names. A split without views has the
    first view of each example, under the name of the feature."""

    def images(self) -> tuple[str, ...] | None:
        """The sorted images of the branch; `None` for all."""
        return None if self.of is None else tuple(sorted({self.of} if isinstance(self.of, str) else {*self.of}))


Views = Count | Annotated[dict[Name, View], Field(min_length=1)]


DType = Literal["float32", "float16", "bfloat16", "uint8"]
Remainder = Literal["drop", "keep", "pad"]
Encoding = Literal["int", "one_hot", "binary", "multi_hot", "frames"]
UNENCODED: Encoding = "int"  # the encoding of a label by default
Fraction = Annotated[float, Field(gt=0, lt=1)]
PositiveInt = Annotated[int, Field(ge=1)]
_DISPATCHER = r"^grpc://[^/:\s]+:[0-9]{1,5}$"


class Param(Model):
    """A typed parameter of the spec. Its value is that of `--set NAME=VALUE` or `params=`, else of its environment variable, else its
    default."""

    type: Literal["int", "float", "bool", "str", "path", "choice", "list"]
    """The type of the value. A `path` is relative to the spec's file, or to the working directory if it is set from outside. A `list` has
    texts, numbers, `true` or `false`, and stands alone, as in `classes: $names`."""
    default: int | float | bool | str | list[int | float | bool | str] | None = None
    """The default value; without it the param must be set."""
    min: int | float | None = None
    """The least value, for numbers."""
    max: int | float | None = None
    """The greatest value, for numbers."""
    choices: list[str] | None = None
    """The allowed words, for `type: choice`."""
    env: Name | None = None
    """An environment variable with the value; not that of a secret, unless the caller allows it."""
    description: str | None = None
    """The purpose, for people."""


class WindowShuffle(Model):
    """A shuffle within consecutive windows of the stored order."""

    window: ByteSize
    """The size of a window in bytes of stored records, such as `1GiB`."""


class Epoch(Model):
    """The length of an epoch of the training split."""

    steps: PositiveInt
    """Steps in an epoch. The next epoch continues in the shuffled order where this one ended."""


class Batch(Model):
    """The batches."""

    size: PositiveInt = 32
    """Examples in a global batch, over all hosts."""
    remainder: Remainder | dict[SplitName, Remainder] | None = None
    """The treatment of an incomplete last batch: `drop` it, `keep` it smaller, or `pad` it with repeats of weight 0. One word for
    every split, or one per split; by default `drop` for train and `keep` elsewhere. With `buckets`, of the last batch of each."""
    pad: Padding | Annotated[dict[FeatureName, Padding], Field(min_length=1)] | None = None
    """The padding of features of unknown length: one for all of them, or one for each, by name."""
    buckets: Buckets | LengthBuckets | None = None
    """The possible sizes of batches; `size: bucket` in a step is the size of an image's bucket. With `by: length`, the possible lengths of
    a feature."""

    def remainder_for(self, split: str) -> Remainder:
        """The treatment for one split."""
        if isinstance(self.remainder, str):
            return self.remainder
        return (self.remainder or {}).get(split, "drop" if split == "train" else "keep")


Features = str | list[str] | dict[str, str]


class Output(Model):
    """The features that the model receives, and their form."""

    x: Features = "image"
    """The model's inputs: a feature, a list, or a map whose keys are Keras input names. A source without `image` has its first sound by
    default."""
    y: Features | None = "label"
    """The targets, in the same form; none for unlabelled data."""
    sample_weight: str | None = None
    """The feature that weights each example in the loss."""
    encode: dict[str, Encoding] = {}
    """The encoding of each label: `int` (the class index), `one_hot`, `binary` (0 or 1 as float32, for two classes) or
    `multi_hot`. For events, or a label `with` them, `frames`: what happens in each frame of the sound or step of its spectrum, float32
    `(steps,)` or `(steps, classes)`, 1 for a step that an event overlaps. Step `i` lasts from `i` to `i + 1` times the hop."""
    dtype: DType = "float32"
    """The dtype of images; `uint8` rounds half to even."""
    channels: Literal["last", "first"] = "last"
    """The place of an image's channel axis."""
    boxes: BoxFormat = "xyxy"
    """The format of boxes: `xyxy`, `yxyx`, `xywh` or `center_xywh` in pixels, or `rel_xyxy` etc. in fractions of the image."""
    events: EventFormat = "start_end"
    """The format of events, in seconds: `start_end` or `start_duration`."""

    def by_default(self, record: ElementType) -> Output:
        """Makes the first sound of a record the default input, if it has no `image`."""
        sound = next(iter(having(record, Samples)), None)
        if sound is None or "x" in self.model_fields_set or self.x in record:
            return self
        return self.model_copy(update={"x": sound})


def names(features: Features | None) -> tuple[str, ...]:
    """The features that an `x` or `y` names."""
    if features is None:
        return ()
    if isinstance(features, str):
        return (features,)
    return tuple(features.values()) if isinstance(features, dict) else tuple(features)


def received(output: Output) -> tuple[str, ...]:
    """The features that a model receives, each once."""
    weight = (output.sample_weight,) if output.sample_weight is not None else ()
    return tuple(dict.fromkeys((*names(output.x), *names(output.y), *weight)))


class Skip(Model):
    """Replacement of a damaged record by the next intact one of the same part."""

    max_fraction: Annotated[float, Field(ge=0, le=1)] = 0.01
    """The share of the split that may be damaged before the run stops."""
    report: str | None = None
    """A file for the damaged records, one JSON object a line, below the spec's folder or the working directory. The first line
    describes the file."""


class SkipChoice(Model):
    """`skip`, with its arguments."""

    skip: Skip
    """The limit on damaged records, and a file that lists them."""


class MissingFraction(Model):
    """Omission of records that lack a file, up to a limit."""

    max_fraction: Annotated[float, Field(ge=0, le=1)]
    """The share of the records that may be left out; more are an error."""


class Errors(Model):
    """The treatment of records that cannot be decoded, or whose file does not exist."""

    decode: Literal["raise"] | SkipChoice = "raise"
    """`raise` stops and names the file. `{skip: {max_fraction, report}}` replaces a damaged record by the next intact one, on the
    training split; on other splits it is an error, unless it is listed in `exclude`."""
    exclude: str | None = None
    """A file of relative paths, one a line, to leave out of every split; `pipegen validate --data` writes one. One record of a file that
    holds many is `PATH#NUMBER`, counted from 0. With a `mix` the name of the part comes first, `PART/PATH`. Files need not exist."""
    missing: Literal["raise", "drop"] | MissingFraction = "raise"
    """The treatment of rows whose file does not exist, files without a partner and annotations without an image: `raise` is an error,
    `drop` leaves them out with a warning, and `{max_fraction: 0.05}` does so for up to that share of the records. Records left out by
    `exclude`, `where` and `ignore` do not count."""

    @property
    def most_missing(self) -> float:
        """The share of the records that may be left out as a file does not exist."""
        return self.missing.max_fraction if isinstance(self.missing, MissingFraction) else float(self.missing == "drop")

    @property
    def skip(self) -> Skip | None:
        """The skip rule, if any."""
        return self.decode.skip if isinstance(self.decode, SkipChoice) else None


class DiskCache(Model):
    """A cache in a folder, which outlives the run."""

    disk: str
    """The folder: new, empty, or with caches of pipegen, of any number of specs. `pipegen cache` lists, checks and deletes them."""


class ShardIndex(Model):
    """This host's share of each global batch."""

    index: Annotated[int, Field(ge=0)]
    """The number of the share, from 0."""
    count: PositiveInt
    """The number of shares."""

    @model_validator(mode="after")
    def _inside(self) -> ShardIndex:
        if self.index >= self.count:
            raise ValueError(f"`index` counts from 0, so with `count: {self.count}` it is at most {self.count - 1}, got {self.index}")
        return self


class DevicePrefetch(Model):
    """Prefetching to an accelerator."""

    device: str
    """`auto` (the first accelerator), or a TensorFlow device such as `GPU:0`."""


class RemoteCache(Model):
    """The cache on the local disk for data at addresses such as `s3://bucket/flowers`."""

    fetch: Literal["auto", "blocks", "whole", "none"] = "auto"
    """What is fetched when: `blocks` as records are read, so that the data may be larger than `size`; `whole` all files beforehand; `none`
    keeps nothing, and TensorFlow reads the addresses itself. `auto` is `none` for `gs://`, else `blocks`; and `whole` for sources that
    need whole files."""
    path: str | None = None
    """The folder, which processes may share: new, empty, or such a cache; by default in the user's cache folder."""
    size: ByteSize = 64 * 2**30
    """The size limit, such as `200GiB`; the least recently used data is deleted first."""


def _dispatcher(value: str) -> str:
    """Checks the address of a dispatcher."""
    if re.match(_DISPATCHER, value) is None or not 0 < int(value.rpartition(":")[2]) < 65536:
        raise ValueError(f"a dispatcher has an address such as `grpc://host:5050`, with its port; got {value!r}")
    return value


class Service(Model):
    """Other machines that make batches: a dispatcher and workers of TensorFlow's tf.data service."""

    address: Annotated[str, AfterValidator(_dispatcher), WithJsonSchema({"type": "string", "pattern": _DISPATCHER})]
    """The dispatcher, such as `grpc://dispatcher:5050`."""
    patience: Seconds = 5.0
    """The time that a batch may be late, such as `5s`, before this process makes it."""
    window: PositiveInt = 8
    """The number of later batches that may arrive before this process makes a missing one; at most twice as many are held."""


class Runtime(Model):
    """Settings of speed, place and hosts. None of them changes the batches."""

    cache: Literal["auto", "memory", "none"] | DiskCache = "auto"
    """Keeps the result of the deterministic steps between epochs: in `memory`, on a disk (`{disk: FOLDER}`), not at all (`none`),
    or `auto`: in memory, if that saves time and fits into half of the RAM budget, and never on a disk."""
    shard: Literal["auto", "none"] | ShardIndex = "auto"
    """The share of each global batch that this process takes: `auto` asks JAX, `TF_CONFIG`, Horovod, torchrun, Open MPI or SLURM's
    `srun`, the nearest of those that launched it; `none` takes all."""
    shares: Literal["even", "uneven"] = "even"
    """Whether all hosts need equal shares of a batch. `uneven` gives some of them an example more, such as 5, 5 and 6 of 16: for training
    loops that weight all examples equally, which an average over hosts does not."""
    prefetch: Literal["auto", "none"] | PositiveInt | DevicePrefetch = "auto"
    """Finished batches in memory: one or two for `auto`, or a number; `{device: auto}` also copies them to the accelerator."""
    threads: Literal["auto"] | PositiveInt = "auto"
    """Threads that read, decode and augment; `auto` is every core that this process may use."""
    ram_budget: Literal["auto"] | ByteSize = "auto"
    """Memory for caches and buffers, such as `8GiB`; `auto` is half of the free memory of the machine or container. Caches never take
    more; `validate --data` and `build` warn if the rest does."""
    remote_cache: RemoteCache = RemoteCache()
    """The local cache for files of other machines."""
    jit: Literal["auto", "always", "never"] = "auto"
    """Compiles batch kernels with XLA: `auto` falls back to plain TensorFlow if XLA fails, `always` makes that an error, `never` does not
    compile."""
    service: Service | None = None
    """Other machines that make the batches of the training split: a dispatcher and workers of TensorFlow's tf.data service."""


class Stretch(NamedTuple):
    """The epochs of training that a spec is for: all of them, or those of one stage."""

    first: int = 0  # the first epoch
    end: int | None = None  # the epoch after the last one
    examples: int = 0  # examples in all epochs before, with `epoch: {steps}`


ALWAYS = Stretch()  # all epochs


class TrainingStage(Model):
    """Some epochs of training with other values of params, or another batch size: progressive resizing, or a curriculum."""

    epochs: PositiveInt
    """The number of epochs. Epochs are counted through all stages, and schedules use that count."""
    params: dict[Name, bool | int | float | str] = {}
    """Values of params in this stage. They cannot change what all stages share: `source`, `splits`, `seed`, `sampling.subset` and
    `errors.exclude`."""
    batch: PositiveInt | None = None
    """Examples in a global batch, in place of `batch.size`."""

    _resolved: PipelineSpec | None = PrivateAttr(None)

    @property
    def resolved(self) -> PipelineSpec:
        """The spec in this stage, set by the loader."""
        if self._resolved is None:
            raise InternalError("a stage was not resolved")
        return self._resolved


class PipelineSpec(Model):
    """A whole spec, with every default filled in."""

    pipegen: Literal[1]
    """The version of the language."""
    name: str | None = None
    """A name for people; the file's stem by default."""
    description: str | None = None
    """The purpose, for people."""
    params: dict[Name, Param] = {}
    """Typed parameters, used elsewhere as `$name`."""
    source: Source
    """The data: a source and its arguments."""
    splits: Splits = Splits()
    """The splits of the data; by default all is `train`, or `predict` without labels."""
    transforms: tuple[Transform, ...] = ()
    """The steps, in order."""
    views: Views = 1
    """Views of each example: a number, or branches with steps of their own after `transforms`, by name. Every view has its own draws."""
    seed: Seed = 0
    """The seed of the order and the augmentation."""
    shuffle: Literal["global", "none"] | WindowShuffle = "global"
    """The order of the training split: a new permutation every epoch, windows, or the stored order."""
    epoch: Literal["pass"] | Epoch = "pass"
    """An epoch of the training split: one pass over it, or `{steps: N}`."""
    sampling: Sampling | None = None
    """How often an epoch of the training split has each example, by default once."""
    order: Curriculum | None = None
    """Easy examples first: an epoch of the training split is drawn from the easiest examples, and from more of them over the epochs."""
    batch: Batch = Batch()
    """The size of a batch, and the treatment of an incomplete last one."""
    stages: Annotated[tuple[TrainingStage, ...], Field(min_length=1)] = ()
    """The stages of training, in order; by default one, the spec itself."""
    output: Output = Output()
    """The model's inputs, targets and weights."""
    errors: Errors = Errors()
    """The treatment of damaged records."""
    tests: tuple[DataTest, ...] = ()
    """Tests of the data, run by `pipegen test`; they do not change the batches."""
    runtime: Runtime = Runtime()
    """Cache, threads, memory and shards: settings that do not change the batches."""

    _stretch: Stretch = PrivateAttr(ALWAYS)

    @property
    def samples(self) -> bool:
        """Whether an epoch of the training split is not each example once."""
        return self.order is not None or (self.sampling is not None and self.sampling.feature is not None)

    @property
    def stretch(self) -> Stretch:
        """The epochs that the spec is for, set by the loader for a stage."""
        return self._stretch

    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns and features that decide which examples there are, each with the key path of an argument that names it."""
        sampling = self.sampling
        subset = sampling.subset if sampling is not None else None
        compared = parse_predicate(subset.where).columns if subset is not None and subset.where is not None else ()
        named: dict[str, tuple[str, ...]] = dict.fromkeys(compared, ("sampling", "subset", "where"))
        if subset is not None and isinstance(subset.stratify, ByColumn):
            named[str(subset.stratify.column)] = "sampling", "subset", "stratify"
        if sampling is not None and sampling.feature is not None:
            named[sampling.feature] = "sampling", *sampling.feature_path()
        if self.order is not None:
            named[self.order.by] = "order", "by"
        return named | {str(column): ("splits", *field.split(".")) for field, column in self.splits.columns().items()}

    def split_names(self) -> tuple[str, ...]:
        """The splits, in the order of the spec."""
        learns = self.source.has_labels() or ("y" in self.output.model_fields_set and self.output.y is not None)
        own = self.source.split_names()
        return self.splits.names(learns=learns, unlabelled=bool(self.source.lacks(PREDICTED))) if own is None else own
