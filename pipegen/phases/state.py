"""The state of a run: its position, and its record of `fit` beside a model's checkpoints."""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from pipegen.errors import StateError
from pipegen.files import remove_parts, whole_file
from pipegen.frozen import dataclass
from pipegen.physical.extent import Extent, Position
from pipegen.spec.models import PipelineSpec
from pipegen.spec.spec_hash import meaning, spec_hash
from pipegen.spec.variants import bucketed
from pipegen.terminal import log

VERSION = 1
_KEYS = (*Position._fields, "examples", "spec_hash", "data", "spec")


def make_state(spec: PipelineSpec, own_hash: str, fingerprint: str, extent: Extent, at: Position) -> dict[str, Any]:
    """Makes the state of a position in an epoch of a spec and its data.

    `examples` is the next slot of the epoch, so that a run can continue with another batch size. For `origin` and `shift` see
    `Position`.
    """
    return {
        "pipegen_state": VERSION,
        **at._asdict(),
        "examples": extent.slot(at),
        "spec_hash": own_hash,
        "data": fingerprint,
        "spec": meaning(spec),
    }


def position_from(
    state: Mapping[str, Any], spec: PipelineSpec, own_hash: str, fingerprint: str, extent_at: Callable[[int], Extent]
) -> Position:
    """Finds the position of a state from `make_state`, perhaps of a spec with other batch sizes.

    `own_hash` is that of the spec, `fingerprint` that of the data; `extent_at` finds the extent of an epoch of the training split. Raises
    `StateError` if the state does not fit the spec or the data."""
    _check_form(state)
    if state["data"] != fingerprint:
        how = "the arrays hold other values" if spec.source.has_rows() else "files or rows were added, removed, renamed or changed"
        raise StateError(f"the data is not what the state was saved with: {how}")
    epoch, step, slot = state["epoch"], state["step"], state["examples"]
    saved = spec
    if state["spec_hash"] != own_hash:
        saved = _with_saved_batches(state, spec)
        if state["spec_hash"] != spec_hash(saved):
            from pipegen.spec.changes import meaning_changes

            try:
                changes, _ = meaning_changes(state["spec"], meaning(spec))
            except (LookupError, TypeError, AttributeError, ValueError):
                raise StateError("the state was saved with another spec, which this version of pipegen cannot read") from None
            told = [change for change in changes if change.kind == "numbers"] or changes
            lines = "\n".join(f"  {change}" for change in told) or "  only its hash differs"
            raise StateError(f"the spec is not the one that the state was saved with:\n{lines}")
    extent = extent_at(epoch)
    size, before = _begun(saved, epoch)
    slot = state["origin"] + step * size if size == extent.batch else slot
    if size != extent.batch and slot and bucketed(spec, "train"):
        following = "" if spec.epoch != "pass" else f"; or begin the next epoch with it: `pipe.seek({epoch + 1})`"
        raise StateError(
            f"with `buckets`, the batches of an epoch depend on the batch size: finish this epoch with batches of {size}, as it was "
            f"begun, not with {extent.batch}{following}"
        )
    if size != extent.batch and slot and spec.epoch != "pass" and spec.order is not None:
        raise StateError(
            f"with `order`, the examples of an epoch of {spec.epoch.steps} steps depend on the batch size: finish this epoch with batches "
            f"of {size}, as it was begun, not with {extent.batch}"
        )
    steps = replace(extent, batch=size).steps
    if step > steps:
        raise StateError(f"the state is at step {step} of an epoch that has {steps} steps")
    if extent.epoch_steps is None and not 0 <= slot - step * size < size:
        raise StateError(f"the state is at step {step} of its epoch, which does not fit {slot} examples in batches of {size}")
    return extent.position(epoch, step, slot, before + state["shift"] - (slot - step * size))


def _check_form(state: Any) -> None:
    if not isinstance(state, Mapping):
        raise StateError(f"a state is a map from `pipe.state()`, got {type(state).__name__}")
    if state.get("pipegen_state") != VERSION:
        raise StateError(f"not a pipegen state of version {VERSION}: {', '.join(map(str, state)) or 'it is empty'}")
    missing = [key for key in _KEYS if key not in state]
    if missing:
        raise StateError(f"the state is incomplete: it lacks {', '.join(missing)}")
    for key in ("epoch", "step", "examples"):
        if not isinstance(state[key], int) or isinstance(state[key], bool) or state[key] < 0:
            raise StateError(f"`{key}` of the state is {state[key]!r}, not a count")
    for key in ("origin", "shift"):
        if not isinstance(state[key], int):
            raise StateError(f"`{key}` of the state is {state[key]!r}, not an integer")


def _with_saved_batches(state: Mapping[str, Any], spec: PipelineSpec) -> PipelineSpec:
    """Sets the batch sizes that a state was saved with, as far as it has them."""
    said = state["spec"] if isinstance(state["spec"], Mapping) else {}

    def sized(model: PipelineSpec, of: Any, usual: int) -> PipelineSpec:
        size = of.get("batch", {}).get("size", usual) if isinstance(of, Mapping) and isinstance(of.get("batch", {}), Mapping) else usual
        size = size if isinstance(size, int) and size > 0 else usual
        return model.model_copy(update={"batch": model.batch.model_copy(update={"size": size})})

    found = sized(spec, said, spec.batch.size)
    of_stages = said.get("stages", {})
    if not found.stages or not isinstance(of_stages, Mapping):
        return found
    stages = []
    for number, stage in enumerate(found.stages):
        copied = stage.model_copy()
        copied._resolved = sized(stage.resolved, of_stages.get(str(number), {}), found.batch.size)
        stages.append(copied)
    return found.model_copy(update={"stages": stages})


def batch_sizes(spec: PipelineSpec, state: Mapping[str, Any] | None = None) -> tuple[int, ...]:
    """The batch size of each stage, or without stages the only one; with a state, those that it was saved with."""
    saved = spec if state is None else _with_saved_batches(state, spec)
    return tuple(stage.resolved.batch.size for stage in saved.stages) or (saved.batch.size,)


class Timeline:
    """The epochs of all stages, and the batches (`steps`) in each; `firsts` has the first epoch of each stage, and the end."""

    def __init__(self, epochs: Sequence[int], steps: Sequence[int]) -> None:
        self.steps = steps
        self.firsts = [0, *accumulate(epochs)]
        self._before = [0, *accumulate(n * per for n, per in zip(epochs, steps, strict=True))]

    @classmethod
    def endless(cls, steps: int) -> Timeline:
        """Makes the timeline of a training without stages; the last stage has no end."""
        return cls([1], [steps])

    @property
    def end(self) -> int:
        """The number of epochs of all stages."""
        return self.firsts[-1]

    def stage(self, epoch: int) -> int:
        """Finds the stage of an epoch; an epoch after the end is in the last one."""
        return min(bisect_right(self.firsts, epoch) - 1, len(self.steps) - 1)

    def of_sizes(self, extents: Sequence[Extent], sizes: Sequence[int]) -> Timeline:
        """Makes the timeline of the same stages with other batch sizes."""
        steps = [replace(extent, batch=size).steps for extent, size in zip(extents, sizes, strict=True)]
        return Timeline([end - begin for begin, end in pairwise(self.firsts)], steps)

    def batches(self, epoch: int, step: int) -> int:
        """Counts the batches before a position."""
        number = self.stage(epoch)
        return self._before[number] + (epoch - self.firsts[number]) * self.steps[number] + step

    def at(self, batches: int) -> tuple[int, int]:
        """Finds the epoch and step after a number of batches."""
        number = min(bisect_right(self._before, batches) - 1, len(self.steps) - 1)
        epoch, step = divmod(batches - self._before[number], max(self.steps[number], 1))
        return self.firsts[number] + epoch, step


def _begun(spec: PipelineSpec, epoch: int) -> tuple[int, int]:
    """The batch size of an epoch, and the number of examples of all earlier epochs with a set number of steps."""
    found, left = 0, epoch
    stages = [(stage.resolved, stage.epochs) for stage in spec.stages] or [(spec, 0)]
    for model, epochs in [*stages[:-1], (stages[-1][0], epoch + 1)]:  # the last stage has no end
        earlier = min(epochs, left)
        found += 0 if model.epoch == "pass" else earlier * model.epoch.steps * model.batch.size
        left -= earlier
        if earlier < epochs:
            break
    return model.batch.size, found


KEY = "fit"  # the key of the record in a state file
UNCOUNTED = (
    "the optimizer of this model does not count the batches of `pipe.train` one by one (there are several optimizers, steps were skipped, "
    "`train_step` is the model's own, or `fit` has other data), so only the ends of epochs can be found again: save with "
    '`save_freq="epoch"`, and put `pipe.callback` behind the callback that saves; to begin a new run, remove the '
    "state file"
)


@dataclass(frozen=True)
class Place:
    """The place where `fit` continues: its epoch, the batches `done` of it, and those of the pipeline over all of its epochs.

    `at` is the position of the pipeline, unless it follows from `batches`.
    """

    epoch: int
    done: int
    batches: int
    at: Position | None = None


@dataclass(frozen=True)
class Record:
    """The record of a run."""

    epoch: int  # an epoch of `fit`
    batches: int  # batches of the pipeline that were done when the epoch began, or was resumed
    iterations: int  # the optimizer's count then; -1 if the model's optimizer does not count
    steps: int  # batches in an epoch of the pipeline
    per_epoch: int  # steps in an epoch of `fit`, as Keras has it
    execution: int = 1  # Keras' `steps_per_execution`
    counts: bool | None = None  # the optimizer was seen to count batches one by one; `None` before the first batch
    finished: bool = False  # `fit` came to its end
    epochs: tuple[tuple[int, int, int | None], ...] = field(default=())
    """`(epoch, iterations at its beginning, length)` of an epoch of `fit`, and of the following ones of that length, up to the next entry;
    the length is `None` while it is unknown. Keras' epochs are longer than it says if `steps_per_execution` does not divide them."""
    since: tuple[int, int, int, int] = (0, 0, 0, 0)
    """An epoch of the pipeline that was begun with batches of another size, its origin and shift, and the number of steps that it has less
    than others. It is counted as if those had been done."""
    has_inner_save: bool = False
    """Keras has saved after the first batch of `epoch`, and the optimizer does not count: Keras' own record takes such weights for those of
    the epoch's beginning."""

    @property
    def begin(self) -> int:
        """The optimizer's count when the run began."""
        return self.epochs[0][1]

    def with_epoch(self, epoch: int, iterations: int) -> Record:
        """Adds an epoch of `fit` that begins at a count."""
        known = tuple(entry for entry in self.epochs if entry[0] <= epoch and entry[1] <= iterations)
        if known:
            first, at, length = known[-1]
            if length is None and epoch == first + 1:
                return replace(self, epochs=(*known[:-1], (first, at, iterations - at)))
            if at + (epoch - first) * (length or 0) == iterations:
                return replace(self, epochs=known)
        return replace(self, epochs=(*known, (epoch, iterations, None)))

    def moved(self, epoch: int, batches: int, iterations: int) -> Record:
        """Moves the record to the beginning of an epoch."""
        return replace(self, epoch=epoch, batches=batches, iterations=iterations, has_inner_save=False).with_epoch(epoch, iterations)

    def verified(self, ran: int, executions: int) -> Record:
        """Sets `counts`, after the optimizer's count has gone up by `ran`.

        Keras has run the model `executions` times, each for `execution` batches, or for fewer at the end of the data.
        """
        most = executions * self.execution
        return replace(self, counts=self.counts is not False and most - self.execution < ran <= most)

    def find(self, iterations: int) -> Place:
        """Finds the place of weights of this run by their optimizer's count. Raises `StateError` if they are of another run, or their
        place is unknown."""
        ran = iterations - self.iterations
        if self.counts is False:
            if ran:
                raise StateError(UNCOUNTED)
            return Place(self.epoch, 0, self.batches)
        if self.counts is None and ran not in (0, min(self.execution, self.per_epoch), self.execution):
            raise StateError(UNCOUNTED)
        known = [entry for entry in self.epochs if entry[1] <= iterations]
        if not known:
            raise StateError(f"the weights are older ({iterations} optimizer steps) than the run ({self.begin} at its begin)")
        epoch, at, length = known[-1]
        done = iterations - at
        if length:
            epoch, done = epoch + done // length, done % length
        elif done >= self.per_epoch:
            if done > -(-self.per_epoch // self.execution) * self.execution:
                raise StateError(
                    f"the weights have seen {done} batches since epoch {epoch} of the saved run began, which has {self.per_epoch}: they "
                    "are from another run"
                )
            epoch, done = epoch + 1, 0
        return Place(epoch, done, self.batches + ran)

    def located(self, epoch: int, step: int) -> Position:
        """Finds the position of a step of the pipeline, if all epochs counted their full number of steps."""
        begun, origin, shift, missing = self.since
        return Position(epoch, step - missing, origin, shift) if epoch == begun else Position(epoch, step, 0, shift)

    def to_json(self) -> dict[str, Any]:
        """Converts the record to plain values for a state file."""
        return {**self.__dict__, "epochs": [list(entry) for entry in self.epochs], "since": list(self.since)}

    @classmethod
    def from_json(cls, found: Any) -> Record:
        """Reads the result of `to_json`; raises `StateError` for anything else."""
        try:
            epochs = tuple((int(e), int(i), None if n is None else int(n)) for e, i, n in found["epochs"])
            numbers = {name: int(found[name]) for name in ("epoch", "batches", "iterations", "steps", "per_epoch", "execution")}
            begun, origin, shift, missing = (int(n) for n in found["since"])
            if not epochs or min(numbers["steps"], numbers["per_epoch"], numbers["execution"]) < 1:
                raise ValueError("it has no epochs")
            since = begun, origin, shift, missing
            finished, inner = bool(found["finished"]), bool(found["has_inner_save"])
            return cls(**numbers, counts=found["counts"], finished=finished, epochs=epochs, since=since, has_inner_save=inner)
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the record of `fit` in the state is damaged ({error}); remove the file to start anew") from None


KERAS_FILE = "training_metadata.json"
KERAS_WEIGHTS = "latest.weights.h5"  # the files of `BackupAndRestore`, which writes first the weights, then the epoch
_OLDER = ".bkp"  # the suffix of its files of the save before, which it keeps with `double_checkpoint=True`
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_END_AT = {0: 40, 1: 44, 2: 28, 3: 28}
"""The offset of the end of the file in the superblock of an HDF5 file, by version. The library writes it last."""


class Checkpoints:
    """The files of `BackupAndRestore` and the state in a folder; without a folder, nothing is read or kept."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.file = folder / "pipegen.state.json" if folder is not None else None

    @property
    def exist(self) -> bool:
        """A state exists."""
        return self.file is not None and self.file.exists()

    def state(self) -> dict[str, Any] | None:
        """Reads the state, if there is one; raises `StateError` if it is damaged."""
        if self.file is None or not self.file.exists():
            return None
        try:
            state = json.loads(self.file.read_text())
        except ValueError as error:
            raise StateError(f"{self.file} is damaged ({error}); remove it to start again") from None
        if not isinstance(state, dict):
            raise StateError(f"{self.file} is not a state; remove it to start again")
        return state

    def keras(self) -> dict[str, Any]:
        """Reads Keras' record of the run; empty without one."""
        return {} if self._folder is None else _metadata(self._folder / KERAS_FILE)

    def newer(self, name: str) -> bool:
        """Decides if a file of the folder was written after the state."""
        state, own = _time(self.file), _time(self._folder and self._folder / name)
        return state is not None and own is not None and own > state

    def save(self, state: dict[str, Any], *, late: bool = False) -> None:
        """Writes the state; a late one keeps the time of the file, which is that of the epoch's beginning."""
        if self.file is None:
            return
        content, time = [json.dumps(state).encode()], _time(self.file) if late else None
        try:
            _write(self.file, content, time)
        except FileNotFoundError:  # Keras, in another process with this folder, has removed the folder meanwhile
            _write(self.file, content, time)

    def mend(self, *, dated: bool) -> None:
        """Replaces damaged weights, left by a process that was killed while Keras wrote, by older ones.

        Keras does so itself with `double_checkpoint=True`, but only for some kinds of damage, and not for its record of the epoch. With
        `dated`, the older weights get the time of the state, which is not older than they are. Raises `StateError` if there are weights,
        but none of them can be read."""
        if self._folder is None or not self._folder.is_dir():
            return
        remove_parts(self._folder)
        weights, metadata = self._folder / KERAS_WEIGHTS, self._folder / KERAS_FILE
        older = _older(weights)
        why = _damage(weights) if weights.exists() else "it is not there" if older.exists() else ""
        if why and not any(file.exists() for file in (older, metadata, _older(metadata))) and self.exist:
            log.warning("%s cannot be read (%s), and was the first save: the run starts again", weights, why)
            weights.unlink()
        elif why:
            why_older = _damage(older) if older.exists() else ""
            if not older.exists() or why_older:
                raise StateError(self._lost(why, why_older))
            log.warning("%s cannot be read (%s); the run continues from the save before, %s", weights, why, older)
            time = _time(self.file) if dated else None
            _replace_metadata(metadata, time)
            _copy(older, weights, time)  # last: if this process is killed before, the next one starts here again
        elif weights.exists() and metadata.exists() and not _metadata(metadata):
            log.warning("%s is incomplete, as after a kill during its write; the weights give the position without it", metadata)
            _replace_metadata(metadata, None)

    def _lost(self, why: str, why_older: str) -> str:
        older, files = f"{KERAS_WEIGHTS}{_OLDER}", f"{KERAS_WEIGHTS}* and {KERAS_FILE}*"
        before = f"those of the save before, {older}, cannot be read either ({why_older})" if why_older else "no older ones exist"
        return (
            f"the weights in {str(self._folder)!r} cannot be read: {KERAS_WEIGHTS} is incomplete ({why}), as after a kill during its "
            f"write, and {before}. To begin a new run, remove {files} and pipegen.state.json from the folder. To continue from other "
            f"weights of this run, load them before `fit`, and remove {files}. `BackupAndRestore(…, double_checkpoint=True)` keeps the "
            "save before"
        )


def _older(file: Path) -> Path:
    return file.with_name(f"{file.name}{_OLDER}")


def _metadata(file: Path) -> dict[str, Any]:
    """Reads Keras' record of an epoch; empty if it is missing or incomplete."""
    with suppress(OSError, ValueError):
        found = json.loads(file.read_text())
        return found if isinstance(found, dict) and isinstance(found.get("epoch"), int) else {}
    return {}


def _replace_metadata(file: Path, time: int | None) -> None:
    """Replaces Keras' record of an epoch by the older one, or removes it if there is none."""
    if _metadata(_older(file)):
        _copy(_older(file), file, time)
    else:
        file.unlink(missing_ok=True)


def _time(file: Path | None) -> int | None:
    """The time a file was written, in ns; `None` without one."""
    with suppress(OSError):
        return file.stat().st_mtime_ns if file is not None else None
    return None


def _copy(file: Path, to: Path, time: int | None) -> None:
    with open(file, "rb") as source:
        _write(to, iter(partial(source.read, 1 << 22), b""), time)


def _write(file: Path, blocks: Iterable[bytes], time: int | None) -> None:
    """Writes a whole file, with the time `time` if it is given."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(file) as stream:
        stream.writelines(blocks)
        stream.flush()
        if time is not None:
            os.utime(stream.fileno(), ns=(time, time))


def _damage(file: Path) -> str:
    """Reads a file of weights, and describes its damage; "" if all of it can be read. Raises `StateError` if this user may not read it."""
    import h5py

    def read(_name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            item[()]

    try:
        with h5py.File(file, "r") as stored:
            stored.visititems(read)
        with open(file, "rb") as stream:
            head, size = stream.read(64), os.fstat(stream.fileno()).st_size
        at = _END_AT.get(head[8]) if head.startswith(_SIGNATURE) and len(head) == 64 else None
        if at is None or head[13 if head[8] < 2 else 9] != 8:  # an unusual head, which does not say the end
            return ""
        end = int.from_bytes(head[at : at + 8], "little")
        return "" if end == size else f"it has {size:,} bytes, and its header says {end:,}"
    except PermissionError as error:
        raise StateError(f"the weights {str(file)!r} cannot be read: {error.strerror}") from None
    except BlockingIOError:  # another process writes it
        return ""
    except Exception as error:  # h5py raises many types for damage: OSError, KeyError, RuntimeError, ValueError
        return " ".join(str(error).split())
