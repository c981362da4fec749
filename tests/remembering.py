"""What Keras calls in runs of `fit` that are broken off: a model that remembers, in its weights, every batch that it was trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
from resuming import PRIME, Crash


class Memory(keras.Model):
    """A model whose weights hold a digest of all the rows that it was trained on, in their order; `trained` has the rows of this process.

    Args:
        ran: How often the optimizer runs for a batch.
    """

    def __init__(self, ran: int = 1) -> None:
        super().__init__()
        self.weight = self.add_weight(shape=(), initializer="zeros", name="weight")
        self.digest = self.add_weight(shape=(), initializer="zeros", dtype="float64", trainable=False, name="digest")
        self.trained: list[tuple[int, ...]] = []
        self.ran = ran
        self.built = True

    def call(self, x: Any) -> Any:
        return x

    def train_step(self, data: Any) -> dict[str, Any]:
        rows = tuple(int(row) for row in np.asarray(data[1]))
        value = float(self.digest.numpy())
        for row in rows:
            value = (31 * value + row + 1) % PRIME
        self.digest.assign(value)
        self.trained.append(rows)
        for _ in range(self.ran):
            self.optimizer.apply([np.float32(0)], [self.weight])
        return {}

    def test_step(self, data: Any) -> dict[str, Any]:
        return {}

    @property
    def remembers(self) -> int:
        return int(self.digest.numpy())


class CrashAt(keras.callbacks.Callback):
    """Breaks off once the model has been trained on so many batches in this process, behind all other callbacks."""

    def __init__(self, batches: int) -> None:
        super().__init__()
        self.batches = batches

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if len(self.model.trained) >= self.batches:
            raise Crash


class CrashingBackup(keras.callbacks.BackupAndRestore):
    """Breaks off at one of its saves.

    Args:
        folder: Where it saves.
        save_freq: As Keras has it.
        crash: At which save, from 1; 0 for none.
        torn: Between the weights and the epoch, rather than behind both.
        cut: In the middle of the weights.
    """

    def __init__(self, folder: Path, save_freq: Any, crash: int = 0, *, torn: bool = False, cut: bool = False, **options: Any) -> None:
        super().__init__(str(folder), save_freq=save_freq, double_checkpoint=cut, **options)
        self.left, self.torn, self.cut = crash, torn, cut

    def _save_model(self) -> None:
        self.left -= 1
        if self.left == 0 and self.torn:
            self.model.save_weights(filepath=self._weights_path, overwrite=True)
            raise Crash
        if self.left == 0 and self.cut:
            self.model.save_weights = self._save_half
        super()._save_model()
        if self.left == 0:
            raise Crash

    def _save_half(self, filepath: str, overwrite: bool) -> None:
        del self.model.save_weights
        self.model.save_weights(filepath, overwrite=overwrite)
        file = Path(filepath)
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        raise Crash
