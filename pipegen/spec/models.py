"""The sections of a spec as frozen models. The field docstrings are the documentation: they reach the JSON Schema,
editors and `pipegen show`.

Choices are a word or a single-key map `word: {arguments}`; each is modelled as a union of a literal and a model with
one field.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, Field, PrivateAttr, WithJsonSchema, model_serializer, model_validator

from pipegen.errors import InternalError
from pipegen.ops.arguments.item_rules import BoxFormat
from pipegen.ops.buckets import Buckets
from pipegen.ops.families.selections import InnerStep
from pipegen.ops.model import Model
from pipegen.ops.sampling import Curriculum, FeatureName, Sampling, Seed, Splits
from pipegen.ops.sources.listing.base import Source
from pipegen.ops.testing.base import DataTest
from pipegen.ops.transform import SplitName, Transform, When
from pipegen.spec.units import ByteSize, Seconds

Count = Annotated[int, Field(ge=1, le=64)]
ViewName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class View(Model):
    """Views of one kind: so many of them, and what is done to each behind the steps that all views have."""

    count: Count = 1
    """How many views of this kind an example has; each draws for itself. Several are numbered from 1: `image_local_1`, `image_local_2`."""
    transforms: tuple[InnerStep, ...] = ()
    """The steps of these views, behind those in `transforms`."""
    of: FeatureName | Annotated[list[FeatureName], Field(min_length=1)] | None = None
    """The image that has these views, or several; by default all have. What is aligned with an image goes with it. An image that has no
    views is there once, under its own name, and goes through the steps of the first branch as on other splits."""
    when: When = "train"
    """The splits that have these views: `train`, `eval` (every split but train), `all`, or a list of names. A split without any has one
    view of each example, the first, under the name of the feature."""

    def images(self) -> tuple[str, ...] | None:
        """Returns the images that the branch names, in one order; `None` where it is of all."""
        return None if self.of is None else tuple(sorted({self.of} if isinstance(self.of, str) else {*self.of}))


Views = Count | Annotated[dict[ViewName, View], Field(min_length=1)]


DType = Literal["float32", "float16", "bfloat16", "uint8"]
Remainder = Literal["drop", "keep", "pad"]
Encoding = Literal["int", "one_hot", "binary", "multi_hot"]
UNENCODED: Encoding = "int"
"""The encoding of a label by default."""
Fraction = Annotated[float, Field(gt=0, lt=1)]
PositiveInt = Annotated[int, Field(ge=1)]
_DISPATCHER = r"^grpc://[^/:\s]+:[0-9]{1,5}$"
ParamName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Param(Model):
    """A typed knob: `--set NAME=VALUE` and `params=` may change it, then its environment variable, then the default."""

    type: Literal["int", "float", "bool", "str", "path", "choice"]
    """The type that a value must have; a `path` is relative to the spec's file, or to the working directory when it
    arrives from outside."""
    default: int | float | bool | str | None = None
    """The value when nothing else gives one; without it the param must be set."""
    min: int | float | None = None
    """The least value, for numbers."""
    max: int | float | None = None
    """The greatest value, for numbers."""
    choices: list[str] | None = None
    """The allowed words, for `type: choice`."""
    env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    """An environment variable that gives the value when it is set; not that of a secret, unless the caller allows it."""
    description: str | None = None
    """The purpose, for people."""


class WindowShuffle(Model):
    """Shuffle within consecutive windows of the stored order."""

    window: ByteSize
    """The size of a window in bytes of stored records, such as `1GiB`."""


class Epoch(Model):
    """Sets the length of an epoch of the training split."""

    steps: PositiveInt
    """Steps in an epoch; the next epoch goes on where this one ended in the shuffled order."""


class Batch(Model):
    """Stacks examples into batches."""

    size: PositiveInt = 32
    """Examples in a global batch, over all hosts."""
    remainder: Remainder | dict[SplitName, Remainder] | None = None
    """The fate of a last batch that is not full: `drop` it, `keep` it smaller, or `pad` it with repeats of weight 0. One
    word for every split, or one per split; by default `drop` for train and `keep` elsewhere. With `buckets`, of the last batch of each."""
    buckets: Buckets | None = None
    """Sizes of which each batch has one; `size: bucket` in a step is that of an image's bucket."""

    @model_serializer(mode="wrap")
    def _what_is_said(self, handler: Any) -> dict[str, Any]:
        """Leaves out `buckets` where there are none, so that hashes of older specs stay."""
        return {name: value for name, value in handler(self).items() if name != "buckets" or value is not None}

    def remainder_for(self, split: str) -> Remainder:
        """Returns the rule for one split."""
        if isinstance(self.remainder, str):
            return self.remainder
        return (self.remainder or {}).get(split, "drop" if split == "train" else "keep")


Features = str | list[str] | dict[str, str]


class Output(Model):
    """Chooses what the model receives."""

    x: Features = "image"
    """The model's inputs: a feature, a list, or a map whose keys are Keras input names."""
    y: Features | None = "label"
    """The targets, likewise; none for unlabelled data."""
    sample_weight: str | None = None
    """The feature that weights each example in the loss."""
    encode: dict[str, Encoding] = {}
    """The encoding of each label: `int` (the class index), `one_hot`, `binary` (0 or 1 as float32, for two classes) or
    `multi_hot`."""
    dtype: DType = "float32"
    """The dtype of images; `uint8` rounds half to even."""
    channels: Literal["last", "first"] = "last"
    """The place of an image's channel axis."""
    boxes: BoxFormat = "xyxy"
    """What the four numbers of a box are: `xyxy`, `yxyx`, `xywh` or `center_xywh` in pixels, or `rel_xyxy` and so on in parts of the
    image."""

    @model_serializer(mode="wrap")
    def _what_is_said(self, handler: Any) -> dict[str, Any]:
        """Leaves out a format of boxes that is not said, so that hashes of older specs stay."""
        return {name: value for name, value in handler(self).items() if name != "boxes" or value != "xyxy"}


class Skip(Model):
    """Takes the next good record of the same part in place of a damaged one."""

    max_fraction: Annotated[float, Field(ge=0, le=1)] = 0.01
    """The share of the split that may be damaged before the run stops."""
    report: str | None = None
    """A file that collects the damaged records, one JSON object a line, below the spec's folder or the working directory; the first line
    says what it is."""


class SkipChoice(Model):
    """`skip`, with its arguments."""

    skip: Skip
    """The limit on damaged records, and a file that lists them."""


class MissingFraction(Model):
    """Leaves out records that lack a file, as long as they are few."""

    max_fraction: Annotated[float, Field(ge=0, le=1)]
    """The share of the records that may be left out; more of them are an error."""


class Errors(Model):
    """Chooses what happens to a record that cannot be decoded, or whose file does not exist."""

    decode: Literal["raise"] | SkipChoice = "raise"
    """`raise` stops and names the file. `{skip: {max_fraction, report}}` lets the next good record of the training
    split take its place; elsewhere a damaged file stays an error unless it is listed in `exclude`."""
    exclude: str | None = None
    """A file of relative paths, one a line, to leave out of every split; `pipegen validate --data` writes one. Beside a `mix` the name of
    the part comes first, `PART/PATH`. Files of such records need not exist."""
    missing: Literal["raise", "drop"] | MissingFraction = "raise"
    """What happens to rows whose file does not exist, files without a partner and annotations without an image: `raise` is an error,
    `drop` leaves them out with a warning, and `{max_fraction: 0.05}` does so for up to that share of the records. What `exclude`, `where`
    and `ignore` leave out does not count."""

    @property
    def most_missing(self) -> float:
        """The share of the records that may be left out because a file of theirs does not exist."""
        return self.missing.max_fraction if isinstance(self.missing, MissingFraction) else float(self.missing == "drop")

    @property
    def skip(self) -> Skip | None:
        """Returns the skip rule, if there is one."""
        return self.decode.skip if isinstance(self.decode, SkipChoice) else None


class DiskCache(Model):
    """A cache in a folder, which outlives the run."""

    disk: str
    """The folder: one that does not exist yet, is empty, or has caches of pipegen, of any number of specs. `pipegen cache` lists, checks
    and deletes them."""


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
    """Prefetch to an accelerator."""

    device: str
    """`auto` (the first accelerator), or a TensorFlow device such as `GPU:0`."""


class RemoteCache(Model):
    """Keeps what is read at addresses such as `s3://bucket/flowers` on the local disk."""

    fetch: Literal["auto", "blocks", "whole", "none"] = "auto"
    """What is fetched when: `blocks` as records are read, so that the data may be larger than `size`; `whole` all files beforehand; `none`
    keeps nothing, and TensorFlow reads the addresses itself. `auto` is `none` for `gs://`, else `blocks`; and `whole` for sources that
    need whole files."""
    path: str | None = None
    """The folder, which processes may share: one that does not exist yet, is empty, or is such a cache; by default in the user's cache
    folder."""
    size: ByteSize = 64 * 2**30
    """The most that they may take, such as `200GiB`; what was asked for the longest time ago goes first."""


def _dispatcher(value: str) -> str:
    """Checks the address of a dispatcher.

    Raises:
        ValueError: If it is none.
    """
    if re.match(_DISPATCHER, value) is None or not 0 < int(value.rpartition(":")[2]) < 65536:
        raise ValueError(f"a dispatcher has an address such as `grpc://host:5050`, with its port; got {value!r}")
    return value


class Service(Model):
    """Other machines that make batches: a dispatcher and workers of TensorFlow's tf.data service."""

    address: Annotated[str, AfterValidator(_dispatcher), WithJsonSchema({"type": "string", "pattern": _DISPATCHER})]
    """The dispatcher, such as `grpc://dispatcher:5050`."""
    patience: Seconds = 5.0
    """The time that a batch may be late, such as `5s`, before it is made here."""
    window: PositiveInt = 8
    """Batches of later steps that may come before one that is missing is made here; twice as many are held at most."""


class Runtime(Model):
    """Chooses how fast it runs, where, and which host does which share. Nothing here changes what the model sees."""

    cache: Literal["auto", "memory", "none"] | DiskCache = "auto"
    """Keeps the result of the deterministic steps between epochs: in `memory`, on a disk (`{disk: FOLDER}`), not at all (`none`),
    or `auto`: in memory, if that saves time and fits into half of the RAM budget, and never on a disk."""
    shard: Literal["auto", "none"] | ShardIndex = "auto"
    """The share of each global batch that this process takes: `auto` asks JAX, `TF_CONFIG`, Horovod, torchrun, Open MPI or SLURM's
    `srun`, the nearest of those that launched it; `none` takes all."""
    shares: Literal["even", "uneven"] = "even"
    """Whether a batch has to divide among the hosts. `uneven` gives some of them an example more, such as 5, 5 and 6 of 16: for own loops
    that weigh each example alike, which an average over hosts does not."""
    prefetch: Literal["auto", "none"] | PositiveInt | DevicePrefetch = "auto"
    """`auto` keeps one or two finished batches ready in memory, a number so many; `{device: auto}` also copies them to the accelerator."""
    threads: Literal["auto"] | PositiveInt = "auto"
    """Threads that read, decode and augment; `auto` is every core that this process may use."""
    ram_budget: Literal["auto"] | ByteSize = "auto"
    """Memory for caches and buffers, such as `8GiB`; `auto` is half of what the machine or container leaves free. Caches never take more;
    `validate --data` and `build` warn where the rest does."""
    remote_cache: RemoteCache = RemoteCache()
    """Where files of other machines are kept, and how much of them."""
    jit: Literal["auto", "always", "never"] = "auto"
    """Compiles batch kernels with XLA: `auto` falls back to plain TensorFlow where XLA fails, `always` makes
    that an error, `never` does not compile."""
    service: Service | None = None
    """Other machines that make the batches of the training split: a dispatcher and workers of TensorFlow's tf.data service."""

    @model_serializer(mode="wrap")
    def _what_is_said(self, handler: Any) -> dict[str, Any]:
        """Leaves out `service` where there is none."""
        return {name: value for name, value in handler(self).items() if name != "service" or value is not None}


class Stretch(NamedTuple):
    """The epochs of training that a spec is for: all of them, or those of one stage."""

    first: int = 0
    """The first epoch."""
    end: int | None = None
    """The epoch behind the last one."""
    examples: int = 0
    """Examples in all epochs before, where `epoch: {steps}` says how many those have."""


ALWAYS = Stretch()
"""All epochs that there may be."""


class TrainingStage(Model):
    """Some epochs of training with other values of params, or another batch: progressive resizing, or a curriculum."""

    epochs: PositiveInt
    """The number of epochs; those of all stages are counted on, and schedules go by that count."""
    params: dict[ParamName, bool | int | float | str] = {}
    """Values of params in this stage. What all stages share is out of their reach: `source`, `splits`, `seed`, `sampling.subset` and
    `errors.exclude`."""
    batch: PositiveInt | None = None
    """Examples in a global batch, in place of `batch.size`."""

    _resolved: PipelineSpec | None = PrivateAttr(None)

    @property
    def resolved(self) -> PipelineSpec:
        """Returns the spec as it is in this stage; the loader has put it there."""
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
    params: dict[ParamName, Param] = {}
    """Typed knobs, used elsewhere as `$name`."""
    source: Source
    """The data: a source and its arguments."""
    splits: Splits = Splits()
    """The splits of the data; by default all is `train`, or `predict` without labels."""
    transforms: tuple[Transform, ...] = ()
    """The steps, in order."""
    views: Views = 1
    """Views of each example: a number, or branches of steps of their own behind `transforms`, by name. Every view draws for itself."""
    seed: Seed = 0
    """Keys the order and the augmentation."""
    shuffle: Literal["global", "none"] | WindowShuffle = "global"
    """The order of the training split: a new permutation every epoch, windows, or the stored order."""
    epoch: Literal["pass"] | Epoch = "pass"
    """An epoch of the training split: one pass over it, or `{steps: N}`."""
    sampling: Sampling | None = None
    """How often an epoch of the training split has each example: by default once."""
    order: Curriculum | None = None
    """Easy examples first: an epoch of the training split draws from the easiest, and from more of them as training goes on."""
    batch: Batch = Batch()
    """The size of a batch, and the fate of a last one that is not full."""
    stages: Annotated[tuple[TrainingStage, ...], Field(min_length=1)] = ()
    """The stages of training, one after another; without any, all of it is as the spec says."""
    output: Output = Output()
    """The model's inputs, targets and weights."""
    errors: Errors = Errors()
    """The fate of damaged records."""
    tests: tuple[DataTest, ...] = ()
    """Tests of the data, which `pipegen test` runs; they change nothing that the model sees."""
    runtime: Runtime = Runtime()
    """Cache, threads, memory, shards: how fast it runs, and where."""

    _stretch: Stretch = PrivateAttr(ALWAYS)

    @property
    def samples(self) -> bool:
        """Returns whether an epoch of the training split has other examples than each of it once."""
        return self.order is not None or (self.sampling is not None and self.sampling.feature is not None)

    @property
    def stretch(self) -> Stretch:
        """Returns the epochs that it is for; the loader says so of a stage."""
        return self._stretch

    def split_names(self) -> tuple[str, ...]:
        """Returns the splits, in the order that the spec names them."""
        own = self.source.split_names()
        if own is not None:
            return own
        names = tuple(self.splits.parts)
        if self.splits.folds is not None:
            names = ("train", "validation", *(n for n in names if n not in ("train", "validation")))
        learns = self.source.has_labels() or ("y" in self.output.model_fields_set and self.output.y is not None)
        return names or (("train",) if learns else ("predict",))
