"""Programs in processes of their own, for what TensorFlow and Keras settle once a process: devices, the backend."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import copies

TESTS = Path(__file__).parent
PRELUDE = """
import json, sys
sys.path.insert(0, {tests!r})
import numpy as np
import tensorflow as tf
cpus = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration() for _ in range(2)])
from pathlib import Path
from pipes import RESIZE, SIZE, pipeline, stream
folder = Path({folder!r})
STEPS = [RESIZE, "random_flip", {{"normalize": {{"preset": "tf"}}}}]
def sums(ds):
    return [round(float(np.sum(np.asarray(x), dtype=np.float64)), 1) for x, _ in ds]
def model():
    import keras
    keras.utils.set_random_seed(1)
    kl = keras.layers
    made = keras.Sequential([keras.Input((SIZE, SIZE, 3)), kl.AveragePooling2D(4), kl.Flatten(), kl.Dense(3, "softmax")])
    jit = "auto" if keras.backend.backend() != "tensorflow" else False  # XLA takes longer to compile it than the training takes
    made.compile(keras.optimizers.SGD(0.01), "sparse_categorical_crossentropy", jit_compile=jit)
    return made
"""


def in_process(folder: Path, body: str, *, beside: bool = False, **environment: str) -> Any:
    """Run a program after the prelude and give what it printed last, as JSON.

    One that runs `beside` another, which it may wait for, is started anew: copies run one at a time.
    """
    program = PRELUDE.format(tests=str(TESTS), folder=str(folder)) + textwrap.dedent(body)
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", **environment}
    if beside or "KERAS_BACKEND" in environment:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=False, env=env)
    else:
        done = copies.run(program, env=env)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.strip().splitlines()[-1])
