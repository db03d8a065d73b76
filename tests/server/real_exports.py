"""Small models of each kind, untrained, but with answers that differ."""

import base64

import keras
import numpy as np
import tensorflow as tf

from kseq import data, decoding, layers, models, serving
from kseq.control_tokens import END, UNK
from kseq.data.documents.dispatch_reports import dispatch_reports
from tests.data.wav import tone, wav

TEXTS = ["the cat sat", "a dog ate 12 bones", "Straße 日本", "no", ""]
TURNS = [["Hi!"], ["Is it cold?", "No."], ["Hi!", "the cat", "sat"], [""]]


def make_served(kind):
    """A `Generator`, `Classifier`, `Retriever` or `Transducer`."""
    keras.utils.set_random_seed(3)
    served = _KINDS[kind]()
    for weight in served.model.trainable_variables:
        weight.assign(keras.random.normal(weight.shape))
    if isinstance(served, serving.Generator) and kind != "translator":
        layer = "output_layer" if kind == "language model" else "projection"
        output_bias = getattr(served.model, layer).bias
        bias = output_bias.numpy()
        bias[[UNK, END]] -= 9  # no answer is empty
        output_bias.assign(bias)
    return served


def inputs_of(kind):
    """What a predictor of this kind takes, several of them."""
    draw = np.random.default_rng(1)
    match kind:
        case "captions":
            pixels = draw.integers(0, 255, (4, 4, 6, 3), np.uint8)
            return [tf.io.encode_png(each).numpy() for each in pixels]
        case "speech":
            sounds = (tone(0.1 + n / 20, 300 * (1 + n)) for n in range(4))
            return [wav(sound) for sound in sounds]
        case "dialogue":
            return TURNS
        case "transducer":
            return list(draw.standard_normal((3, 5, 3)).astype("float32"))
        case _:
            return TEXTS


def to_json(inputs):
    """The same inputs as the instances of a request."""
    if isinstance(inputs[0], bytes):
        return [{"b64": base64.b64encode(each).decode()} for each in inputs]
    if isinstance(inputs[0], list):
        longest = max(map(len, inputs))
        return [turns + [""] * (longest - len(turns)) for turns in inputs]
    return [each if isinstance(each, str) else each.tolist() for each in inputs]


def _tokenizer(texts=TEXTS):
    return data.Tokenizer.train(texts, 100, "char")


def _generator(model, preprocessor, tokenizer, search=None):
    # A greedy search is traced sooner than a beam.
    return serving.Generator(
        model,
        preprocessor,
        tokenizer,
        search or decoding.GreedySearch(),
        max_length=9,
    )


def _recurrent(sources, targets, **options):
    return models.LSTMSeq2Seq(
        *(sources, targets), embedding_dim=8, units=8, **options
    )


def _translator():
    tokenizer = _tokenizer()
    size = tokenizer.vocab_size
    model = _recurrent(size, size, attention=layers.LuongAttention("dot"))
    beam = decoding.BeamSearch(beam_size=2)
    preprocessor = data.TextPreprocessor(tokenizer, 32)
    return _generator(model, preprocessor, tokenizer, beam)


def _classifier():
    model = models.FlatAttention(
        *(400, 3), embedding_dim=6, units=4, attention_units=3
    )
    documents = dispatch_reports("train", size=50)
    preprocessor = data.DocumentPreprocessor.train(documents, 400)
    return serving.Classifier(model, preprocessor, ("a", "b", "ö"))


def _language_model():
    tokenizer = data.Tokenizer.train(TEXTS, 99, "char", verbatim=True)
    model = models.LSTMLM(
        tokenizer.vocab_size,
        num_layers=1,
        embedding_dim=4,
        units=5,
        max_length=8,
    )
    search = decoding.GreedySearch(length_penalty=0.0)
    preprocessor = data.PromptPreprocessor(tokenizer, 8)
    return _generator(model, preprocessor, tokenizer, search)


def _captions():
    tokenizer = _tokenizer()
    model = _recurrent(
        *(None, tokenizer.vocab_size),
        num_encoder_layers=0,
        attention=layers.BahdanauAttention(4),
        order="bahdanau",
        source_layer=layers.GridEncoder(8, num_cells=6),
        source_dim=12,
    )
    pictures = data.ImagePreprocessor(side=2, rows=2, columns=3)
    return _generator(model, pictures, tokenizer)


def _speech():
    tokenizer = _tokenizer()
    model = _recurrent(
        *(None, tokenizer.vocab_size),
        num_encoder_layers=0,
        attention=layers.LocationAwareAttention(4, kernel_size=5),
        order="bahdanau",
        source_layer=layers.PyramidalEncoder(8, num_layers=2),
        source_dim=8,
    )
    sounds = data.AudioPreprocessor(8000, num_mels=8)
    return _generator(model, sounds, tokenizer)


def _dialogue():
    tokenizer = _tokenizer([turn for turns in TURNS for turn in turns])
    model = _recurrent(
        *(tokenizer.vocab_size, tokenizer.vocab_size),
        num_encoder_layers=0,
        source_layer=layers.HierarchicalEncoder(8),
        attention=layers.HierarchicalBahdanauAttention(4),
        order="bahdanau",
    )
    turns = data.DialoguePreprocessor(tokenizer, max_turns=3, nested=True)
    return _generator(model, turns, tokenizer)


def _retriever():
    tokenizer = _tokenizer()
    size = tokenizer.vocab_size
    model = models.DualEncoder(size, embedding_dim=8, units=8, dim=8)
    preprocessor = data.TextPreprocessor(tokenizer, 32)
    return serving.Retriever(model, preprocessor, tokenizer, TEXTS[:4])


def _transducer():
    model = models.BinaryRNN(3, 2, keras.layers.LSTMCell(4))
    return serving.Transducer(model, data.VectorPreprocessor(3))


_KINDS = {
    "translator": _translator,
    "classifier": _classifier,
    "language model": _language_model,
    "captions": _captions,
    "speech": _speech,
    "dialogue": _dialogue,
    "retriever": _retriever,
    "transducer": _transducer,
}
KINDS = tuple(_KINDS)
