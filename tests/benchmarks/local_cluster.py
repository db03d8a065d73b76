"""Processes of this machine as the workers of a cluster."""

import contextlib
import json
import socket


def local_cluster(size):
    """TF_CONFIG of each of so many processes, at free ports; "" for one."""
    if size == 1:
        return [""]
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(size)]
        for one in sockets:
            one.bind(("localhost", 0))
        addresses = [f"localhost:{one.getsockname()[1]}" for one in sockets]
    cluster = {"worker": addresses}
    return [
        json.dumps(
            {"cluster": cluster, "task": {"type": "worker", "index": index}}
        )
        for index in range(size)
    ]
