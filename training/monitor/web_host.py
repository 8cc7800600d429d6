"""The monitor's web host in a run with local steps: a server in a thread of its own."""

import threading

from starlette.types import ASGIApp

from training.authority.serving import listen, make_server

MOST_AT_ONCE = 500  # connections; an upload takes as much memory as its file has bytes
CLOSING_SECONDS = 10.0
EVERYWHERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # how to get there from here


class WebHost:
    """Serves an application until it is closed, at `address` for this machine.

    Args:
        port: to listen on, 0 for any.

    Raises:
        InputError: the port is taken.
    """

    def __init__(self, service: ASGIApp, host: str, port: int) -> None:
        self._listener = listen(host, port)
        host = EVERYWHERE.get(host, host)
        shown = f"[{host}]" if ":" in host else host
        self.address = f"http://{shown}:{self._listener.getsockname()[1]}"
        self._server = make_server(service, MOST_AT_ONCE)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._listener]}, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Answer what has been asked, and end."""
        self._server.should_exit = True
        self._thread.join(CLOSING_SECONDS)
        self._listener.close()
