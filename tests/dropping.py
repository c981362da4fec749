"""A server in front of another one that cuts off connections."""

from __future__ import annotations

import socket
import socketserver
import threading


class Dropping(socketserver.ThreadingTCPServer):
    """Hands connections on to another port, and cuts off some when the answer begins.

    Args:
        port: Of the other server.
        every: Which connections: every third one, for example.
    """

    daemon_threads = allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, port: int, every: int = 3) -> None:
        self.port, self.every, self.seen, self.dropped = port, every, 0, 0
        super().__init__(("127.0.0.1", 0), Handing)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class Handing(socketserver.BaseRequestHandler):
    server: Dropping

    def handle(self) -> None:
        self.server.seen += 1
        drops = self.server.seen % self.server.every == 0
        with socket.create_connection(("127.0.0.1", self.server.port)) as there:
            back = threading.Thread(target=self.hand, args=(there, self.request, drops), daemon=True)
            back.start()
            self.hand(self.request, there, False)
            back.join(5)

    def hand(self, one: socket.socket, other: socket.socket, drops: bool) -> None:
        try:
            while content := one.recv(65536):
                if drops:
                    self.server.dropped += 1
                    break
                other.sendall(content)
        except OSError:
            pass
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
