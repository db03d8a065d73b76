"""The messages of gRPC, read within limits."""

import asyncio
import collections
import contextlib

import grpc
from google.protobuf.message import DecodeError

from kseq.server.request_error import RequestError

_READERS = 4  # messages that are read at once, or more if they are small:
_READ = 64 * 2**20  # bytes of them together
_PACE = 5.0  # seconds for a message that others wait for
_CALLS = 512  # at once; more of them are refused
_COPIES = 4  # of a message: its bytes, its objects, and their arrays


class GrpcMessages(grpc.aio.ServerInterceptor):
    """Refuses calls that are unknown or too many, and reads messages.

    Few messages are read at once, and their bytes are counted before decoding.

    gRPC reads the whole message of a unary call before it can be refused.
    Therefore the server treats each call as a stream, and reads its only
    message when it is its turn.

    Args:
        memory: `BodyMemory`.
        limit: int, bytes of a message.
        timeout: float, seconds in which a message must arrive.
        client: callable of a context, the address of its client.
        refuse: coroutine function of a context, the name of a method and a
            `RequestError`.
        probe: str, the method that is answered even if there are too many
            calls.
    """

    def __init__(self, memory, limit, timeout, client, refuse, probe):
        self.memory = memory
        self.timeout = timeout
        self.client = client
        self.refuse = refuse
        self.probe = probe
        self._calls = 0
        self._free = asyncio.Semaphore(max(_READERS, _READ // limit))
        self._readers = collections.deque()  # (since when, its timeout)

    async def intercept_service(self, continuation, handler_call_details):
        method = handler_call_details.method
        handler = await continuation(handler_call_details)
        if handler is None:
            unknown = RequestError("Method not found!", "UNIMPLEMENTED")
            return self._refusing(method, unknown)
        if handler.request_streaming:
            return handler
        name = method.rpartition("/")[2]
        if self._calls >= _CALLS and method != self.probe:
            return self._refusing(
                name, RequestError("Too many calls", "RESOURCE_EXHAUSTED")
            )

        async def read(context, hold):
            request = refused = None
            try:
                request = await self._read(context, handler, hold)
            except RequestError as error:  # its frames have the message
                refused = error.with_traceback(None)
            if refused:  # ends the call by an exception
                await self.refuse(context, name, refused)
            return request

        async def answer(_, context):
            with self._call(context) as hold:
                request = await read(context, hold)
                return await handler.unary_unary(request, context)

        async def answer_in_parts(_, context):
            with self._call(context) as hold:
                request = await read(context, hold)
                responses = handler.unary_stream(request, context)
                async with contextlib.aclosing(responses):
                    async for response in responses:
                        yield response

        if handler.response_streaming:
            return grpc.stream_stream_rpc_method_handler(
                answer_in_parts,
                response_serializer=handler.response_serializer,
            )
        return grpc.stream_unary_rpc_method_handler(
            answer, response_serializer=handler.response_serializer
        )

    def _refusing(self, name, error):
        """The handler of a call whose message is not read."""

        async def answer(_, context):
            await self.refuse(context, name, error)

        return grpc.stream_unary_rpc_method_handler(answer)

    @contextlib.contextmanager
    def _call(self, context):
        """Counts a call, and gives the callable that holds its memory."""
        self._calls += 1
        try:
            with self.memory.hold(self.client(context)) as hold:
                yield hold
        finally:
            self._calls -= 1

    async def _read(self, context, handler, hold):
        """The request of a call."""
        try:
            async with self._turn():
                message = await context.read()  # an iterator would keep it
        except TimeoutError:
            raise RequestError(
                "The message was not received in time", "DEADLINE_EXCEEDED"
            ) from None
        if message is grpc.aio.EOF:
            raise RequestError("Expected a message")
        hold(_COPIES * len(message))
        try:
            return await asyncio.to_thread(
                handler.request_deserializer, message
            )
        except DecodeError:
            raise RequestError("The message cannot be decoded") from None

    @contextlib.asynccontextmanager
    async def _turn(self):
        """Waits for a turn; the call that has been reading longest must end."""
        if self._free.locked() and self._readers:
            since, deadline = self._readers.popleft()
            deadline.reschedule(since + _PACE)
        async with self._free, asyncio.timeout(self.timeout) as deadline:
            reader = asyncio.get_running_loop().time(), deadline
            self._readers.append(reader)
            try:
                yield
            finally:
                if reader in self._readers:
                    self._readers.remove(reader)
