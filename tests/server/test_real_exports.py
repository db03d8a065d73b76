"""What kseq exports, served."""

import json
import warnings

import numpy as np
import pytest
from anyio.from_thread import start_blocking_portal
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from tensorflow_serving.apis.get_model_metadata_pb2 import SignatureDefMap
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusResponse
from tensorflow_serving.apis.model_pb2 import ModelSpec

import kseq
from kseq.cli import main
from kseq.commands import serve
from kseq.server import Batcher, ModelStore, RestApp
from kseq.serving import export
from tests.commands.saved_run import saved_run
from tests.server.real_exports import KINDS, inputs_of, make_served, to_json

pytestmark = pytest.mark.slow  # each export takes a minute

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

DRAWN = {"dialogue": "turns", "language model": "prompt"}
UNPADDED = {"language model", "retriever"}  # no output grows with a row
OF_TEXT = ("translator", "classifier", "language model", "retriever")
DEFAULT = "serving_default"


class Served:
    """An export, its predictor and a client of a server of it."""

    def __init__(self, kind, folder, portal):
        self.kind = kind
        self.path = export(make_served(kind), folder)
        self.predictor = kseq.load(folder)
        self.store = ModelStore({"m": folder})
        self.store.poll()
        self.calls = []  # the number of requests in each
        self.batcher = Batcher(256, observe=self.calls.append)
        app = RestApp(self.store, self.batcher, hosts=("localhost",))
        self.client = TestClient(app, base_url="http://localhost")
        self.client.portal = portal

    def post(self, body):
        answer = self.client.post("/v1/models/m:predict", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def expected(self, inputs):
        """What `kseq.load` answers: dict, name of an output -> its rows."""
        if self.kind == "transducer":
            rows = [each.record for each in self.predictor.answers(inputs)]
            return {"probabilities": [row["probabilities"] for row in rows]}
        answers = self.predictor.answers(inputs)
        names = ("text", "score")
        if self.kind == "classifier":
            names = ("label", "probability")
        best = [answer.hypotheses[0] for answer in answers]
        cut = [answer.truncated for answer in answers]
        columns = zip(*best, strict=True)
        return dict(zip(names, columns, strict=True)) | {"truncated": cut}

    def close(self):
        self.batcher.close()
        self.store.close()


@pytest.fixture(scope="module")
def open_served(tmp_path_factory):
    made = {}
    with start_blocking_portal() as portal:

        def make(kind):
            if kind not in made:
                folder = tmp_path_factory.mktemp("saved_models") / "m"
                made[kind] = Served(kind, folder, portal)
            return made[kind]

        yield make
        for each in made.values():
            each.close()


def check(outputs, expected):
    """Equal texts, and numbers within 1e-4."""
    for name, values in expected.items():
        if name in ("score", "probability", "probabilities"):
            np.testing.assert_allclose(outputs[name], values, atol=1e-4)
        else:
            assert list(outputs[name]) == list(values)


def check_predict(served, inputs):
    """Both forms of a request against what `kseq.load` answers."""
    expected = served.expected(inputs)
    instances = to_json(inputs)
    columns = served.post({"inputs": instances})["outputs"]
    rows = served.post({"instances": instances})["predictions"]
    if served.kind == "transducer":  # one output is bare
        columns = {"probabilities": columns}
        rows = [{"probabilities": row} for row in rows]
    check(columns, expected)
    check({name: [row[name] for row in rows] for name in expected}, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_predict(open_served, kind):
    check_predict(open_served(kind), inputs_of(kind))


@pytest.mark.parametrize("kind", OF_TEXT)
@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=4))
def test_predict_of_any_text(open_served, kind, texts):
    check_predict(open_served(kind), texts)


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_answers_in_a_batch_are_those_alone(open_served, kind):
    """A transducer has answers of several lengths, and makes no batches."""
    served = open_served(kind)
    servable = served.store.find("m")
    assert servable.adds_rows(DEFAULT)
    (name,) = servable.signatures[DEFAULT].inputs
    inputs = inputs_of(kind)
    if kind == "dialogue":  # requests of other numbers of turns are others
        inputs = [turns for turns in inputs if len(turns) == 1]
    arrays = [np.array([each], object) for each in inputs]
    alone = [servable.run(DEFAULT, {name: array}) for array in arrays]
    served.calls.clear()
    futures = [
        served.batcher.submit(servable, DEFAULT, {name: array}, 60)
        for array in arrays * 8
    ]
    for future, expected in zip(futures, alone * 8, strict=True):
        found = future.result(60)
        for key, value in expected.items():
            if value.dtype == np.float32:
                np.testing.assert_allclose(found[key], value, atol=1e-4)
            else:
                assert found[key].tolist() == value.tolist()
    assert max(served.calls) > 1


def rows_of(served, signature, count):
    """Inputs of a signature, that of a request of so many rows."""
    inputs = inputs_of(served.kind)
    if served.kind == "transducer":
        rows = np.stack(inputs)
    elif isinstance(inputs[0], list):
        rows = np.array(to_json(inputs), object)
    else:
        rows = np.array(inputs, object)
    repeated = rows[np.arange(count) % len(rows)]
    more = {
        "prefix": np.array([b"", b"a"] * count, object)[:count],
        "target": np.array([b"", b"Hi!"] * count, object)[:count],
        "temperature": np.ones(count, np.float32),
        "top_p": np.full(count, 0.9, np.float32),
        "seed": np.arange(count),
    }
    return {name: more.get(name, repeated) for name in signature.inputs}


@pytest.mark.parametrize("kind", sorted({*KINDS} - UNPADDED))
def test_padded_answers_in_parts_are_those_of_one_call(open_served, kind):
    served = open_served(kind)
    servable = served.store.find("m")
    padded = {
        name: signature
        for name, signature in servable.signatures.items()
        if servable.pads_rows(name) and not servable.adds_rows(name)
    }
    assert padded
    for name, signature in padded.items():
        inputs = rows_of(served, signature, 70)
        whole = servable.run(name, inputs)
        served.calls.clear()
        found = served.batcher.submit(servable, name, inputs, 60).result(60)
        assert len(served.calls) >= 3
        assert found.keys() == whole.keys()
        for key, value in whole.items():
            assert found[key].shape == value.shape, (name, key)
            if value.dtype.kind == "f":
                np.testing.assert_allclose(found[key], value, atol=1e-4)
            else:
                assert found[key].tolist() == value.tolist(), (name, key)


def test_a_large_request_has_the_answers_of_small_ones(open_served):
    served = open_served("classifier")
    draw = np.random.default_rng(1)
    texts = ["abc 12"[: draw.integers(7)] * draw.integers(4) for _ in range(70)]
    check_predict(served, texts)
    served.calls.clear()
    served.post({"instances": texts})
    assert served.calls == [1] * len(served.calls)
    assert len(served.calls) >= 3


@pytest.mark.parametrize("kind", KINDS)
def test_status_and_metadata_are_messages_of_tensorflow_serving(
    open_served, kind
):
    served = open_served(kind)
    text = served.client.get("/v1/models/m").text
    status = json_format.Parse(text, GetModelStatusResponse())
    (version,) = status.model_version_status
    assert (version.version, version.state) == (1, version.AVAILABLE)
    metadata = served.client.get("/v1/models/m/metadata").json()
    spec = json_format.ParseDict(metadata["model_spec"], ModelSpec())
    assert (spec.name, spec.version.value) == ("m", 1)
    found = json_format.ParseDict(
        metadata["metadata"]["signature_def"], SignatureDefMap()
    )
    saved = SavedModel.FromString((served.path / "saved_model.pb").read_bytes())
    expected = dict(saved.meta_graphs[0].signature_def)
    hidden = expected.keys() - found.signature_def.keys()
    assert {name for name in hidden if not name.startswith("stream_")} == set()
    for name in found.signature_def:
        assert found.signature_def[name] == expected[name]


@pytest.mark.parametrize(
    "kind", ["translator", "captions", "speech", "dialogue", "language model"]
)
def test_a_stream_ends_with_what_predict_answers(open_served, kind):
    served = open_served(kind)
    streamed = served.store.find("m").streamed
    assert streamed == ("sample" if kind in DRAWN else DEFAULT)
    for instance in to_json(inputs_of(kind)):
        if kind in DRAWN:
            draws = {"temperature": 1.5, "top_p": 0.9, "seed": 3}
            instance = {DRAWN[kind]: instance, **draws}
        body = {"signature_name": streamed, "instances": [instance]}
        expected = served.post(body)["predictions"][0]
        answer = served.client.post(
            "/v1/models/m:predict", json={**body, "stream": True}
        )
        *parts, last, _ = answer.text.split("\n\n")
        parts = [json.loads(part.removeprefix("data: ")) for part in parts]
        [last] = json.loads(last.removeprefix("data: "))["predictions"]
        assert "".join(part["text"] for part in parts) == expected["text"]
        assert last["text"] == expected["text"]
        assert last["truncated"] == expected["truncated"]
        assert last["score"] == pytest.approx(expected["score"], rel=1e-4)


@pytest.mark.parametrize("kind", ["translator", "dialogue", "language model"])
def test_openai_api(open_served, kind):
    served = open_served(kind)
    body = {"model": "m", "temperature": 0.001, "seed": 1}
    if kind == "language model":
        path, body["prompt"] = "completions", "a"
    else:
        path = "chat/completions"
        body["messages"] = [{"role": "user", "content": "the cat"}]
    answer = served.client.post(f"/v1/{path}", json=body).json()
    [choice] = answer["choices"]
    text = choice.get("text") or choice["message"]["content"]
    given = ["the cat"] if kind == "dialogue" else "the cat"
    if kind == "language model":
        given = "a"
    # Almost nothing is random, and all but one of the searches are greedy.
    assert text == served.predictor([given])[0]
    assert answer["usage"]["completion_tokens"] > 0
    # The characters, the beginning of a word, and START or END.
    tokens = {"language model": 2}.get(kind, 9)
    assert answer["usage"]["prompt_tokens"] == tokens


def test_a_run_and_a_folder_of_folders(
    open_served, tmp_path, monkeypatch, open_store, open_client
):
    """As the command finds them: a run is exported first."""
    served = open_served("translator")
    models = tmp_path / "saved_models"
    models.mkdir()
    for name in ("a", "b"):
        (models / name).symlink_to(served.path.parent)
    (models / "no model").mkdir()
    run = saved_run(make_served("translator"), tmp_path / "runs" / "a run")
    texts = inputs_of("translator")
    expected = served.expected(texts)
    found = {}

    def ask(folders, labels, listening, options, clean_up):
        client = open_client(open_store(folders))
        assert client.get("/healthz").status_code == 200
        for name in folders:
            answer = client.post(
                f"/v1/models/{name}:predict", json={"inputs": texts}
            )
            found[name] = json.loads(answer.text)["outputs"]

    monkeypatch.setattr(serve, "_serve_folders", ask)
    words = [str(models), "--model", f"run={run}", "--port", "0"]
    assert main(["serve", *words]) == 0
    assert found.keys() == {"a", "b", "run"}
    for outputs in found.values():
        check(outputs, expected)


def test_health(open_store, open_client, numbered, install, tmp_path):
    base = tmp_path / "m"
    store = open_store({"m": base})
    client = open_client(store)
    for method in (client.get, client.head):
        assert method("/healthz").status_code == 503
    install(numbered(1), base / "1")
    store.poll()
    for method in (client.get, client.head):
        assert method("/healthz").status_code == 200
    assert client.get("/healthz").text == "ok\n"
    assert client.post("/healthz").status_code == 404
    assert client.get("/v1/healthz").status_code == 400


def test_ready(open_store, open_client, numbered, install, tmp_path):
    base, problems = tmp_path / "m", []
    store = open_store({"m": base})
    client = open_client(store, unready=lambda: " and ".join(problems))
    host = {"host": "pod-7.example"}  # probes may send any

    def answer(status):
        for method in (client.get, client.head):
            for path in ("/readyz", "/healthz"):
                found = method(path, headers=host)
                if path == "/readyz" or status == 200:
                    assert found.status_code == status
        return client.get("/readyz", headers=host).text

    assert answer(503) == "not ready: a model has no version that answers\n"
    install(numbered(1), base / "1")
    store.poll()
    text = answer(200)
    assert text.startswith("ready: the last successful poll was 0.")
    assert "m" not in text.split()  # which its Host may not know
    assert client.post("/readyz").status_code == 404
    problems.append("the server is stopping")
    assert answer(503) == "not ready: the server is stopping\n"
    assert client.get("/healthz").status_code == 200
