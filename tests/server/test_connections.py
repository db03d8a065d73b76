"""Clients that are slow, do not read, are too many, or leave."""

import contextlib
import gzip
import http.client
import json
import socket
import threading
import time

import pytest

from kseq.commands.serve import _listening
from kseq.server import Batcher, RestApp, http_protocol, request_body, serve
from kseq.server.body_memory import BodyMemory
from tests.waiting import wait_for

HELLO = b'{"instances": ["hello"]}'
ANSWER = {"predictions": [{"text": "HELLO", "score": 5.0}]}
HEAD = (
    b"POST /v1/models/many:predict HTTP/1.1\r\n"
    b"Host: localhost\r\nContent-Length: %d\r\n\r\n"
)
PATIENCE = 0.2  # seconds; 20 where nobody is in a hurry


class Server:
    """An HTTP server in a thread.

    Args:
        store: `ModelStore`.
        queue_size: int.
        grace: float, seconds that it may take to stop.
        options: of `RestApp`.
    """

    def __init__(self, store, queue_size=256, grace=20.0, **options):
        self.batcher = Batcher(queue_size)
        app = RestApp(store, self.batcher, hosts=("localhost",), **options)
        self._server = serve._Server(serve._config(app), None, grace)
        self._listening = _listening("127.0.0.1", 0)
        self.address = self._listening.getsockname()
        self._thread = threading.Thread(
            target=self._server.run, args=([self._listening],)
        )
        self._thread.start()
        wait_for(lambda: self._server.started)

    @property
    def connections(self):
        return len(self._server.server_state.connections)

    def begin_to_stop(self):
        """What SIGTERM does."""
        self._server.should_exit = True

    def is_stopped(self):
        return not self._thread.is_alive()

    def stop(self):
        self.begin_to_stop()
        self._thread.join(40)
        self._listening.close()
        self.batcher.close()
        assert self.is_stopped()


@pytest.fixture
def patience(monkeypatch):
    monkeypatch.setattr(http_protocol, "_PATIENCE", PATIENCE)


@pytest.fixture
def open_server(store):
    with contextlib.ExitStack() as stack:

        def make(**options):
            server = Server(store, **options)
            stack.callback(server.stop)
            return server

        yield make


@pytest.fixture(scope="module")
def one_server(store):
    """For tests that leave it as it was."""
    server = Server(store)
    yield server
    server.stop()


@pytest.fixture
def connect():
    """Function that connects to a server, and sends something."""
    with contextlib.ExitStack() as stack:

        def make(server, data=b"", receive_buffer=None):
            made = stack.enter_context(socket.socket())
            if receive_buffer:
                made.setsockopt(
                    socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer
                )
            made.settimeout(20)
            made.connect(server.address)
            made.sendall(data)
            return made

        yield make


def receive(connection):
    """(status, object, whether the server closes) of one answer."""
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    return answer.status, json.loads(answer.read()), answer.will_close


def request(body=HELLO, headers=b""):
    return HEAD[:-2] % len(body) + headers + b"\r\n" + body


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /healthz HTTP/1.0\r\n", b"200"),  # HAProxy's default check
        (b"GET /readyz HTTP/1.0\r\n", b"200"),
        (b"GET /v1/models/many HTTP/1.0\r\n", b"200"),
        (b"GET /readyz HTTP/1.1\r\nHost: pod\r\nConnection: close\r\n", b"200"),
        (b"GET /readyz HTTP/1.1\r\n", b"400"),  # HTTP/1.1 needs a Host
    ],
)
def test_probes(store, one_server, connect, head, status):
    store.poll()  # otherwise not ready a minute after the last poll
    connection = connect(one_server, head + b"\r\n")
    answer = b"".join(iter(lambda: connection.recv(2**16), b""))
    assert answer[9:12] == status


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        (b"http://localhost/readyz", b"evil.example", b"200"),
        (b"HTTP://LOCALHOST:1", b"evil.example", b"200"),
        (b"http://[::1]/page/page.js?a", b"evil.example", b"200"),
        (b"http://localhost/v1/models/many", b"evil.example", b"200"),
        (b"http://localhost/v1/models/m%61ny", b"evil.example", b"200"),
        (b"http://localhost/http://localhost/", b"localhost", b"404"),
        (b"https://evil.example/", b"localhost", b"403"),
        (b"http://localhost@evil.example/", b"localhost", b"403"),
        (b"http:///", b"localhost", b"403"),
    ],
)
def test_a_target_with_a_host(store, one_server, connect, target, host, status):
    """As a client sends it that takes the server for a proxy."""
    store.poll()  # otherwise not ready a minute after the last poll
    head = b"GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"
    connection = connect(one_server, head % (target, host))
    answer = b"".join(iter(lambda: connection.recv(2**16), b""))
    assert answer[9:12] == status


@pytest.mark.parametrize("method", [b"POST", b"HEAD", b"GET"])
@pytest.mark.parametrize("wait", [0, 0.2], ids=["at once", "later"])
def test_a_body_that_breaks_off(one_server, connect, caplog, method, wait):
    """A second answer, after that of the protocol, would be a traceback."""
    head = b"%s /v1/models/many:predict HTTP/1.1\r\nHost: localhost\r\n"
    chunked = b"Transfer-Encoding: chunked\r\n\r\n"
    connection = connect(one_server, head % method + chunked)
    time.sleep(wait)
    connection.sendall(b"no size of a chunk\r\n\r\n")
    answer = connection.recv(2**16)
    assert answer.startswith(b"HTTP/1.1 400") or method != b"POST"
    wait_for(lambda: is_ended(connection))
    assert not caplog.text.count("Traceback")


def is_ended(connection):
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_headers_that_do_not_come(patience, open_server, connect):
    server = open_server()
    waiting = [
        connect(server, data) for data in (b"", HEAD[:20], HEAD[:-2] % 9)
    ]
    assert all(map(is_ended, waiting))


def test_headers_of_a_second_request_that_do_not_come(
    patience, open_server, connect
):
    connection = connect(open_server(), request())
    assert receive(connection) == (200, ANSWER, False)
    connection.sendall(HEAD[:20])
    assert is_ended(connection)


def test_half_a_request_sent_before_the_answer(patience, open_server, connect):
    connection = connect(open_server(), request() + HEAD[:20])
    assert receive(connection) == (200, ANSWER, False)
    assert is_ended(connection)


def test_who_pauses_between_requests_stays(patience, open_server, connect):
    connection = connect(open_server())
    for _ in range(2):
        connection.sendall(HEAD[:20])
        time.sleep(PATIENCE / 4)
        connection.sendall((HEAD % len(HELLO))[20:] + HELLO)
        assert receive(connection) == (200, ANSWER, False)
        time.sleep(3 * PATIENCE)  # two checks or more


def test_a_body_that_does_not_come(open_server, connect):
    server = open_server(timeout=0.2)
    connection = connect(server, HEAD % 1000 + HELLO)
    status, answer, closes = receive(connection)
    assert (status, closes) == (408, True)
    assert "in time" in answer["error"]
    assert is_ended(connection)
    assert receive(connect(server, request())) == (200, ANSWER, False)


def test_a_body_that_goes_on_after_its_answer(patience, open_server, connect):
    data = (HEAD % 10**6).replace(b"many", b"none") + b"{"
    connection = connect(open_server(), data)
    assert receive(connection)[0] == 404
    with pytest.raises(ConnectionError):
        for _ in range(1000):
            connection.sendall(b" ")
            time.sleep(PATIENCE / 10)


def large_request():
    """A request whose answer no buffer of the kernel takes."""
    instances = [{"b64": "A" * 4 * 2**20}] * 4
    body = {"signature_name": "to_bytes", "instances": instances}
    return request(json.dumps(body).encode())


def test_an_answer_that_is_not_read(patience, open_server, connect):
    server = open_server()
    connect(server, large_request(), receive_buffer=4096)
    wait_for(lambda: server.connections == 1)
    wait_for(lambda: server.connections == 0)


def test_an_answer_that_is_read_slowly(monkeypatch, open_server, connect):
    monkeypatch.setattr(http_protocol, "_PATIENCE", 0.5)
    server = open_server()
    connection = connect(server, large_request())
    size, end = 0, time.monotonic() + 2
    while size < 16 * 2**20:
        size += len(connection.recv(2**18))
        if time.monotonic() < end:
            time.sleep(0.01)
    assert server.connections == 1


def test_the_end_does_not_wait_for_an_answer_that_is_not_read(
    open_server, connect, held
):
    server = open_server(grace=0.3)
    connection = connect(server, large_request(), receive_buffer=4096)
    wait_for(lambda: held.begun)
    held.set()
    assert connection.recv(1) == b"H"  # it is being sent
    server.begin_to_stop()
    wait_for(server.is_stopped)


@pytest.mark.parametrize(
    "headers", [b"", b"Connection: keep-alive\r\n", b"Connection: close\r\n"]
)
def test_the_last_answer_of_a_connection_says_so(
    open_server, connect, held, headers
):
    server = open_server()
    connection = connect(server, request(headers=headers))
    wait_for(lambda: held.begun)
    server.begin_to_stop()
    wait_for(lambda: server._listening.fileno() == -1)
    held.set()
    assert receive(connection) == (200, ANSWER, True)
    assert is_ended(connection)
    wait_for(server.is_stopped)


def test_the_end_does_not_wait_for_half_a_request(open_server, connect):
    server = open_server(grace=0.3)
    connect(server, HEAD % 1000 + HELLO)
    connect(server, HEAD[:20])
    wait_for(lambda: server.connections == 2)
    server.begin_to_stop()
    wait_for(server.is_stopped)


def test_of_too_many_connections_the_longest_idle_makes_room(
    monkeypatch, open_server, connect
):
    monkeypatch.setattr(http_protocol, "_CONNECTIONS", 2)
    server = open_server()
    first, second = (connect(server, request()) for _ in range(2))
    for connection in (first, second):
        assert receive(connection) == (200, ANSWER, False)
    first.sendall(request())
    assert receive(first) == (200, ANSWER, False)
    for _ in range(5):
        assert receive(connect(server, request())) == (200, ANSWER, False)
    assert is_ended(second)
    wait_for(lambda: server.connections == 2)


def test_connections_that_send_no_request_make_room(
    monkeypatch, open_server, connect
):
    monkeypatch.setattr(http_protocol, "_CONNECTIONS", 2)
    server = open_server()
    silent = [connect(server, data) for data in (b"", HEAD[:20]) * 10]
    assert receive(connect(server, request())) == (200, ANSWER, False)
    assert sum(map(is_ended, silent[:-2])) == len(silent) - 2


def test_too_many_connections_with_a_request(
    monkeypatch, open_server, connect, held
):
    monkeypatch.setattr(http_protocol, "_CONNECTIONS", 2)
    records = []
    server = open_server(log=records.append)
    busy = []
    for count in (1, 2):
        busy.append(connect(server, request()))
        wait_for(lambda n=count: len(held.begun) == n)
    error = {"error": "Too many connections"}
    assert receive(connect(server, request())) == (503, error, True)
    assert [(each["status"], each["path"]) for each in records] == [
        (503, "/v1/models/many:predict")
    ]
    health = connect(
        server, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    )
    assert health.recv(12) == b"HTTP/1.1 200"
    held.set()
    for connection in busy:
        assert receive(connection) == (200, ANSWER, False)
    for connection in busy:
        connection.close()
    assert receive(connect(server, request())) == (200, ANSWER, False)


def test_a_body_with_two_lengths_is_the_last(one_server, connect):
    """What follows may be a part of it for a proxy, and is no request."""
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(HELLO), HELLO)
    data = HEAD[:-2] % len(body) + b"Transfer-Encoding: chunked\r\n\r\n"
    connection = connect(one_server, data + body + request())
    assert receive(connection) == (200, ANSWER, True)
    assert connection.recv(1) == b""


@pytest.mark.parametrize(
    "data",
    [
        b"no HTTP\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",  # of TLS
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n" + b"x\r\n\r\n",
    ],
)
def test_malformed_requests_are_in_the_log(open_server, connect, data):
    records = []
    server = open_server(log=records.append)
    connection = connect(server, data)
    while connection.recv(4096):
        pass
    wait_for(lambda: records and records[-1]["status"] == 400)
    found = records[-1]
    assert found["client"] == "127.0.0.1"
    assert found["method"] == found["path"] == found["model"] == ""
    assert len(records) == 1 + data.startswith(b"GET /readyz")


@pytest.mark.parametrize(
    ("rest", "status"),
    [
        (b"x\r\n", 400),
        (b'5\r\n{"insx\r\n', 400),
        (b'5\r\n{"ins\r\n-1\r\n', 400),
        (b'5\r\n{"in', 499),
    ],
)
@pytest.mark.parametrize("host", [b"", b"http://localhost"])
def test_bodies_that_break_off_are_in_the_log(
    open_server, connect, rest, status, host
):
    records = []
    server = open_server(log=records.append)
    head = b"POST %s/v1/models/many:predict HTTP/1.1\r\nHost: localhost\r\n"
    head += b"Transfer-Encoding: chunked\r\n\r\n"
    connection = connect(server, head % host)
    time.sleep(0.1)
    connection.sendall(rest)
    if status == 499:
        connection.close()
    wait_for(lambda: records)
    (found,) = records
    assert found["status"] == status
    assert found["model"] == "many"


@pytest.mark.parametrize("is_gzip", [False, True], ids=["plain", "gzip"])
def test_bodies_that_are_too_large_together(
    open_server, connect, held, is_gzip
):
    memory = BodyMemory(40_000)
    server = open_server(memory=memory)
    body, headers = HELLO.ljust(6000), b""
    if is_gzip:
        body, headers = gzip.compress(body), b"Content-Encoding: gzip\r\n"
    first = connect(server, request(body, headers))
    wait_for(lambda: held.begun)
    status, answer, _ = receive(connect(server, request(body, headers)))
    assert status == 429
    assert "no room for" in answer["error"]
    assert memory.refused > 0
    small = connect(server, request())
    held.set()
    assert receive(first) == receive(small) == (200, ANSWER, False)
    wait_for(lambda: memory.held == 0)
    second = connect(server, request(body, headers))
    assert receive(second) == (200, ANSWER, False)


@pytest.mark.parametrize("wait", [0, 0.3], ids=["at once", "later"])
def test_who_only_sends_no_more_gets_an_answer(
    open_server, connect, held, wait
):
    """As with `nc -N`: the end of what it sends, not of what it reads."""
    server = open_server()
    connection = connect(server, request())
    connection.shutdown(socket.SHUT_WR)
    time.sleep(wait)
    held.set()
    assert receive(connection) == (200, ANSWER, False)
    assert is_ended(connection)
    wait_for(lambda: not server.connections)


@pytest.mark.parametrize(
    "data", [b"", b"GET / HT", HEAD % 9000 + HELLO], ids=["", "head", "body"]
)
def test_who_sends_no_more_of_a_request(one_server, connect, data):
    connection = connect(one_server, data)
    connection.shutdown(socket.SHUT_WR)
    assert is_ended(connection)


def test_stalled_bodies_leave_room_for_small_ones(
    monkeypatch, open_server, connect
):
    monkeypatch.setattr(request_body, "_PACE", 0.3)
    memory = BodyMemory(2**23)
    server = open_server(memory=memory, body_limit=2**21)
    size = 2**21 - 1
    stalled = [
        connect(server, HEAD % size + b" " * (size - 1)) for _ in range(4)
    ]
    for _ in range(5):
        assert receive(connect(server, request())) == (200, ANSWER, False)
    statuses = sorted(receive(connection)[0] for connection in stalled)
    assert statuses == [408, 429, 429, 429]  # a quarter for one client
    wait_for(lambda: memory.held == 0)
    body = HELLO.ljust(size // 2)
    assert receive(connect(server, request(body))) == (200, ANSWER, False)


def test_a_large_body_that_comes_slowly_enough(
    monkeypatch, open_server, connect
):
    monkeypatch.setattr(request_body, "_PACE", 0.5)
    connection = connect(open_server(), HEAD % 1_000_000)
    body = HELLO.ljust(1_000_000)
    for start in range(0, len(body), 150_000):  # together longer than a pace
        connection.sendall(body[start : start + 150_000])
        time.sleep(0.1)
    assert receive(connection) == (200, ANSWER, False)


@pytest.mark.parametrize("value", [b"[],", b'{"":0},', b"[" * 300])
def test_many_values_are_refused(one_server, connect, value):
    values = value * (2**24 // len(value))
    body = b'{"instances": [%s]}' % values.rstrip(b",")
    status, answer, _ = receive(connect(one_server, request(body)))
    assert status == 413
    assert "too many values" in answer["error"]
    assert receive(connect(one_server, request())) == (200, ANSWER, False)


def test_who_is_refused_learns_when_to_come_back(open_server, connect, held):
    server = open_server(queue_size=1)
    busy = []
    for count in (1, 2):
        busy.append(connect(server, request()))
        wait_for(lambda n=count: len(held.begun) == n)
    busy.append(connect(server, request()))
    wait_for(lambda: server.batcher.waiting == 1)
    answer = http.client.HTTPResponse(connect(server, request()))
    answer.begin()
    assert answer.status == 429
    assert answer.headers["retry-after"] == "1"
    held.set()
    for connection in busy:
        assert receive(connection) == (200, ANSWER, False)


def slow(number):
    return request(
        b'{"signature_name": "count_slowly", "instances": [%d]}' % number
    )


@pytest.mark.parametrize("leaves", [True, False])
def test_a_call_ends_with_its_time_and_with_its_client(
    open_server, connect, leaves
):
    server = open_server(timeout=20.0 if leaves else 0.5)
    connection = connect(server, slow(2**30))
    wait_for(lambda: server.batcher._calls)
    if leaves:
        connection.close()
    else:
        assert receive(connection)[0] == 504
    wait_for(lambda: not server.batcher._calls)
    assert receive(connect(server, request())) == (200, ANSWER, False)


def test_half_a_body_of_one_who_leaves_is_forgotten(open_server, connect):
    memory = BodyMemory(10_000)
    server = open_server(memory=memory)
    connection = connect(server, HEAD % 9000 + HELLO)
    wait_for(lambda: memory.held == len(HELLO))
    connection.close()
    wait_for(lambda: memory.held == 0)


def test_who_leaves_leaves_the_queue(open_server, connect, held):
    records = []
    server = open_server(queue_size=1, log=records.append)
    busy = []
    for count in (1, 2):
        busy.append(connect(server, request()))
        wait_for(lambda n=count: len(held.begun) == n)
    waiting = connect(server, request())
    wait_for(lambda: server.batcher.waiting == 1)
    assert receive(connect(server, request()))[0] == 429
    waiting.close()
    wait_for(lambda: server.batcher.waiting == 0)
    last = connect(server, request())
    wait_for(lambda: server.batcher.waiting == 1)
    held.set()
    for connection in (*busy, last):
        assert receive(connection) == (200, ANSWER, False)
    assert len(held.begun) == 3
    statuses = [record["status"] for record in records]
    assert sorted(statuses) == [200, 200, 200, 429, 499]


def test_an_answer_to_head_has_no_bytes(open_server, connect):
    records = []
    server = open_server(log=records.append)
    for method in (b"HEAD", b"GET"):
        head = b"%s / HTTP/1.0\r\nHost: localhost\r\n\r\n" % method
        connection = connect(server, head)
        answer = b"".join(iter(lambda c=connection: c.recv(2**16), b""))
        assert records[-1]["bytes"] == len(answer.partition(b"\r\n" * 2)[2])
    assert records[0]["bytes"] == 0 < records[1]["bytes"]


@pytest.mark.parametrize(
    "name",
    [
        *("..", ".", "%2e%2e", "%2E.", "many%2f..", "%2e%2e%2fmany", "many/.."),
        *("../many", "..%5cmany", "/etc", "%2fetc", "many%00", "%252e%252e"),
    ],
)
def test_names_are_no_paths(one_server, connect, name):
    """As they are sent: a client of Python would shorten some."""
    connection = connect(one_server)
    routes = ("POST", ":predict"), ("GET", ""), ("GET", "/metadata")
    for method, end in routes:
        for version in ("", "/versions/2", "/versions/%2e%2e", "/labels/.."):
            path = f"/v1/models/{name}{version}{end}"
            connection.sendall(
                f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
                "Content-Length: 0\r\n\r\n".encode()
            )
            status, answer, _ = receive(connection)
            assert status in {400, 404}, path
            assert list(answer) == ["error"]
