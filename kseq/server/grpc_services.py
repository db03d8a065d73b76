"""TensorFlow Serving's gRPC services, one that streams, and one for probes.

Reference: TensorFlow Serving 2.20, its protos and the sources of its model
server; the gRPC health checking protocol.
"""

import asyncio
import contextlib
import contextvars
import functools
import logging
import time
from urllib.parse import unquote

import grpc
import numpy as np
from google.protobuf.wrappers_pb2 import Int32Value, StringValue
from tensorflow_serving.apis import (
    get_model_metadata_pb2 as metadata_pb2,
)
from tensorflow_serving.apis import get_model_status_pb2 as status_pb2
from tensorflow_serving.apis import (
    model_service_pb2_grpc as model_service,
)
from tensorflow_serving.apis import (
    prediction_service_pb2_grpc as prediction_service,
)
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse

from kseq.server import proto_requests
from kseq.server.access_record import access_record, request_id_of
from kseq.server.body_memory import BodyMemory, request_memory
from kseq.server.grpc_messages import GrpcMessages
from kseq.server.model_descriptions import readiness
from kseq.server.request_error import RequestError
from kseq.server.streamed_answer import streamed_answer

# TensorFlow Serving has no method that answers in parts.
STREAMING_SERVICE = "kseq.PredictionService"
# What a probe asks for: Kubernetes' names, and those of the services.
_LIVENESS = "liveness"
_READINESS = {
    "",
    "readiness",
    "tensorflow.serving.PredictionService",
    "tensorflow.serving.ModelService",
    STREAMING_SERVICE,
}
_SERVING, _NOT_SERVING = 1, 2
_DEFINITIONS = "signature_def"
_HEALTH_SERVICE = "grpc.health.v1.Health"
_ANY_CALLS = 1024  # at once; above it, none is read or logged
_INT32 = 2**31 - 1  # what an option of gRPC can be
_VERSION_FOUND = contextvars.ContextVar("version")  # of a call
_LOGGER = logging.getLogger(__name__)


def grpc_server(
    store,
    batcher,
    *,
    body_limit=4 * 2**20,
    timeout=30.0,
    memory=None,
    log=lambda record: None,
    unready=lambda: "",
    shares_port=False,
):
    """The server of all services, without a port.

    Args:
        store: `ModelStore`.
        batcher: `Batcher`.
        body_limit: int, bytes of a message.
        timeout: float, seconds until a request times out, if the client sets no
            earlier deadline.
        memory: `BodyMemory`; see `RestApp` for the default.
        log: callable of a dict for each request, without its text.
        unready: callable that returns why the server must not get requests,
            or "".
        shares_port: bool, whether other processes of the user may listen at its
            port, which all share it; otherwise a port in use is an error.

    Returns:
        A `grpc.aio.Server` of the running event loop.
    """
    # gRPC prints a traceback for each invalid message.
    logging.getLogger("grpc").setLevel(logging.CRITICAL)
    memory = memory or BodyMemory(request_memory(body_limit))
    services = _Services(store, batcher, body_limit, timeout, log, unready)
    messages = GrpcMessages(
        memory,
        body_limit,
        timeout,
        _client,
        services.refuse,
        probe=f"/{_HEALTH_SERVICE}/Check",
    )
    server = grpc.aio.server(
        interceptors=[messages],
        options=[
            ("grpc.max_receive_message_length", min(body_limit, _INT32)),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", int(shares_port)),
            # Messages that are not requested stay with the client.
            ("grpc.http2.bdp_probe", 0),
        ],
        maximum_concurrent_rpcs=_ANY_CALLS,
    )
    prediction_service.add_PredictionServiceServicer_to_server(services, server)
    model_service.add_ModelServiceServicer_to_server(services, server)
    streamed = grpc.unary_stream_rpc_method_handler(
        services.predict_streamed,
        request_deserializer=PredictRequest.FromString,
        response_serializer=PredictResponse.SerializeToString,
    )
    checked = grpc.unary_unary_rpc_method_handler(
        services.Check,
        # They have the same field as the messages of the health service.
        request_deserializer=StringValue.FromString,
        response_serializer=Int32Value.SerializeToString,
    )
    for service, methods in (
        (STREAMING_SERVICE, {"PredictStreamed": streamed}),
        (_HEALTH_SERVICE, {"Check": checked}),
    ):
        handler = grpc.method_handlers_generic_handler(service, methods)
        server.add_generic_rpc_handlers([handler])
    return server


def _call(method):
    """Makes a method answer with the error that it raises, and log."""

    @functools.wraps(method)
    async def call(self, request, context):
        async with _logged(self, method.__name__, request, context) as sizes:
            response = await method(self, request, context)
            sizes.append(response.ByteSize())
            return response

    return call


def _stream(method):
    """The same for a method that yields its responses."""

    @functools.wraps(method)
    async def call(self, request, context):
        async with (
            _logged(self, "PredictStreamed", request, context) as sizes,
            contextlib.aclosing(method(self, request, context)) as responses,
        ):
            async for response in responses:
                sizes.append(response.ByteSize())
                yield response

    return call


@contextlib.asynccontextmanager
async def _logged(services, name, request, context):
    """Ends a call with the error that is raised here, and logs it.

    Yields:
        A list for the bytes of its responses.
    """
    start, status, sizes = time.perf_counter(), "CANCELLED", []
    _VERSION_FOUND.set(None)
    client = _client(context)  # which is not known once it has left
    sent = dict(context.invocation_metadata() or ()).get("x-request-id")
    request_id = request_id_of(sent)
    context.set_trailing_metadata((("x-request-id", request_id),))
    try:
        yield sizes
        status = "OK"
    except RequestError as error:
        status = error.code
        await context.abort(grpc.StatusCode[status], _line(error))
    except Exception:
        status = "INTERNAL"
        _LOGGER.exception("Internal error")
        await context.abort(grpc.StatusCode.INTERNAL, "Internal error")
    finally:
        services.log(
            access_record(
                start,
                model=services.known_model(request),
                version=_VERSION_FOUND.get(),
                request_id=request_id,
                client=client,
                method="gRPC",
                path=name,
                status=status,
                bytes=sum(sizes),
            )
        )


class _Services(
    prediction_service.PredictionServiceServicer,
    model_service.ModelServiceServicer,
):
    def __init__(self, store, batcher, body_limit, timeout, log, unready):
        self.store = store
        self.batcher = batcher
        self.body_limit = body_limit
        self.timeout = timeout
        self.log = log
        self.unready = unready

    def known_model(self, request):
        spec = getattr(request, "model_spec", None)  # some have none
        known = spec is not None and spec.name in self.store.folders
        return spec.name if known else ""

    async def refuse(self, context, method, error):
        """Answers a call whose message is not read, or not decoded."""
        async with _logged(self, method, None, context):
            raise error

    @_call
    async def Predict(self, request, context):  # noqa: N802, of the proto
        return await self._answer(
            request,
            context,
            proto_requests.read_predict,
            proto_requests.predict_response,
        )

    @_stream
    async def predict_streamed(self, request, context):
        """A `PredictResponse` for each part of an answer, and for all of it.

        Its output `text` is what has been found since the last one; the last
        response has the outputs of `Predict`.
        """
        servable = self._find(request)
        found = await asyncio.to_thread(
            proto_requests.read_predict,
            request,
            servable.signatures,
            self.body_limit,
        )
        if request.output_filter:
            raise RequestError("A stream does not support output_filter")
        parts = streamed_answer(
            self.batcher, servable, found, self._timeout(context)
        )
        async with contextlib.aclosing(parts):
            async for part in parts:
                text = np.array([part.text.encode()], object)
                if part.text:
                    yield self._response(servable, found, {"text": text})
                if part.outputs is not None:
                    yield self._response(servable, found, part.outputs)

    @_call
    async def Classify(self, request, context):  # noqa: N802
        return await self._answer(
            request,
            context,
            proto_requests.read_classify,
            proto_requests.classify_response,
        )

    @_call
    async def Regress(self, request, context):  # noqa: N802
        self._find(request)
        raise RequestError("Expected a signature of regression")

    @_call
    async def MultiInference(self, request, context):  # noqa: N802
        raise RequestError("MultiInference is not implemented", "UNIMPLEMENTED")

    @_call
    async def HandleReloadConfigRequest(self, request, context):  # noqa: N802
        raise RequestError(
            "Models cannot be changed after the start", "UNIMPLEMENTED"
        )

    @_call
    async def GetModelMetadata(self, request, context):  # noqa: N802
        if not request.metadata_field:
            raise RequestError(
                "GetModelMetadataRequest must specify at least one "
                "metadata_field"
            )
        for field in request.metadata_field:
            if field != _DEFINITIONS:
                raise RequestError(f"Metadata field {field} is not supported")
        servable = self._find(request)
        response = metadata_pb2.GetModelMetadataResponse()
        _set_spec(response.model_spec, servable)
        response.metadata[_DEFINITIONS].Pack(
            metadata_pb2.SignatureDefMap(signature_def=servable.signatures)
        )
        return response

    @_call
    async def GetModelStatus(self, request, context):  # noqa: N802
        versions = self.store.status(*_model(request))
        response = status_pb2.GetModelStatusResponse()
        for number, known in sorted(versions.items(), reverse=True):
            response.model_version_status.add(
                version=number,
                state=known.state,
                status={
                    "error_code": known.error_code,
                    "error_message": known.error_message,
                },
            )
        return response

    @_call
    async def Check(self, request, context):  # noqa: N802
        """Answers a probe as `/healthz` for "liveness", or as `/readyz`."""
        if request.value == _LIVENESS:
            is_well = self.store.is_ready
        elif request.value in _READINESS:
            models = self.store.readiness()
            is_well, _ = readiness(models, self.unready())
        else:
            raise RequestError("Unknown service", "NOT_FOUND")
        return Int32Value(value=_SERVING if is_well else _NOT_SERVING)

    def _find(self, request):
        servable = self.store.find(*_model(request))
        _VERSION_FOUND.set(servable.version)
        return servable

    async def _answer(self, request, context, read, write):
        servable = self._find(request)
        # In a thread: a large one must not block the others.
        found = await asyncio.to_thread(
            read, request, servable.signatures, self.body_limit
        )
        outputs = await self.batcher.answer(
            servable, found.signature, found.inputs, self._timeout(context)
        )
        response = await asyncio.to_thread(write, request, outputs)
        return _with_spec(response, servable, found.signature)

    def _timeout(self, context):
        left = context.time_remaining()
        return self.timeout if left is None else min(left, self.timeout)

    def _response(self, servable, found, outputs):
        response = proto_requests.predict_response(PredictRequest(), outputs)
        return _with_spec(response, servable, found.signature)


def _model(request):
    """(name, version, label) of the `ModelSpec` of a request."""
    if not request.HasField("model_spec"):
        raise RequestError("Missing ModelSpec")
    spec = request.model_spec
    if not spec.name:
        raise RequestError("ModelSpec has no name specified.")
    choice = spec.WhichOneof("version_choice")
    return (
        spec.name,
        spec.version.value if choice == "version" else None,
        spec.version_label if choice == "version_label" else None,
    )


def _set_spec(spec, servable):
    spec.name = servable.name
    spec.version.value = servable.version


def _with_spec(response, servable, signature):
    _set_spec(response.model_spec, servable)
    response.model_spec.signature_name = signature
    return response


def _client(context):
    """Of "ipv4:127.0.0.1:50123", as in the log of REST."""
    peer = context.peer()
    return unquote(peer).partition(":")[2].rpartition(":")[0].strip("[]")


def _line(error):
    """One short line: some clients reject several, all reject a long one."""
    line = " ".join(f"{error}".split()).encode("utf-8", "replace")
    return line[:1000].decode("utf-8", "ignore")
