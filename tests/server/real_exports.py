"""Models of each kind, untrained, but with answers that differ."""

import base64

import keras

from kseq import data, decoding, serving
from kseq.control_tokens import UNK
from kseq.decoding import ForbiddenTokens, MinLength
from tests import recipe_models

_RECIPES = {
    "translator": "translate_lstm",
    "classifier": "classify_documents flat",
    "language model": "write_text lstm",
    "captions": "caption_images lstm",
    "speech": "transcribe_speech",
    "dialogue": "chat hierarchical",
    "retriever": "retrieve_answers",
    "transducer": "learn_algorithms lstm",
}
KINDS = tuple(_RECIPES)
# So that no answer is empty. Greedy searches are traced sooner than beams.
_SEARCH = decoding.GreedySearch(
    length_penalty=0.0, constraints=(MinLength(2), ForbiddenTokens((UNK,)))
)


def make_served(kind):
    """A `Generator`, `Classifier`, `Retriever` or `Transducer`."""
    served = recipe_models.make_served(_RECIPES[kind])
    for weight in served.model.trainable_variables:
        weight.assign(keras.random.normal(weight.shape))
    if kind == "classifier":
        labels = ("a", "ö")
        return serving.Classifier(served.model, served.preprocessor, labels)
    if kind == "retriever":  # of texts, which are no dialogues
        texts = data.TextPreprocessor(served.tokenizer, 32)
        return serving.Retriever(
            served.model, texts, served.tokenizer, served.answers
        )
    if isinstance(served, serving.Generator) and kind != "translator":
        return served.with_search(_SEARCH)
    return served


def inputs_of(kind):
    """What a predictor of this kind takes, several of them."""
    if kind == "retriever":
        return recipe_models.TEXTS
    return recipe_models.inputs_of(_RECIPES[kind])


def to_json(inputs):
    """The same inputs as the instances of a request."""
    if isinstance(inputs[0], bytes):
        return [{"b64": base64.b64encode(each).decode()} for each in inputs]
    if isinstance(inputs[0], list):
        longest = max(map(len, inputs))
        return [turns + [""] * (longest - len(turns)) for turns in inputs]
    return [each if isinstance(each, str) else each.tolist() for each in inputs]
