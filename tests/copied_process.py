"""Has imported TensorFlow and begun nothing, and copies itself for each program that it is asked to run: see `copies.py`.

Started as `python -I copied_process.py FD`; requests are lines of JSON on that socket, and so are the answers: a process, and its end.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import traceback
from typing import Any

import tensorflow as tf  # noqa: F401 - this is what takes long
from tensorflow.python.eager import context


def serve(ours: socket.socket) -> dict[str, Any] | None:
    """Answers requests until there are no more; in a copy, returns the request that it is made for."""
    lines = ours.makefile("r")
    for line in lines:
        assert not context.context()._initialized, "TensorFlow's threads are not in a copy"
        process = os.fork()
        if not process:
            lines.close()
            ours.close()
            return json.loads(line)
        ours.sendall(f"{process}\n".encode())
        ours.sendall(f"{os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])}\n".encode())
    return None


def become(asked: dict[str, Any]) -> None:
    """Takes the place of a process that is started anew: its folder, its environment, where it writes, its signals."""
    for number, path in enumerate((os.devnull, asked["stdout"], asked["stderr"])):
        given = os.open(path, os.O_WRONLY if number else os.O_RDONLY)
        os.dup2(given, number)
        os.close(given)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.argv[1:] = asked["argv"]
    sys.path[:0] = ["", *filter(None, asked["env"].get("PYTHONPATH", "").split(os.pathsep))]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


request = serve(socket.socket(fileno=int(sys.argv[1])))
if request is not None:
    become(request)
    try:
        exec(compile(request["program"], "<program>", "exec"), {"__name__": "__main__"})
    except KeyboardInterrupt:
        traceback.print_exc()
        sys.exit(130)
