"""Runs TensorFlow, and other code that may crash or hang, in separate processes with a time limit.

Such a process runs this file: `python -m pipegen.observe.asking` asks TensorFlow, `python -m pipegen.observe.asking pyarrow lmdb` imports
libraries. It prints a line of JSON for each answer, and before it the task that it begins. So the reader knows the answers before a crash,
and the task that crashed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from pipegen.terminal import say

_PATIENCE = 180.0  # the time limit in seconds; importing TensorFlow from slow storage takes a minute
_HOME = str(Path(__file__).resolve().parents[2])


def ask(environment: Mapping[str, str], *, patience: float = _PATIENCE) -> dict[str, Any]:
    """Asks TensorFlow in another process, and collects its answers; after a failure, `failed` is the reason and `doing` the task."""
    code, out, err = run_python(["-m", __name__], environment, patience)
    answers = {name: value for answer in answers_of(out) for name, value in answer.items()}
    if code != 0:
        answers["failed"] = reason(code, err, patience)
    return answers


def answers_of(out: str) -> Iterator[dict[str, Any]]:
    """Yields the lines of JSON in the output of a process."""
    for line in out.splitlines():
        try:
            answer = json.loads(line)
        except ValueError:  # printed by a library
            continue
        if isinstance(answer, dict):
            yield answer


def run_python(arguments: list[str], environment: Mapping[str, str], patience: float) -> tuple[int | None, str, str]:
    """Runs this Python; returns its exit code (`None` after a timeout) and its output on both streams."""
    path = os.pathsep.join([_HOME, *filter(None, [environment.get("PYTHONPATH")])])
    try:
        done = subprocess.run(  # noqa: S603 - this Python, and pipegen's own code
            [sys.executable, *arguments],
            env={**environment, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=patience,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return None, (late.stdout or b"").decode(errors="replace"), (late.stderr or b"").decode(errors="replace")
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def reason(code: int | None, err: str, patience: float) -> str:
    """Describes why a process failed: the signal that ended it, or the last line of its errors."""
    if code is None:
        return f"not done after {patience:.0f} s"
    if code < 0:
        return f"it crashes with {signal.Signals(-code).name}"
    lines = [line.strip() for line in err.splitlines() if line.strip()]
    return lines[-1][:300] if lines else f"exit code {code}"


def main() -> None:
    """Prints one answer of TensorFlow after another."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    begin, spent = time.perf_counter(), time.process_time()
    answer(doing="importing TensorFlow")
    import tensorflow as tf

    seconds, cpu_s = round(time.perf_counter() - begin, 2), round(time.process_time() - spent, 2)
    info = tf.sysconfig.get_build_info()
    build = {"cuda": info.get("cuda_version"), "cudnn": info.get("cudnn_version"), "is_cuda": bool(info.get("is_cuda_build"))}
    answer(tensorflow=tf.__version__, seconds=seconds, cpu_s=cpu_s, build=build)
    answer(doing="importing Keras")
    import keras

    from pipegen.private.tensorflow import is_onednn_build

    answer(keras=keras.__version__, keras_backend=keras.backend.backend())
    answer(onednn=is_onednn_build())
    answer(doing="looking for GPUs")
    answer(driver_cuda=_driver_cuda())
    gpus = tf.config.list_physical_devices("GPU")
    details = tf.config.experimental.get_device_details
    answer(gpus=[str(details(device).get("device_name", device.name)) for device in gpus])
    answer(doing="compiling with XLA")
    answer(**_xla(tf))


def answer(**answers: Any) -> None:
    """Prints answers as a line of JSON."""
    say(json.dumps(answers))
    sys.stdout.flush()


def _driver_cuda() -> int | None:
    """The newest CUDA version that the driver supports, such as 12080 for 12.8."""
    import ctypes

    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    version = ctypes.c_int()
    return version.value if driver.cuDriverGetVersion(ctypes.byref(version)) == 0 else None


def _xla(tf: Any) -> dict[str, Any]:
    begin = time.perf_counter()
    try:
        with tf.device("CPU:0"):
            right = tf.function(lambda x: 2 * x + 1, jit_compile=True)(tf.constant([1.0, 2.0])).numpy().tolist() == [3.0, 5.0]
    except Exception as error:  # any error is an answer
        return {"xla": False, "why": str(error).strip().splitlines()[0]}
    return {"xla": right, "xla_seconds": round(time.perf_counter() - begin, 2), "why": "" if right else "it gives wrong numbers"}


def import_all(modules: list[str]) -> None:
    """Imports modules one after another, and prints the errors."""
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # the working directory, where a script may have a library's name
    for module in modules:
        answer(doing=module)
        try:
            import_module(module)
        except Exception as error:  # any error is an answer
            lines = str(error).strip().splitlines()
            named = "" if isinstance(error, ImportError) and lines else f"{type(error).__name__}{': ' * bool(lines)}"
            answer(failed=module, why=named + "".join(lines[:1])[:300], lacks_module=isinstance(error, ModuleNotFoundError))
    answer(doing=None)


if __name__ == "__main__":
    if sys.argv[1:]:
        import_all(sys.argv[1:])
    else:
        main()
