"""The routes of the page, its headers, and what is in its files."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import tensorflow as tf

from kseq.answers import ANSWERS
from kseq.server import page as page_module
from kseq.serving.safe_graph import trust
from kseq.sources import SOURCES

FOLDER = Path(page_module.__file__).with_name("static")
FILES = sorted(file.name for file in FOLDER.iterdir())
ROUTES = ["/", *(f"/page/{name}" for name in FILES if name != "index.html")]
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    "img-src": "'self' data: blob:",
    "media-src": "blob:",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}


def file_of(route):
    return FOLDER / (route.removeprefix("/page/").strip("/") or "index.html")


@pytest.mark.parametrize("route", ROUTES)
def test_files(client, route):
    answer = client.get(route)
    assert answer.status_code == 200
    assert answer.content == file_of(route).read_bytes()
    assert answer.headers["content-type"] == TYPES[file_of(route).suffix]


@pytest.mark.parametrize("route", [*ROUTES, "/page/models.json"])
def test_headers(client, route):
    headers = client.get(route).headers
    policy = headers["content-security-policy"].split("; ")
    assert dict(rule.split(" ", 1) for rule in policy) == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("route", [*ROUTES, "/page/models.json"])
def test_head(client, route):
    answer = client.head(route)
    assert answer.status_code == 200
    assert answer.content == b""
    expected = client.get(route).headers
    assert answer.headers["content-length"] == expected["content-length"]
    assert answer.headers["content-type"] == expected["content-type"]


@pytest.mark.parametrize(
    "path",
    [
        "/page",
        "/page/",
        "/page/x",
        "/page/index.html",
        "/page//page.js",
        "/page/./page.js",
        "/page/page.js/",
        "/page/PAGE.JS",
        "/page/../rest_app.py",
        "/page/..%2frest_app.py",
        "/page/%2e%2e/rest_app.py",
        "/page/..\\rest_app.py",
        "/page/page.js%00",
        "/page//etc/passwd",
        "/page.py",
        "/index.html",
        "//",
    ],
)
def test_no_other_file(client, path):
    # As a client sends it that does not simplify paths.
    assert client.app.page.respond("GET", path) is None
    url = client.base_url.copy_with(raw_path=path.encode())
    if "/." not in path:
        assert client.get(url).status_code == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_other_methods(client, method):
    for route in ("/", "/page/page.js", "/page/models.json"):
        assert client.request(method, route).status_code == 404


@pytest.mark.parametrize("route", ["/", "/page/page.js", "/page/models.json"])
def test_host(client, route):
    answer = client.get(route, headers={"host": "evil.example"})
    assert answer.status_code == 403
    assert client.get(route, headers={"host": "localhost:1"}).is_success


def models_of(client):
    return client.get("/page/models.json").json()["models"]


def test_models(models, open_store, open_client):
    store = open_store(models, labels={("many", "stable"): 1})
    many, films = models_of(open_client(store))
    assert many["name"] == "many"
    assert many["versions"] == [2, 1]
    assert {"serving_default", "several"} <= set(many["signatures"])
    assert not [name for name in many["signatures"] if name.startswith("_")]
    assert many["inputs"]["serving_default"] == ["text"]
    assert many["inputs"]["several"] == ["a", "b"]
    assert many["outputs"]["serving_default"] == ["score", "text"]
    assert many["inputs"].keys() == set(many["signatures"])
    assert many["outputs"].keys() == set(many["signatures"])
    assert films == {
        "name": "my films",
        "versions": [7],
        "signatures": ["serving_default"],
        "inputs": {"serving_default": ["inputs"]},
        "outputs": {"serving_default": ["classes", "scores"]},
        "streams": None,
        "sample_rate": None,
        "view": "form",
        "input": "",
    }


def test_a_model_without_the_default_signature(
    tmp_path, open_store, open_client
):
    """It is served, and its page is that of any model."""
    path = tmp_path / "odd" / "1"
    module = tf.Module()
    module.only = tf.function(
        lambda x: {"y": 2 * x},
        input_signature=[tf.TensorSpec((None,), tf.float32, "x")],
    )
    tf.saved_model.save(module, str(path), signatures={"only": module.only})
    trust((path / "saved_model.pb").read_bytes())
    store = open_store({"odd": tmp_path / "odd"})
    assert store.is_ready, store.problem("odd")
    client = open_client(store)
    [model] = models_of(client)
    assert (model["signatures"], model["view"]) == (["only"], "form")
    assert client.get("/v1/models").json()["data"] == []
    body = {"model": "odd", "prompt": "a"}
    answer = client.post("/v1/completions", json=body)
    assert answer.status_code == 400
    body = {"signature_name": "only", "instances": [2.0]}
    answer = client.post("/v1/models/odd:predict", json=body)
    assert answer.json() == {"predictions": [4.0]}


def test_models_after_a_swap(
    tmp_path, numbered, install, open_store, open_client
):
    base = tmp_path / "m"
    install(numbered(1), base / "1")
    store = open_store({"m": base, "none yet": tmp_path / "empty"})
    client = open_client(store)
    [model] = models_of(client)
    assert (model["name"], model["versions"]) == ("m", [1])

    install(numbered(2), base / "2")
    store.poll()
    [model] = models_of(client)
    assert model["versions"] == [2]

    (base / "3").mkdir()
    (base / "3" / "saved_model.pb").write_bytes(b"broken")
    store.poll()
    [model] = models_of(client)
    assert model["versions"] == [2]


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ('{"preprocessor": {"sample_rate": 8000}}', 8000),
        ('{"preprocessor": {"sample_rate": "8000"}}', None),
        ('{"preprocessor": {"sample_rate": -1}}', None),
        ('{"preprocessor": []}', None),
        ("[]", None),
        ("{", None),
        ("[" * 100_000, None),
    ],
)
def test_sample_rate(
    tmp_path, numbered, install, open_store, open_client, text, rate
):
    install(numbered(1), tmp_path / "m" / "1")
    extra = tmp_path / "m" / "1" / "assets.extra"
    extra.mkdir()
    (extra / "kseq.json").write_text(text, "utf-8")
    [model] = models_of(open_client(open_store({"m": tmp_path / "m"})))
    assert model["sample_rate"] == rate


def read(name):
    return (FOLDER / name).read_text("utf-8")


@pytest.mark.parametrize("name", FILES)
def test_nothing_comes_from_elsewhere(name):
    text = read(name)
    assert not re.findall(r"(?:https?:)?//[\w.-]+\.\w+", text)
    assert not re.findall(r"@import|url\(", text)


def test_nothing_is_inline():
    """The policy forbids it."""
    html = read("index.html")
    assert not re.findall(r"<style|\bstyle=|javascript:", html)
    assert not re.findall(r"<[^>]*\son\w+\s*=", html)
    scripts = re.findall(r"<script[^>]*>[^<]*", html)
    assert scripts == ['<script type="module" src="page/page.js">']


@pytest.mark.parametrize("name", [n for n in FILES if n.endswith(".js")])
def test_text_never_becomes_markup(name):
    unsafe = r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b"
    assert not re.findall(unsafe + r"|new Function|srcdoc", read(name))
    assert len(read(name).splitlines()) <= 250


def test_every_file_is_used():
    """And each is of a kind that is served."""
    assert all(Path(name).suffix in TYPES for name in FILES)
    named = {"index.html", *re.findall(r'"page/([\w.]+)"', read("index.html"))}
    for name in FILES:
        named |= set(re.findall(r'from "\./([\w.]+)"', read(name)))
    modules = {
        *(source.page_input for source in SOURCES),
        *(source.page_view for source in SOURCES),
        *(answer.page_view for answer in ANSWERS),
    }
    named |= {f"{name}.js" for name in modules if name}
    assert named == set(FILES)


@pytest.mark.slow
def test_the_wheel_has_every_file(tmp_path):
    command = [sys.executable, *("-m", "pip", "wheel", "--no-deps")]
    root = FOLDER.parents[2]
    subprocess.run([*command, str(root)], cwd=tmp_path, check=True)
    [wheel] = tmp_path.glob("kseq-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    folder = "kseq/server/static/"
    assert (
        sorted(
            name.removeprefix(folder)
            for name in names
            if name.startswith(folder)
        )
        == FILES
    )
