"""`pipegen service`: the servers of TensorFlow's tf.data service, which make batches for `runtime: {service: …}`."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from pipegen.cli.common import as_group, start_tensorflow
from pipegen.cli.failures import CannotRun
from pipegen.terminal import say

_ADDRESS = re.compile(r"^(?:grpc://)?([^/:\s]+):([0-9]{1,5})$")

Port = Annotated[int, typer.Option("--port", min=1, max=65535, metavar="N", help="The port, on every network of this machine.")]


def dispatcher(
    port: Port = 5050,
    work_dir: Annotated[
        str | None, typer.Option("--work-dir", metavar="FOLDER", help="Keep a journal here, to continue after a restart.")
    ] = None,
) -> None:
    """Run the dispatcher, which assigns steps to workers.

    One dispatcher serves any number of workers and trainers. With --work-dir it may be restarted on the same port while they run.
    It prints a line when it is ready, and one whenever the number of workers changes; SIGTERM and Ctrl-C stop it.

    There is no authentication: every client that reaches the port can run graphs on the workers. Restrict access in the network.

    Examples:
      pipegen service dispatcher
      pipegen service dispatcher --port 5050 --work-dir /var/lib/pipegen
    """
    _run(f"dispatcher on port {port}", port, lambda servers: servers.dispatcher(port, work_dir), lambda own: (own._num_workers(), "worker"))


def worker(
    dispatcher: Annotated[str, typer.Option("--dispatcher", metavar="HOST:PORT", help="The dispatcher, such as dispatcher:5050.")],
    port: Port = 5051,
    address: Annotated[
        str | None,
        typer.Option("--address", metavar="HOST:PORT", help="This worker's address for others; by default this host's name."),
    ] = None,
) -> None:
    """Run a worker, which makes batches for the trainers of a dispatcher.

    It needs TensorFlow in the trainers' version, the same type of processor, and the data under the same paths. It waits until the
    dispatcher runs. It prints a line when it is ready, and one whenever the number of its jobs changes; SIGTERM and Ctrl-C stop
    it: trainers then make the unfinished batches themselves.

    Examples:
      pipegen service worker --dispatcher dispatcher:5050
      pipegen service worker --dispatcher 10.0.0.2:5050 --port 5051 --address 10.0.0.7:5051
    """
    to = _host_and_port("--dispatcher", dispatcher)
    reached = _host_and_port("--address", address) if address is not None else f"{socket.gethostname()}:{port}"

    def start(servers: Any) -> Any:
        say(f"worker {reached}: looking for the dispatcher at {to}")
        return servers.worker(to, port, reached)

    _run(f"worker {reached} of {to}", port, start, lambda own: (own._num_tasks(), "job"), to)


def _run(what: str, port: int, start: Callable[[Any], Any], load: Callable[[Any], tuple[int, str]], needs: str | None = None) -> None:
    """Starts a server and runs it until it is told to stop; `load` is how much it has to do, and `needs` is its dispatcher."""
    _free(port)
    start_tensorflow()
    import tensorflow as tf

    from pipegen.backend.service import servers

    try:
        server = start(servers)
    except tf.errors.OpError as error:
        raise CannotRun(f"the server does not start: {error.message.splitlines()[0]}") from None

    def health() -> str:
        number, unit = load(server)
        return f"health: {what}, {number} {unit}{'' if number == 1 else 's'}"

    origin = servers.origin_here()
    say(f"ready: {what}, TensorFlow {origin.tensorflow}, processor {origin.processor or 'unknown'}")
    name = servers.run_until_told(health, say)
    say(f"stopping: {what}, {name}")
    servers.stop(server, needs)
    say(f"stopped: {what}")
    sys.stdout.flush()
    os._exit(0)  # a clean exit would wait for the server's threads


def _host_and_port(option: str, given: str) -> str:
    found = _ADDRESS.match(given)
    if found is None or not 0 < int(found[2]) < 65536:
        raise typer.BadParameter(f"{given!r} is not HOST:PORT, such as dispatcher:5050", param_hint=f"'{option}'")
    return f"{found[1]}:{found[2]}"


def _free(port: int) -> None:
    """Raises `CannotRun` if the port is in use; TensorFlow's own error has many lines."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("", port))
        except OSError as error:
            raise CannotRun(f"cannot listen on port {port}: {error.strerror}", "use another one: --port N") from None


app = as_group("Run TensorFlow's servers that make batches on other machines.", dispatcher, worker)
