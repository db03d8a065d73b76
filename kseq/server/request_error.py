"""Errors of requests, by TensorFlow's names for them."""

HTTP_STATUS = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "ABORTED": 409,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "UNKNOWN": 500,
    "INTERNAL": 500,
    "DATA_LOSS": 500,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}


class RequestError(Exception):
    """A request that is refused or has failed.

    Args:
        message: str, for the client.
        code: str, the name of a code of `tf.errors`.
        status: int, of HTTP; that of the code by default.
    """

    def __init__(self, message, code="INVALID_ARGUMENT", status=None):
        super().__init__(message)
        self.code = code
        self.status = status or HTTP_STATUS[code]
