"""Export to LiteRT, formerly TensorFlow Lite, for phones."""

import contextlib
import json
import os
import re
from pathlib import Path

import keras
import tensorflow as tf
from tensorflow.lite.python.convert_phase import ConverterError

import kseq
from kseq.control_tokens import UNK
from kseq.data import DocumentPreprocessor, Source, TextPreprocessor
from kseq.data.documents.documents import LINE_END
from kseq.data.files.blank_text import BLANK
from kseq.files.json_files import to_json
from kseq.files.new_folder import new_folder
from kseq.serving.classifier import Classifier
from kseq.serving.generator import Generator
from kseq.serving.served_function import served_function
from kseq.terminal import progress
from kseq.user_error import UserError

_README = """\
# {name}

A model for LiteRT, from kseq {version}. It needs no TensorFlow and no kseq:

    pip install ai-edge-litert sentencepiece

```python
import json
import re

import numpy as np
import sentencepiece
from ai_edge_litert.interpreter import Interpreter

folder = "."  # of this file
with open(f"{{folder}}/config.json", encoding="utf-8") as file:
    config = json.load(file)
source = sentencepiece.SentencePieceProcessor(f"{{folder}}/source.model")
model = Interpreter(f"{{folder}}/model.tflite", num_threads=1)
run = model.get_signature_runner()


def ids_of(text):
    text = re.sub("[\\ufdd0\\ufdd1]", "\\ufffd", text.replace("\\r", ""))
    is_blank = re.fullmatch(config["blank"], text)
    return [] if is_blank else source.encode(text.strip("\\t\\n\\v\\f "))


{function}
```

{note}
"""

_GENERATOR = """\
target = sentencepiece.SentencePieceProcessor(f"{folder}/target.model")
END = 3


def answer(text):
    ids = [*ids_of(text)[: config["max_length"] - 1], END]
    found = run(source_ids=np.array([ids], np.int32))["ids"][0].tolist()
    text = target.decode(found[: found.index(END)] if END in found else found)
    return text.lstrip(" ")


print(answer("a text"))"""

_CLASSIFIER = """\
def probabilities(text):
    text = re.sub(config["line_end"], "\\n", text)
    longest = config["max_pieces"]
    rows = [
        ids[start : start + longest]
        for ids in map(ids_of, re.split(config["sentence_end"], text))
        for start in range(0, len(ids), longest)
    ][: config["max_sentences"]]
    width = max(map(len, rows), default=1)
    source_ids = np.zeros((1, config["max_sentences"], width), np.int32)
    for row, ids in zip(source_ids[0], rows):
        row[: len(ids)] = ids
    [found] = run(source_ids=source_ids)["probabilities"]
    return dict(zip(config["labels"], found.tolist()))


print(probabilities("a text"))"""

_OF_GENERATORS = """\
The search is in the model. If the tokenizer is of the type "unigram", it may
divide a text in another way of the same probability than kseq does."""

_OF_CLASSIFIERS = """\
kseq finds the ends of sentences by more rules than `sentence_end`. Where each
line is a sentence, probabilities are the same."""


def export_litert(
    served: Generator | Classifier,
    directory: Path,
    quantize: str | None = None,
) -> Path:
    """Writes a translator or a classifier of documents for LiteRT.

    The folder holds `model.tflite`, which computes in float32 and takes the
    ids of one text, of any length; the tokenizers; `config.json`; and a README
    with the Python to run it. Of a translator, the search is in the model. The
    folder appears atomically.

    Args:
        served: `kseq.serving.Generator` or `Classifier`.
        directory: `pathlib.Path` of a folder that does not exist.
        quantize: "int8" or "float16", in which the matrices are stored; None
            for float32. In int8, products of matrices are computed in it.

    Returns:
        `directory`.

    Raises:
        UserError: if it is another model, or one that the converter refuses;
            if the folder exists or cannot be written.
        DiskError: if the disk is full.

    Reference:
        https://ai.google.dev/edge/litert
    """
    _check(served)
    model = _in_float32(served.model)
    is_generator = isinstance(served, Generator)
    function = (_answer if is_generator else _classify)(served, model)
    with new_folder(directory) as folder:
        converted = _convert(function, model, quantize, directory)
        (folder / "model.tflite").write_bytes(converted)
        for side, tokenizer in served.tokenizers.items():
            (folder / f"{side}.model").write_bytes(tokenizer.model)
        (folder / "config.json").write_text(to_json(_config(served)), "utf-8")
        readme = _README.format(
            name=directory.name,
            version=kseq.__version__,
            function=_GENERATOR if is_generator else _CLASSIFIER,
            note=_OF_GENERATORS if is_generator else _OF_CLASSIFIERS,
        )
        (folder / "README.md").write_text(readme, "utf-8")
    return directory


def _check(served):
    """UserError for what has no text to ids and back, or no single input."""
    kinds = {Generator: TextPreprocessor, Classifier: DocumentPreprocessor}
    found = type(served).__name__, type(served.preprocessor).__name__
    if not isinstance(served.preprocessor, kinds.get(type(served), ())):
        raise UserError(
            "--format litert is for translators and document classifiers. "
            f"This is a {found[0]} with a {found[1]}."
        )
    if getattr(served, "stop", ()):
        raise UserError("--format litert does not support stop strings.")


class _OfOne:
    """A model in a search of one item: the converter must know how many."""

    def __init__(self, model):
        self.model = model

    def __getattr__(self, name):
        return getattr(self.model, name)

    def encode(self, inputs):
        ids = tf.reshape(inputs["source_ids"], (1, -1))
        return self.model.encode({"source_ids": ids})


def _answer(served, model):
    """source_ids (1, S) -> ids (1, T) and score (1,), by the search."""

    def answer(source_ids):
        lengths = tf.math.count_nonzero(source_ids, axis=1, dtype=tf.int32)
        inputs = {"source_ids": _known(source_ids, served.preprocessor)}
        is_blank = lengths <= 1
        source = Source(inputs, lengths, tf.zeros_like(is_blank), is_blank)
        lengths = served.search_lengths(served.search, source)
        best = served.search(_OfOne(model), inputs, **lengths)
        score = tf.where(is_blank, 0.0, best.scores[:, 0])
        return {"ids": best.ids[:, 0], "score": score}

    ids = tf.TensorSpec((1, None), tf.int32, "source_ids")
    return served_function(answer, {ids.name: ids})


def _classify(served, model):
    """source_ids (1, L, W) -> probabilities (1, C)."""

    def classify(source_ids):
        ids = _known(source_ids, served.preprocessor)
        logits = model.explain({"source_ids": ids})["logits"]
        return {"probabilities": tf.nn.softmax(logits / served.temperature)}

    # The converter must know over how many sentences a model loops.
    sentences = served.preprocessor.max_sentences
    ids = tf.TensorSpec((1, sentences, None), tf.int32, "source_ids")
    return served_function(classify, {ids.name: ids})


def _known(ids, preprocessor):
    """A tokenizer may have more pieces than its vocabulary."""
    return tf.where(ids < preprocessor.vocab_size, ids, UNK)


def _config(served):
    config = {"kseq": kseq.__version__, "blank": BLANK}
    config |= served.preprocessor.get_config()
    if isinstance(served, Classifier):
        in_lines = served.preprocessor.in_lines
        config["labels"] = served.labels
        config["line_end"] = LINE_END
        config["sentence_end"] = "[\n\t]" if in_lines else r"(?<=[.!?])\s+|\n"
    return config


def _in_float32(model):
    """The model, or a copy of one that computes in half precision."""
    if model.compute_dtype == "float32":
        return model
    config = json.dumps(keras.saving.serialize_keras_object(model))
    policy = json.dumps(model.dtype_policy.name)
    config = json.loads(config.replace(policy, '"float32"'))
    copy = keras.saving.deserialize_keras_object(config)
    copy.set_weights(model.get_weights())
    return copy


def _convert(function, model, quantize, directory):
    module = tf.Module()
    module.weights = [variable.value for variable in model.variables]
    converter = tf.lite.TFLiteConverter.from_concrete_functions(
        [function.get_concrete_function()], module
    )
    if quantize:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if quantize == "float16":
        converter.target_spec.supported_types = [tf.float16]
    try:
        with _without_messages(), progress(f"Exporting to {directory}"):
            return converter.convert()
    except ConverterError as error:
        reason = re.search(r"'tf\.\w+' op .*|$", f"{error}")[0]
        raise UserError(
            f"The converter of LiteRT refuses this model. {reason}".rstrip()
        ) from error


@contextlib.contextmanager
def _without_messages():
    """Hides what the C++ of the converter prints, for its developers."""
    try:
        copied = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    with (
        os.fdopen(copied, "w") as kept,
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stderr(kept),
    ):
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept.fileno(), 2)
