"""A client of TensorFlow Serving's gRPC services."""

import contextlib

import grpc
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest
from tensorflow_serving.apis.get_model_metadata_pb2 import (
    GetModelMetadataRequest,
)
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest
from tensorflow_serving.apis.inference_pb2 import MultiInferenceRequest
from tensorflow_serving.apis.model_management_pb2 import ReloadConfigRequest
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.model_service_pb2_grpc import ModelServiceStub
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceStub,
)
from tensorflow_serving.apis.regression_pb2 import RegressionRequest

from kseq.server import Batcher
from kseq.server.grpc_services import grpc_server

METHODS = {
    PredictRequest: "Predict",
    ClassificationRequest: "Classify",
    RegressionRequest: "Regress",
    MultiInferenceRequest: "MultiInference",
    GetModelMetadataRequest: "GetModelMetadata",
    GetModelStatusRequest: "GetModelStatus",
    ReloadConfigRequest: "HandleReloadConfigRequest",
}


class GrpcClient:
    """Calls the method that takes a request.

    Args:
        channel: `grpc.Channel`.
        batcher: `Batcher` of the server.
        stop: callable of seconds of grace, which stops the server.
    """

    def __init__(self, channel, batcher, stop):
        self.channel = channel
        self.batcher = batcher
        self.stop = stop
        self._stubs = PredictionServiceStub(channel), ModelServiceStub(channel)

    def begin(self, request, timeout=20, **options):
        """A future of the response."""
        return self._method(request).future(request, timeout, **options)

    def send(self, request, timeout=20, **options):
        """The response."""
        return self._method(request)(request, timeout, **options)

    def check_error(self, request, code, *fragments, **options):
        """Asserts a code, and what is in the one line of its details."""
        try:
            response = self.send(request, **options)
        except grpc.RpcError as error:
            found, details = error.code().name, error.details()
        else:
            found, details = "OK", str(response)
        assert found == code, details
        assert details and "\n" not in details
        for fragment in fragments:
            assert fragment in details

    def _method(self, request):
        name = METHODS[type(request)]
        predictions, models = self._stubs
        return getattr(predictions, name, None) or getattr(models, name)


def spec(name="many", version=None, **more):
    """A `ModelSpec`."""
    if version is not None:
        more["version"] = {"value": version}
    return ModelSpec(name=name, **more)


def predict(signature="", only=(), **inputs):
    """A `PredictRequest`."""
    return PredictRequest(
        model_spec=spec(signature_name=signature),
        inputs=inputs,
        output_filter=only,
    )


@contextlib.contextmanager
def serve_grpc(portal, store, queue_size=256, **options):
    """Serves a store, and gives a `GrpcClient`.

    Args:
        portal: `anyio.from_thread.BlockingPortal`.
        store: `ModelStore`.
        queue_size: int.
        options: of `grpc_server`.
    """
    batcher = Batcher(queue_size)

    async def start():
        server = grpc_server(store, batcher, **options)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        return server, f"127.0.0.1:{port}"

    def stop(grace=None):
        portal.call(server.stop, grace)

    server, address = portal.call(start)
    try:
        no_proxy = [("grpc.enable_http_proxy", 0)]
        with grpc.insecure_channel(address, no_proxy) as channel:
            yield GrpcClient(channel, batcher, stop)
    finally:
        stop()
        batcher.close()
