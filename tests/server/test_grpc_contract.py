"""What a gRPC client of TensorFlow Serving sends and gets, but for tensors."""

import pytest
import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest
from tensorflow_serving.apis.get_model_metadata_pb2 import (
    GetModelMetadataRequest,
    SignatureDefMap,
)
from tensorflow_serving.apis.get_model_status_pb2 import (
    GetModelStatusRequest,
    ModelVersionStatus,
)
from tensorflow_serving.apis.inference_pb2 import MultiInferenceRequest
from tensorflow_serving.apis.input_pb2 import Input
from tensorflow_serving.apis.model_management_pb2 import ReloadConfigRequest
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.regression_pb2 import RegressionRequest

from tests.server.grpc_client import METHODS, spec
from tests.server.tensor_protos import text


def predict(model):
    return PredictRequest(model_spec=model, inputs={"text": text(b"hello")})


@pytest.mark.parametrize(
    ("asked", "version", "signature"),
    [
        (spec(), 2, "serving_default"),
        (spec(signature_name="text"), 2, "text"),
        (spec(version=2), 2, "serving_default"),
        (spec(version=1), 1, "serving_default"),
        (spec(version_label="stable"), 1, "serving_default"),
    ],
    ids=str,
)
def test_version_and_signature(grpc_client, asked, version, signature):
    response = grpc_client.send(predict(asked))
    assert response.model_spec == spec(
        version=version, signature_name=signature
    )
    if version == 1:
        assert response.outputs["version"].int64_val == [1]
    else:
        assert response.outputs["text"].string_val == [b"HELLO"]


def classify(*examples, model=None, context=None):
    model = model or spec(signature_name="classify")
    request = ClassificationRequest(model_spec=model)
    examples = [example(**features) for features in examples]
    if context is None:
        request.input.example_list.examples.extend(examples)
        request.input.example_list.SetInParent()
    else:
        shared = request.input.example_list_with_context
        shared.examples.extend(examples)
        shared.context.CopyFrom(example(**context))
    return request


def example(**features):
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                name: tf.train.Feature(
                    int64_list=tf.train.Int64List(value=[value])
                )
                if isinstance(value, int)
                else tf.train.Feature(
                    bytes_list=tf.train.BytesList(value=[value])
                )
                for name, value in features.items()
            }
        )
    )


def metadata(*fields, model=None):
    return GetModelMetadataRequest(
        model_spec=model or spec(), metadata_field=fields
    )


@pytest.mark.parametrize(
    ("model", "code", "fragment"),
    [
        (None, "INVALID_ARGUMENT", "Missing ModelSpec"),
        (ModelSpec(), "INVALID_ARGUMENT", "no name"),
        (spec("", version=1), "INVALID_ARGUMENT", "no name"),
        (
            spec("x"),
            "NOT_FOUND",
            "Servable not found for request: Latest(x)",
        ),
        (spec("MANY"), "NOT_FOUND", "Latest(MANY)"),
        (spec("é\n"), "NOT_FOUND", "Servable not found for request"),
        (
            spec(version=99),
            "NOT_FOUND",
            "Servable not found for request: Specific(many, 99)",
        ),
        (spec(version=0), "NOT_FOUND", "Specific(many, 0)"),
        (spec(version=-1), "NOT_FOUND", "Specific(many, -1)"),
        (spec("x", version=1), "NOT_FOUND", "Specific(x, 1)"),
        (
            spec(version_label="x"),
            "INVALID_ARGUMENT",
            "Unrecognized servable version label",
        ),
        (
            spec(version_label=""),
            "INVALID_ARGUMENT",
            "Unrecognized servable version label",
        ),
        (
            spec("x", version_label="stable"),
            "INVALID_ARGUMENT",
            "Unrecognized servable version label",
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "request_",
    [
        predict(spec()),
        classify({"text": b"a"}),
        metadata("signature_def"),
        RegressionRequest(),
    ],
    ids=lambda request: METHODS[type(request)],
)
def test_models_that_are_not_there(
    grpc_client, request_, model, code, fragment
):
    changed = type(request_)()
    changed.CopyFrom(request_)
    changed.ClearField("model_spec")
    if model is not None:
        changed.model_spec.CopyFrom(model)
    grpc_client.check_error(changed, code, fragment)


GOOD, BAD = [("GOOD", 4), ("good", -4)], [("AB", 2), ("Ab", -2)]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (classify({"text": b"good"}), [GOOD]),
        (classify({"text": b"good"}, {"text": b"Ab", "n": 1}), [GOOD, BAD]),
        (classify({}), [[("", 0), ("", 0)]]),
        (classify({}, context={"text": b"good"}), [GOOD]),
        (classify({}, {"n": 1}, context={"text": b"Ab"}), [BAD, BAD]),
        # Features of an example win.
        (
            classify({"text": b"good"}, {}, context={"text": b"Ab", "n": 2}),
            [GOOD, BAD],
        ),
        (
            classify({"text": b"good"}, model=spec("my films", version=7)),
            [GOOD],
        ),
        # One of the two outputs is enough.
        (
            classify(
                {"text": b"good"}, model=spec(signature_name="classify_scores")
            ),
            [[("", 4), ("", -4)]],
        ),
        (
            classify(
                {"text": b"good"}, model=spec(signature_name="classify_names")
            ),
            [[("GOOD", 0), ("good", 0)]],
        ),
    ],
    ids=range(9),
)
def test_classify(grpc_client, asked, expected):
    response = grpc_client.send(asked)
    assert [
        [(found.label, found.score) for found in row.classes]
        for row in response.result.classifications
    ] == expected
    films = asked.model_spec.name == "my films"
    assert response.model_spec == ModelSpec(
        name="my films" if films else "many",
        version={"value": 7 if films else 2},
        signature_name=asked.model_spec.signature_name or "serving_default",
    )


@pytest.mark.parametrize(
    ("asked", "fragment"),
    [
        (classify(), "Input is empty."),
        (classify(context={"text": b"a"}), "Input is empty."),
        (
            ClassificationRequest(model_spec=spec(signature_name="classify")),
            "Input is empty.",
        ),
        (
            ClassificationRequest(
                model_spec=spec(signature_name="classify"), input=Input()
            ),
            "Input is empty.",
        ),
        (classify({"text": 1}), ""),  # the function itself refuses it
        (classify({"text": b"a"}, {"text": 1}), ""),
        (classify({"text": b"a"}, model=spec()), ""),
        (classify({"text": b"a"}, model=spec(signature_name="double")), ""),
        (classify({"text": b"a"}, model=spec(signature_name="x")), ""),
        (RegressionRequest(model_spec=spec()), ""),
        (RegressionRequest(model_spec=spec("my films")), ""),
    ],
    ids=range(11),
)
def test_what_is_not_classified(grpc_client, asked, fragment):
    if isinstance(asked, RegressionRequest):
        asked.input.CopyFrom(classify({"text": b"a"}).input)
    grpc_client.check_error(asked, "INVALID_ARGUMENT", fragment)


@pytest.mark.parametrize(
    "asked", [MultiInferenceRequest(), ReloadConfigRequest()], ids=[0, 1]
)
def test_unimplemented(grpc_client, asked):
    grpc_client.check_error(asked, "UNIMPLEMENTED")


@pytest.mark.parametrize(
    ("model", "name", "version"),
    [
        (spec(), "many", 2),
        (spec(version=1), "many", 1),
        (spec(version_label="stable"), "many", 1),
        (spec("my films"), "my films", 7),
    ],
    ids=str,
)
def test_metadata(grpc_client, models, model, name, version):
    response = grpc_client.send(metadata("signature_def", model=model))
    file = models[name] / str(version) / "saved_model.pb"
    saved = SavedModel.FromString(file.read_bytes())
    found = SignatureDefMap()
    assert list(response.metadata) == ["signature_def"]
    assert response.metadata["signature_def"].Unpack(found)
    assert "__saved_model_init_op" in found.signature_def
    assert found == SignatureDefMap(
        signature_def=saved.meta_graphs[0].signature_def
    )
    assert response.model_spec == spec(name, version=version)


@pytest.mark.parametrize(
    ("fields", "fragment"),
    [
        ([], "must specify at least one metadata_field"),
        (["x"], "is not supported"),
        (["signature_def", "x"], "is not supported"),
        ([""], "is not supported"),
    ],
    ids=str,
)
def test_metadata_fields(grpc_client, fields, fragment):
    grpc_client.check_error(metadata(*fields), "INVALID_ARGUMENT", fragment)


def states(client, model):
    """State, error code and message of each version."""
    response = client.send(GetModelStatusRequest(model_spec=model))
    found = {
        row.version: (
            ModelVersionStatus.State.Name(row.state),
            row.status.error_code,
            row.status.error_message,
        )
        for row in response.model_version_status
    }
    assert len(found) == len(response.model_version_status)
    return found


AVAILABLE, END = ("AVAILABLE", 0, ""), ("END", 0, "")


@pytest.mark.parametrize(
    ("model", "versions"),
    [
        (spec(), (1, 2)),
        (spec(version=1), (1,)),
        (spec(version=2), (2,)),
        (spec("my films"), (7,)),
    ],
    ids=str,
)
def test_status(grpc_client, model, versions):
    assert states(grpc_client, model) == dict.fromkeys(versions, AVAILABLE)


@pytest.mark.parametrize(
    ("model", "code", "fragment"),
    [
        (None, "INVALID_ARGUMENT", "Missing ModelSpec"),
        (
            spec("x"),
            "NOT_FOUND",
            "Could not find any versions of model x",
        ),
        (
            spec(version=9),
            "NOT_FOUND",
            "Could not find version 9 of model many",
        ),
        (
            spec(version=0),
            "NOT_FOUND",
            "Could not find version 0 of model many",
        ),
        (spec("x", 1), "NOT_FOUND", "Could not find version 1 of model x"),
    ],
    ids=str,
)
def test_status_of_what_is_not_there(grpc_client, model, code, fragment):
    request = GetModelStatusRequest(model_spec=model)
    grpc_client.check_error(request, code, fragment)


def test_status_of_a_broken_version(
    open_grpc, open_store, tmp_path, numbered, install
):
    base = tmp_path / "m"
    install(numbered(1), base / "1")
    install(numbered(2), base / "2")
    (base / "2" / "saved_model.pb").write_bytes(b"broken")
    store = open_store({"m": base})
    with open_grpc(store) as client:
        found = states(client, spec("m"))
        assert found.pop(1) == AVAILABLE
        ((state, error_code, message),) = found.values()
        assert state == "END"
        assert error_code != 0
        assert message
        install(numbered(3), base / "3")
        store.poll()
        found = states(client, spec("m"))
        assert (found[1], found[3]) == (END, AVAILABLE)


@pytest.mark.parametrize("number", [1732665600123456789, 2**63 - 1])
def test_versions_of_nanoseconds(
    open_store, open_client, open_grpc, tmp_path, numbered, install, number
):
    """All that names a version names the same one, without rounding."""
    base, before = tmp_path / "m", number - 1
    for each in (before, number):
        install(numbered(each % 1000), base / str(each))
    store = open_store({"m": base}, {("m", "old"): before})
    rest, body = open_client(store), {"instances": ["a"]}
    for route, value in (
        (f"versions/{number}", number),
        (f"versions/{before}", before),
        ("labels/old", before),
    ):
        answer = rest.post(f"/v1/models/m/{route}:predict", json=body)
        [prediction] = answer.json()["predictions"]
        assert prediction["version"] == value % 1000
        metadata = rest.get(f"/v1/models/m/{route}/metadata").json()
        assert metadata["model_spec"]["version"] == f"{value}"
    status = rest.get("/v1/models/m").json()["model_version_status"]
    assert [row["version"] for row in status] == [f"{number}", f"{before}"]
    [model] = rest.get("/page/models.json").json()["models"]
    assert model["versions"] == [f"{number}", f"{before}"]  # for JavaScript
    with open_grpc(store) as client:
        for model, value in (
            (spec("m"), number),
            (spec("m", version=number), number),
            (spec("m", version_label="old"), before),
        ):
            inputs = {"text": text(b"a")}
            response = client.send(
                PredictRequest(model_spec=model, inputs=inputs)
            )
            assert response.model_spec.version.value == value
            request = GetModelStatusRequest(model_spec=model)
            rows = client.send(request).model_version_status
            assert value in [row.version for row in rows]
        client.stop(1)
