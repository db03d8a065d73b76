"""One loaded version of an export."""

import contextlib

import numpy as np
import tensorflow as tf
from tensorflow.saved_model import CLASSIFY_METHOD_NAME

from kseq.loading.load_export import load_signatures, read_safe_graph
from kseq.server.long_texts import cut_examples, cut_texts
from kseq.server.request_error import HTTP_STATUS, RequestError
from kseq.serving.answer_stream import (
    STREAM_NEXT,
    STREAM_START,
    STREAM_TEXT,
    state_of,
)
from kseq.user_error import reason_of

_OF_STREAMS = (STREAM_START, STREAM_NEXT, STREAM_TEXT)


class Servable:
    """A version of an export, loaded and warmed up.

    Args:
        name: str, of the model.
        path: `pathlib.Path` of the version, whose name is its number.
        allow_ops: see `load_export`.

    Attributes:
        path: the same.
        version: int.
        signatures: dict, name -> `SignatureDef`, without those of a stream.
        streamed: str, the name of the signature whose answers can be streamed,
            see `kseq.server.streamed_answer`; None if there is none.

    Raises:
        UserError: if it is broken, or may not be loaded.
    """

    def __init__(self, name, path, allow_ops=()):
        self.name = name
        self.path = path
        self.version = int(path.name)
        meta_graph = read_safe_graph(path, allow_ops)
        self._definitions = dict(meta_graph.signature_def)
        self.streamed = _streamed(self._definitions)
        self.signatures = {
            key: definition
            for key, definition in self._definitions.items()
            if self.streamed is None or key not in _OF_STREAMS
        }
        self._functions = load_signatures(path, meta_graph)
        self._has_description = False
        self._warm_up()

    def run(self, signature, inputs):
        """Calls a signature.

        An export of kseq reads a part of a text of more than 64 KiB, and its
        output `truncated`, if it has one, says so.

        Args:
            signature: str, its name.
            inputs: dict, name -> `np.ndarray`.

        Returns:
            dict, name -> `np.ndarray`, in the order of the names.

        Raises:
            RequestError: if TensorFlow rejects the inputs.
        """
        specs = self._definitions[signature].inputs
        inputs, cut = self._cut(signature, inputs)
        try:
            outputs = self._functions[signature](
                **{
                    name: tf.constant(value, specs[name].dtype)
                    for name, value in inputs.items()
                }
            )
            arrays = {name: _array(outputs[name]) for name in sorted(outputs)}
        except tf.errors.OpError as error:
            raise _request_error(error) from error
        except UnicodeDecodeError as error:  # in the text of such an error
            raise RequestError("The text is not valid UTF-8") from error
        if cut:
            arrays["truncated"] = arrays["truncated"].copy()
            arrays["truncated"][cut] = True
        return arrays

    def adds_rows(self, signature):
        """Whether requests of a signature can be batched.

        This needs the batch as the first dimension, and as the only one of the
        outputs that varies: padded outputs have a different shape in a batch.
        """
        inputs, outputs = self._shapes(signature)
        return all(shape[:1] == [-1] for shape in inputs + outputs) and all(
            -1 not in shape[1:] for shape in outputs
        )

    def pads_rows(self, signature):
        """Whether outputs are padded to the longest row, with "" and 0.

        Exports of kseq pad in this way; the padding of others is not known.
        """
        inputs, outputs = self._shapes(signature)
        return self._is_of_kseq() and all(
            shape[:1] == [-1] for shape in inputs + outputs
        )

    def _is_of_kseq(self):
        """Whether kseq has exported it, as a file says that may come last."""
        if not self._has_description:
            description = self.path / "assets.extra" / "kseq.json"
            self._has_description = description.is_file()
        return self._has_description

    def _shapes(self, signature):
        definition = self._definitions[signature]
        return tuple(
            [
                [dim.size for dim in info.tensor_shape.dim]
                for info in infos.values()
            ]
            for infos in (definition.inputs, definition.outputs)
        )

    def _cut(self, signature, inputs):
        """Inputs without the text that no model reads, and the rows cut."""
        definition = self._definitions[signature]
        if not self._is_of_kseq():
            return inputs, []
        if definition.method_name == CLASSIFY_METHOD_NAME:
            return {"inputs": cut_examples(inputs["inputs"])}, []
        if "truncated" in definition.outputs:
            return cut_texts(inputs)
        return inputs, []

    def _warm_up(self):
        """Calls each signature once: the first call optimizes its graph.

        A signature may reject the input, because it is not a picture, but its
        graph is optimized all the same.
        """
        for name in self._functions:
            inputs = {
                key: _example(info)
                for key, info in self._definitions[name].inputs.items()
            }
            if self.streamed and name == STREAM_NEXT:
                continue  # after the other
            with contextlib.suppress(RequestError):
                outputs = self.run(name, inputs)
                if self.streamed and name == STREAM_START:
                    more = {"more": np.ones(1, np.int32)}
                    self.run(STREAM_NEXT, more | state_of(outputs))


def _streamed(definitions):
    """The signature that gives the same answers as a stream, or None."""
    if not {STREAM_START, STREAM_NEXT} <= definitions.keys():
        return None
    inputs = definitions[STREAM_START].inputs.keys()
    for name in ("sample", "serving_default"):
        if name in definitions and definitions[name].inputs.keys() == inputs:
            return name
    return None


def _array(tensor):
    value = tensor.numpy()  # bytes, of one string
    return np.array(value, object) if isinstance(value, bytes) else value


def _request_error(error):
    codes = (
        n for n in HTTP_STATUS if getattr(tf.errors, n) == error.error_code
    )
    return RequestError(f"{reason_of(error):.500}", next(codes, "UNKNOWN"))


def _example(info):
    """A small example of an input of a signature."""
    shape = [max(dim.size, 1) for dim in info.tensor_shape.dim]
    dtype = tf.dtypes.as_dtype(info.dtype)
    if dtype == tf.string:
        return np.full(shape, b"a", object)
    return np.zeros(shape, dtype.as_numpy_dtype)
