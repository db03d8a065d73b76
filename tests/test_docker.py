"""The files in docker/: read, and run as far as that needs no daemon."""

import base64
import getpass
import http.server
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from kseq import cli

ROOT = Path(__file__).parents[1]
DOCKER = ROOT / "docker"


@pytest.fixture(scope="module")
def instructions():
    """The instructions of the Dockerfile: (name, arguments)."""
    text = (DOCKER / "Dockerfile").read_text("utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.M).replace("\\\n", " ")
    lines = filter(None, map(str.strip, text.splitlines()))
    return [tuple(line.split(maxsplit=1)) for line in lines]


def test_what_is_copied_is_what_a_wheel_is_built_of(instructions):
    copied = [
        word
        for name, words in instructions
        if name == "COPY" and not words.startswith("--from")
        for word in words.split()[:-1]
    ]
    assert all((ROOT / word).exists() for word in copied)
    assert {"pyproject.toml", "README.md", "LICENSE", "kseq"} <= {*copied}
    assert "recipes" in copied  # see pyproject.toml, force-include


def test_the_server_understands_its_command(instructions, monkeypatch):
    given = dict(instructions)
    command = json.loads(given["ENTRYPOINT"]) + json.loads(given["CMD"])
    monkeypatch.setattr("kseq.files.model_path.is_version", lambda path: True)
    options = cli._parser().parse_args(command[1:])
    assert (options.host, options.port, options.grpc_port) == (
        *("0.0.0.0", 8501),
        8500,
    )
    assert given["EXPOSE"].split() == ["8500", "8501"]
    assert given["USER"] == "kseq"


def test_the_health_check_is_a_program(instructions):
    command = dict(instructions)["HEALTHCHECK"].partition("CMD ")[2]
    *_, program = json.loads(re.sub(r"\s+", " ", command))
    compile(program, "health", "exec")
    assert "http://127.0.0.1:8501/healthz" in program


def test_compose_gives_the_server_options_that_it_has(monkeypatch):
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load((DOCKER / "compose.yaml").read_text("utf-8"))
    kseq = found["services"]["kseq"]
    words = [
        re.sub(r"\$\{\w+:-(.*?)\}", r"\1", word) for word in kseq["command"]
    ]
    monkeypatch.setattr("kseq.files.model_path.is_version", lambda path: True)
    options = cli._parser().parse_args(["serve", *words])
    assert options.allow_host == ["localhost"]
    for name in ("kseq", "tensorflow-serving"):
        service = found["services"][name]
        assert service["networks"]["default"]["aliases"] == ["server"]
        assert service["read_only"] and "ports" not in service
    assert (DOCKER / kseq["build"]["dockerfile"].split("/")[1]).is_file()
    for volume in found["services"]["proxy"]["volumes"][:1]:
        assert (DOCKER / volume.split(":")[0]).is_file()


class Upstream(http.server.BaseHTTPRequestHandler):
    """Answers with the headers that it got."""

    def do_GET(self):
        content = json.dumps(dict(self.headers)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def proxy(tmp_path):
    """An nginx of this machine with the configuration of the proxy."""
    for program in ("nginx", "openssl"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes"),
            *("-keyout", "tls.key", "-out", "tls.crt", "-days", "1"),
            *("-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost"),
        ],
        check=True,
        cwd=tmp_path,
        capture_output=True,
    )
    upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    thread = threading.Thread(target=upstream.serve_forever)
    thread.start()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    text = (DOCKER / "nginx.conf").read_text("utf-8")
    for old, new in (
        ("listen 443", f"listen 127.0.0.1:{port}"),
        ("/etc/nginx/certificates", str(tmp_path)),
        ("/etc/nginx/users", str(tmp_path / "users")),
        ("http://server:8501", f"http://127.0.0.1:{upstream.server_port}"),
    ):
        assert old in text
        text = text.replace(old, new)
    owner = f"user {getpass.getuser()};" if os.geteuid() == 0 else ""
    (tmp_path / "users").write_text("me:{PLAIN}secret\n")
    (tmp_path / "nginx.conf").write_text(
        f"{owner} pid {tmp_path}/pid; daemon off;\n"
        f"error_log {tmp_path}/errors;\n"
        f"events {{}}\nhttp {{ access_log off;\n{text}\n}}\n"
    )
    command = ["nginx", "-p", tmp_path, "-c", tmp_path / "nginx.conf"]
    subprocess.run([*command, "-t"], check=True, capture_output=True)
    process = subprocess.Popen(command)
    try:
        yield f"https://localhost:{port}", tmp_path / "tls.crt"
    finally:
        process.terminate()
        process.wait()
        upstream.shutdown()
        upstream.server_close()
        thread.join()


def answer(url, certificate, password=None):
    headers = {"X-Request-Id": "of the client"}
    if password:
        word = base64.b64encode(f"me:{password}".encode()).decode()
        headers["Authorization"] = f"Basic {word}"
    request = urllib.request.Request(url, headers=headers)
    context = ssl.create_default_context(cafile=certificate)
    for _ in range(50):
        try:
            with urllib.request.urlopen(request, context=context) as found:
                return found.status, json.loads(found.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, None
        except urllib.error.URLError:
            time.sleep(0.1)
    raise AssertionError("the proxy does not answer")


def test_the_proxy_asks_for_a_password(proxy):
    url, certificate = proxy
    assert answer(url, certificate)[0] == 401
    assert answer(url, certificate, "wrong")[0] == 401
    status, headers = answer(url, certificate, "secret")
    assert status == 200
    assert "Authorization" not in headers
    assert headers["Host"] == url.removeprefix("https://")
    assert re.fullmatch("[0-9a-f]{32}", headers["X-Request-Id"])
    assert answer(f"{url}/monitoring/x", certificate, "secret")[0] == 404
