"""Messages of a gRPC client that means no good, or has a bug."""

import random
import resource
import tracemalloc

import grpc
import pytest
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.core.framework.tensor_shape_pb2 import TensorShapeProto
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest
from tensorflow_serving.apis.get_model_metadata_pb2 import (
    GetModelMetadataRequest,
)
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from tests.server.grpc_client import predict, spec
from tests.server.tensor_protos import (
    content,
    floats,
    ints,
    longs,
    tensor,
    text,
)

BODY_LIMIT = 2**20  # of `grpc_client`


HELLO = predict(text=text(b"hello"))


@pytest.fixture
def client(grpc_client):
    """One that is answered after the test, too."""
    yield grpc_client
    outputs = grpc_client.send(HELLO).outputs
    assert outputs["text"].string_val == [b"HELLO"]


def altered(proto, **fields):
    """A copy of a TensorProto with other fields."""
    copy = TensorProto()
    copy.CopyFrom(proto)
    copy.MergeFrom(TensorProto(**fields))
    return copy


def shown_id(value):
    return " ".join(f"{value!r}".split())[:60].replace("\\", "")


UNKNOWN_RANK = TensorShapeProto(unknown_rank=True)


@pytest.mark.parametrize(
    "proto",
    [
        TensorProto(),
        TensorProto(dtype=1, tensor_shape=UNKNOWN_RANK, float_val=[1]),
        floats(1, shape=[-1]),
        floats(1, shape=[-2, -2]),
        floats(1, shape=[1] * 300),
        altered(floats(shape=[2]), tensor_content=bytes(7)),
        altered(floats(shape=[2]), tensor_content=bytes(4)),
        altered(floats(shape=[2]), tensor_content=bytes(12)),
        *(
            altered(floats(1), dtype=number)
            for number in (9999, -1, 101, 20, 21, 8, 14, 22)
        ),
    ],
    ids=shown_id,
)
@pytest.mark.parametrize("signature", ["double", "double_any"])
def test_broken_numbers(client, signature, proto):
    client.check_error(predict(signature, x=proto), "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    "proto",
    [
        TensorProto(),
        altered(text(b"a"), dtype=9999),
        text(b"a", shape=[-1]),
        altered(text(shape=[1]), tensor_content=b"abc"),
        altered(text(shape=[2]), tensor_content=b"\xff" * 9),
    ],
    ids=shown_id,
)
def test_broken_text(client, proto):
    client.check_error(predict(text=proto), "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    "proto",
    [
        floats(1, shape=[10**9]),
        floats(shape=[10**9]),
        floats(1, shape=[2**62, 2**62]),
        floats(1, shape=[2**31, 2**31, 4]),
        floats(1, shape=[2**63 - 1]),
        text(b"a" * 1000, shape=[10**6]),
        text(b"ab", shape=[300_000]),
        text(shape=[10**6]),
        text(shape=[10**9]),
        text(b"", shape=[2**62, 2**62]),
        tensor(tf.bool, [True], [2**32]),
    ],
    ids=shown_id,
)
def test_small_messages_of_huge_tensors(client, proto):
    is_text = proto.dtype == tf.string.as_datatype_enum
    request = (
        predict("to_bytes", text=proto)
        if is_text
        else predict("double_any", x=proto)
    )
    # Kibibytes, the most that this process has ever had.
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    try:
        with pytest.raises(grpc.RpcError) as caught:
            client.send(request)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    code = caught.value.code().name
    assert code in {"INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"}
    assert peak < 8 * BODY_LIMIT
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 64 * 2**10


def test_a_large_context_of_many_examples(client):
    feature = {"other": {"bytes_list": {"value": [b"a" * 10_000]}}}
    context = {"features": {"feature": feature}}
    request = ClassificationRequest(model_spec=spec(signature_name="classify"))
    shared = request.input.example_list_with_context
    shared.context.CopyFrom(tf.train.Example(**context))
    shared.examples.extend([tf.train.Example()] * 10_000)
    assert request.ByteSize() < BODY_LIMIT
    client.check_error(request, "RESOURCE_EXHAUSTED")


def test_no_values_in_a_huge_shape(client):
    proto = floats(shape=[0, 2**62])
    try:
        outputs = client.send(predict("double_any", x=proto)).outputs
    except grpc.RpcError as error:
        assert error.code().name == "INVALID_ARGUMENT"
    else:
        assert outputs["y"] == proto


@pytest.mark.parametrize("name", ["a" * 50_000, "\U0001f600" * 50_000])
def test_long_names(client, name):
    """An error that quotes them fits into the headers of an answer."""
    for request, code in (
        (predict(name), "FAILED_PRECONDITION"),
        (predict("double", [name], x=floats(1)), "INVALID_ARGUMENT"),
        (predict("double", **{name: floats(1)}), "INVALID_ARGUMENT"),
        (PredictRequest(model_spec=spec(name)), "NOT_FOUND"),
        (
            PredictRequest(model_spec=spec(version_label=name)),
            "INVALID_ARGUMENT",
        ),
        (
            GetModelMetadataRequest(model_spec=spec(), metadata_field=[name]),
            "INVALID_ARGUMENT",
        ),
    ):
        client.check_error(request, code)


def test_body_limit(client):
    def padding(length):
        return predict("with_count", ["count"], text=text(b"a" * length))

    def padded(size):
        """A request of this size."""
        length = size
        while (request := padding(length)).ByteSize() != size:
            length -= request.ByteSize() - size
        return request

    outputs = client.send(padded(BODY_LIMIT)).outputs
    assert outputs["count"].int_val == [1]
    client.check_error(padded(BODY_LIMIT + 1), "RESOURCE_EXHAUSTED")


def test_compressed_messages(client):
    gzip = grpc.Compression.Gzip
    outputs = client.send(HELLO, compression=gzip).outputs
    assert outputs["text"].string_val == [b"HELLO"]
    bomb = predict(text=text(bytes(2**25)))
    client.check_error(bomb, "RESOURCE_EXHAUSTED", compression=gzip)


VALID = [
    HELLO,
    predict("double", x=content([1, 2, 3], tf.float32)),
    predict("several", a=floats(1, 2, shape=[1, 2]), b=longs(3)),
    predict("kinds", ["half", "same"], x=ints(1, 2, 3)),
]


def test_mutated_messages(client, seed, caplog):
    """Whatever is a message gets an answer, or an error of its client."""
    draws = random.Random(seed)
    raw = client.channel.unary_unary(
        "/tensorflow.serving.PredictionService/Predict"
    )
    for message in VALID * 150:
        data = bytearray(message.SerializeToString())
        for _ in range(draws.randint(1, 3)):
            data[draws.randrange(len(data))] = draws.randrange(256)
        data = bytes(data)
        codes = CLIENT_ERRORS if is_message(data) else UNREADABLE
        try:
            raw(data, timeout=20)
        except grpc.RpcError as error:
            assert error.code().name in codes, (data, error.details())
        else:
            assert is_message(data), data
    for message in VALID:
        assert client.send(message).outputs
    assert not caplog.text


UNREADABLE = {"INTERNAL", "INVALID_ARGUMENT", "UNKNOWN"}
CLIENT_ERRORS = {
    "INVALID_ARGUMENT",
    "FAILED_PRECONDITION",
    "NOT_FOUND",
    "RESOURCE_EXHAUSTED",
}


def is_message(data):
    try:
        PredictRequest.FromString(data)
    except Exception:
        return False
    return True
