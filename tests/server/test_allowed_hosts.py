import pytest

from kseq.server.allowed_hosts import AllowedHosts
from kseq.server.request_error import RequestError


def is_allowed(names=("localhost",), method="POST", **headers):
    scope = {
        "method": method,
        "headers": [
            (name.replace("_", "-").encode(), value.encode("latin-1"))
            for name, value in headers.items()
        ],
    }
    try:
        AllowedHosts(names).check(scope)
    except RequestError as error:
        assert error.status == 403
        return False
    return True


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LocalHost:8501", "localhost.", "localhost.:8501"),
        *("127.0.0.1", "10.0.0.5:8501", "0.0.0.0", "192.168.1.7."),
        *("[::1]", "[::1]:8501", "[fe80::1%25eth0]:1", "[::ffff:10.0.0.5]"),
    ],
)
def test_hosts(host):
    assert is_allowed(host=host)
    assert is_allowed(host=host, method="GET")


@pytest.mark.parametrize(
    "host",
    [
        *("", ".", ":8501", "evil.example", "evil.example:8501"),
        *("localhost.evil.example", "10.0.0.5.evil.example", "localhost.."),
        *("10.0.0.5@evil.example", "10.0.0", "0x7f.1", "127.1", "2130706433"),
        *("::1", "[::1", "::1]", "[10.0.0.5]", "[evil.example]", "localhost:a"),
        *("localhost, localhost", " localhost", "10.0.0.5 ", "\xe9"),
    ],
)
def test_other_hosts(host):
    assert not is_allowed(host=host)
    assert not is_allowed(host=host, method="GET")
    assert is_allowed(["*"], host=host)


def test_no_host():
    assert is_allowed()


def test_named_hosts():
    names = "Kseq.example.", "localhost"
    assert is_allowed(names, host="kseq.example:80")
    assert not is_allowed(names, host="other.example")


OWN = {"host": "localhost:8501", "origin": "http://localhost:8501"}
EVIL = {"host": "localhost:8501", "origin": "http://evil.example"}


@pytest.mark.parametrize(
    "headers",
    [
        OWN,
        {**OWN, "sec_fetch_site": "same-origin"},
        {"host": "[::1]:80", "origin": "http://[::1]:80"},
        {"host": "10.0.0.5:8501", "origin": "http://10.0.0.5:8501"},
        {"host": "localhost", "origin": "https://localhost"},
        # A proxy may have changed the Host; browsers alone set the other.
        {**EVIL, "sec_fetch_site": "same-origin"},
        {"host": "localhost", "sec_fetch_site": "none"},
    ],
)
def test_pages_of_this_server(headers):
    assert is_allowed(**headers)


@pytest.mark.parametrize(
    "headers",
    [
        EVIL,
        {**EVIL, "sec_fetch_site": "cross-site"},
        {"host": "localhost", "sec_fetch_site": "cross-site"},
        {**OWN, "sec_fetch_site": "Cross-Site"},
        {**OWN, "origin": "null"},
        {**OWN, "origin": ""},
        {**OWN, "origin": "http://localhost:3000"},
        {
            **OWN,
            "origin": "http://localhost:3000",
            "sec_fetch_site": "same-sit",
        },
        {**OWN, "origin": "http://127.0.0.1:8501"},
        {**OWN, "origin": "http://localhost:8501.evil.example"},
        {"origin": "http://evil.example"},
        {"origin": "http://"},
    ],
)
def test_pages_of_other_sites(headers):
    assert not is_allowed(**headers)
    assert is_allowed(method="GET", **headers)  # as by a link


def test_pages_of_named_hosts():
    names = "localhost", "kseq.example"
    origin = "https://kseq.example"
    assert is_allowed(names, host="10.0.0.5", origin=origin)
    assert is_allowed(["*"], **EVIL)
    assert not is_allowed(["*"], **EVIL, sec_fetch_site="cross-site")
    assert not is_allowed(names, **EVIL)
