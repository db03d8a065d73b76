"""The models of all recipes, small, untrained, with every rate above 0."""

import functools

import keras
import numpy as np
import tensorflow as tf

from kseq import data, decoding, layers, models, serving
from tests.data.wav import tone, wav

TEXTS = ["the cat sat", "a dog ate 12 bones", "no. A cat?", "Straße 日本", ""]
TURNS = [["Hi!"], ["Is it cold?", "No."], ["Hi!", "the cat", "sat"], [""]]
RATE = 0.3
_LABELS = ("cats", "dogs")


def make_served(kind, dtype="float32"):
    """A `Generator`, `Classifier`, `Retriever`, `Tagger` or `Transducer`.

    Args:
        kind: str, one of `SERVED`: the name of a recipe, and of its model.
        dtype: dtype policy of the model.
    """
    keras.utils.set_random_seed(3)
    return SERVED[kind](dtype)


def batch_of(kind, served):
    """A batch for training: inputs, labels and their weights."""
    raw = inputs_of(kind)
    if isinstance(raw[0], list):
        longest = max(map(len, raw))
        raw = [turns + [""] * (longest - len(turns)) for turns in raw]
    inputs = served.preprocessor(tf.constant(raw)).inputs
    rows = len(raw)
    draw = np.random.default_rng(1)
    match kind.partition(" ")[0]:
        case "classify_documents":
            # Documents of several sentences, some of which are dropped.
            ids = draw.integers(4, 20, (rows, 5, 3), "int32")
            ids[0, 3:] = ids[1, 1:] = ids[2, 0, 1:] = 0
            inputs = {"source_ids": tf.constant(ids)}
            return inputs, tf.constant(draw.integers(0, 2, rows)), tf.ones(rows)
        case "tag_words":
            real = tf.reduce_any(inputs["source_ids"] > 0, axis=-1)
            tags = draw.integers(0, 2, real.shape)
            return inputs, tf.constant(tags), tf.cast(real, "float32")
        case "write_text":
            ids = tf.constant(draw.integers(4, 20, (rows, 7), "int32"))
            return {"target_ids": ids[:, :-1]}, ids[:, 1:], tf.ones((rows, 6))
        case "learn_algorithms":
            bits = tf.constant(draw.integers(0, 2, (rows, 5, 2)), "float32")
            return inputs, bits, tf.ones((rows, 5))
    labels = draw.integers(4, 20, (rows, 6), "int32")
    labels[np.arange(6) > draw.integers(1, 6, (rows, 1))] = 0
    labels = tf.constant(labels)
    inputs = {**inputs, "target_ids": data.teacher_forcing(labels)}
    return inputs, labels, tf.cast(labels > 0, "float32")


def inputs_of(kind):
    """What a predictor of this kind takes, a list of raw inputs."""
    draw = np.random.default_rng(1)
    match kind.partition(" ")[0]:
        case "caption_images":
            pixels = draw.integers(0, 255, (4, 4, 6, 3), np.uint8)
            return [tf.io.encode_png(each).numpy() for each in pixels]
        case "transcribe_speech":
            sounds = (tone(0.1 + n / 20, 300 * (1 + n)) for n in range(4))
            return [wav(sound) for sound in sounds]
        case "chat" | "retrieve_answers":
            return TURNS
        case "learn_algorithms":
            return list(draw.standard_normal((3, 5, 3)).astype("float32"))
        case _:
            return TEXTS


@functools.cache
def _tokenizer(verbatim=False):
    texts = [*TEXTS, *(turn for turns in TURNS for turn in turns)]
    return data.Tokenizer.train(texts, 100, "char", verbatim=verbatim)


def _generator(model, preprocessor, search=None, **options):
    search = search or decoding.GreedySearch()  # traced sooner than a beam
    tokenizer = _tokenizer()
    return serving.Generator(
        *(model, preprocessor, tokenizer, search), max_length=9, **options
    )


def _recurrent(source_size, dtype, **options):
    return models.LSTMSeq2Seq(
        *(source_size, _tokenizer().vocab_size),
        embedding_dim=8,
        units=8,
        dropout=RATE,
        piece_dropout=RATE,
        dtype=dtype,
        **options,
    )


def _translate_lstm(dtype):
    model = _recurrent(
        *(_tokenizer().vocab_size, dtype),
        attention=layers.LuongAttention("general", name="attention"),
        input_feeding=True,
        tie_embeddings=True,
    )
    beam = decoding.BeamSearch(2)
    return _generator(model, data.TextPreprocessor(_tokenizer(), 32), beam)


def _translate_transformer(dtype):
    size = _tokenizer().vocab_size
    model = models.Transformer(
        *(size, size),
        num_encoder_layers=1,
        num_decoder_layers=1,
        model_dim=8,
        ffn_dim=8,
        num_heads=2,
        dropout=RATE,
        piece_dropout=RATE,
        share_embeddings=True,
        dtype=dtype,
    )
    return _generator(model, data.TextPreprocessor(_tokenizer(), 32))


def _translate_convolutional(dtype):
    size = _tokenizer().vocab_size
    model = models.ConvSeq2Seq(
        *(size, size),
        embedding_dim=8,
        units=8,
        num_encoder_layers=2,
        num_decoder_layers=2,
        dropout=RATE,
        piece_dropout=RATE,
        max_length=32,
        dtype=dtype,
    )
    return _generator(model, data.TextPreprocessor(_tokenizer(), 32))


def _classify_documents(model, dtype, **options):
    preprocessor = data.DocumentPreprocessor(
        _tokenizer(), max_sentences=5, max_pieces=12
    )
    model = model(
        *(_tokenizer().vocab_size, len(_LABELS)),
        dropout=RATE,
        piece_dropout=RATE,
        sentence_dropout=RATE,
        dtype=dtype,
        **options,
    )
    return serving.Classifier(model, preprocessor, _LABELS)


def _tag_words(model, dtype, **options):
    model = model(
        *(_tokenizer().vocab_size, len(_LABELS)),
        num_layers=2,
        dropout=RATE,
        piece_dropout=RATE,
        dtype=dtype,
        **options,
    )
    return serving.Tagger(model, data.WordPreprocessor(_tokenizer()), _LABELS)


def _caption_images(decoder, dtype):
    pictures = data.ImagePreprocessor(side=2, rows=2, columns=3)
    both = {
        "num_encoder_layers": 0,
        "source_layer": layers.GridEncoder(8, num_cells=6, dropout=RATE),
        "source_dim": 12,
    }
    if decoder == "lstm":
        attention = layers.BahdanauAttention(8, name="attention")
        model = _recurrent(
            *(None, dtype),
            attention=attention,
            order="luong",
            input_feeding=True,
            tie_embeddings=True,
            coverage=RATE,
            **both,
        )
    else:
        model = models.Transformer(
            *(None, _tokenizer().vocab_size),
            num_decoder_layers=1,
            model_dim=8,
            ffn_dim=8,
            num_heads=2,
            dropout=RATE,
            dtype=dtype,
            **both,
        )
    return _generator(model, pictures)


def _transcribe_speech(front_end, encoder_layers, dtype):
    augment = layers.SpecAugment(time_masks=1, feature_masks=1, stretch=RATE)
    pyramid = layers.PyramidalEncoder(
        *(8, 2), front_end=front_end, dropout=RATE, augment=augment
    )
    model = _recurrent(
        *(None, dtype),
        num_encoder_layers=encoder_layers,
        attention=layers.LocationAwareAttention(8, name="attention"),
        order="bahdanau",
        source_layer=pyramid,
        source_dim=8,
        ctc=RATE,
    )
    sounds = data.AudioPreprocessor(8000, num_mels=8)
    search = decoding.GreedySearch(ctc_weight=0.5)
    return _generator(model, sounds, search)


def _chat(kind, dtype):
    turns = data.DialoguePreprocessor(
        _tokenizer(),
        max_turns=1 if kind == "single" else 3,
        max_pieces=12,
        nested=kind == "hierarchical",
    )
    options = {"attention": layers.BahdanauAttention(8, name="attention")}
    if kind == "hierarchical":
        options = {
            "num_encoder_layers": 0,
            "source_layer": layers.HierarchicalEncoder(8, dropout=RATE),
            "attention": layers.HierarchicalBahdanauAttention(
                8, name="attention"
            ),
        }
    model = _recurrent(
        *(_tokenizer().vocab_size, dtype),
        order="bahdanau",
        tie_embeddings=True,
        **options,
    )
    return _generator(model, turns)


def _retrieve_answers(dtype):
    turns = data.DialoguePreprocessor(_tokenizer(), max_turns=3, max_pieces=12)
    model = models.DualEncoder(
        _tokenizer().vocab_size,
        embedding_dim=8,
        units=8,
        dim=8,
        dropout=RATE,
        dtype=dtype,
    )
    return serving.Retriever(model, turns, _tokenizer(), TEXTS[:4])


def _write_text(model, dtype, **options):
    tokenizer = _tokenizer(verbatim=True)
    model = model(
        tokenizer.vocab_size,
        num_layers=2,
        dropout=RATE,
        max_length=8,
        dtype=dtype,
        **options,
    )
    return serving.Generator(
        model,
        data.PromptPreprocessor(tokenizer, 8),
        tokenizer,
        decoding.Sampling(0.8, 5, length_penalty=0.0),
        max_length=9,
        stop=("cat",),
    )


def _learn_algorithms(make_cell, dtype):
    model = models.BinaryRNN(3, 2, make_cell(), dtype=dtype)
    return serving.Transducer(model, data.VectorPreprocessor(3))


def _turing_machine(controller):
    return layers.NeuralTuringMachine(
        4, slots=5, slot_dim=3, controller=controller, controller_units=4
    )


def _lstm_cells():
    return keras.layers.StackedRNNCells([keras.layers.LSTMCell(4)] * 1)


_HAN_SIZES = {"embedding_dim": 8, "units": 4, "attention_units": 4}
_TRANSFORMER_SIZES = {"model_dim": 8, "ffn_dim": 8, "num_heads": 2}
_partial = functools.partial

SERVED = {
    "translate_lstm": _translate_lstm,
    "translate_transformer": _translate_transformer,
    "translate_convolutional": _translate_convolutional,
    "classify_documents hierarchical": _partial(
        _classify_documents, models.HierarchicalAttention, **_HAN_SIZES
    ),
    "classify_documents flat": _partial(
        _classify_documents, models.FlatAttention, ngrams=2, **_HAN_SIZES
    ),
    "classify_documents transformer": _partial(
        _classify_documents,
        models.TransformerClassifier,
        num_layers=1,
        **_TRANSFORMER_SIZES,
    ),
    "tag_words lstm": _partial(
        _tag_words, models.LSTMTagger, embedding_dim=8, units=8
    ),
    "tag_words transformer": _partial(
        _tag_words, models.TransformerTagger, **_TRANSFORMER_SIZES
    ),
    "caption_images lstm": _partial(_caption_images, "lstm"),
    "caption_images transformer": _partial(_caption_images, "transformer"),
    "transcribe_speech": _partial(_transcribe_speech, "none", 0),
    "transcribe_speech convolution": _partial(
        _transcribe_speech, "convolution", 1
    ),
    "chat single": _partial(_chat, "single"),
    "chat joined": _partial(_chat, "joined"),
    "chat hierarchical": _partial(_chat, "hierarchical"),
    "retrieve_answers": _retrieve_answers,
    "write_text transformer": _partial(
        _write_text, models.TransformerLM, **_TRANSFORMER_SIZES
    ),
    "write_text lstm": _partial(
        _write_text, models.LSTMLM, embedding_dim=8, units=8
    ),
    "learn_algorithms ntm": _partial(
        _learn_algorithms, _partial(_turing_machine, "lstm")
    ),
    "learn_algorithms ntm dense": _partial(
        _learn_algorithms, _partial(_turing_machine, "dense")
    ),
    "learn_algorithms lstm": _partial(_learn_algorithms, _lstm_cells),
}
