"""The models from sequences to sequences, each with sources that it reads.

A test of what all of them promise runs over `CASES`, `TYPICAL_CASES` or
`SYSTEMS`; what a model alone can do is tested beside it. A test that decodes
nothing also runs over `RETRIEVAL`, whose targets are answers to be found.
"""

import functools
import itertools

import numpy as np

from kseq.control_tokens import END, PAD, START
from kseq.layers import (
    BahdanauAttention,
    GridEncoder,
    HierarchicalBahdanauAttention,
    HierarchicalEncoder,
    LocalAttention,
    LocationAttention,
    LocationAwareAttention,
    LuongAttention,
    PyramidalEncoder,
    SpecAugment,
)
from kseq.models import ConvSeq2Seq, DualEncoder, LSTMSeq2Seq, Transformer
from tests.models.new_weights import new_weights
from tests.slow import others_slow

VOCAB = 14  # of targets
FEATURES = {"source_vocab_size": None, "source_dim": 3, "num_encoder_layers": 0}
ATTENTIONS = {
    "bahdanau": lambda: BahdanauAttention(units=5, name="attention"),
    "dot": lambda: LuongAttention("dot", name="attention"),
    "scaled_dot": lambda: LuongAttention("scaled_dot", name="attention"),
    "general": lambda: LuongAttention("general", name="attention"),
    "concat": lambda: LuongAttention("concat", units=5, name="attention"),
    "window": lambda: LuongAttention("dot", window=2, name="attention"),
    "location-aware": lambda: LocationAwareAttention(
        5, 2, kernel_size=3, name="attention"
    ),
    "local-m": lambda: LocalAttention(
        "dot", window=1, alignment="monotonic", name="attention"
    ),
    "local-p": lambda: LocalAttention(window=2, name="attention"),
    "location": lambda: LocationAttention(max_length=5, name="attention"),
    "turns": lambda: HierarchicalBahdanauAttention(5, name="attention"),
    "none": lambda: None,
}
WIRINGS = {
    "luong": {"order": "luong"},
    "feeding": {"order": "luong", "input_feeding": True},
    "bahdanau": {"order": "bahdanau"},
}


# Models.


def lstm(attention="dot", wiring="luong", **settings):
    if isinstance(attention, str):
        attention = ATTENTIONS[attention]()
    settings = {
        "source_vocab_size": 12,
        "attention": attention,
        "embedding_dim": 6,
        "units": 8,
        **WIRINGS[wiring],
        **settings,
    }
    return LSTMSeq2Seq(target_vocab_size=VOCAB, **settings)


def transformer(**settings):
    settings = {
        "source_vocab_size": 12,
        "target_vocab_size": VOCAB,
        "num_encoder_layers": 1,
        "num_decoder_layers": 2,
        "model_dim": 16,
        "ffn_dim": 32,
        "num_heads": 4,
        **settings,
    }
    return Transformer(**settings)


def convolutional(**settings):
    settings = {
        "embedding_dim": 6,
        "units": 8,
        "num_encoder_layers": 2,
        "num_decoder_layers": 2,
        "max_length": 16,
        **settings,
    }
    return ConvSeq2Seq(12, VOCAB, **settings)


def captions(attention="bahdanau", wiring="bahdanau", **settings):
    grid = GridEncoder(8, num_cells=8)
    settings = FEATURES | {"source_layer": grid} | settings
    return lstm(attention, wiring, **settings)


def caption_transformer(**settings):
    grid = GridEncoder(16, num_cells=8)
    return transformer(**FEATURES | {"source_layer": grid} | settings)


def speech(**settings):
    """A recognizer of speech with all that it may have."""
    augment = SpecAugment(1, 1, 1, 1, stretch=0.2)
    encoder = PyramidalEncoder(8, num_layers=2, augment=augment)
    settings = FEATURES | {"source_layer": encoder, "ctc": 0.3} | settings
    return lstm("location-aware", "bahdanau", **settings)


def chat(attention="turns", wiring="bahdanau", **settings):
    encoder = HierarchicalEncoder(8, settings.get("cell", "lstm"))
    settings = {"source_layer": encoder, "num_encoder_layers": 0} | settings
    return lstm(attention, wiring, **settings)


def retrieval(**settings):
    settings = {"embedding_dim": 6, "units": 4, "dim": 5} | settings
    return DualEncoder(12, VOCAB, **settings)


# Sources: arrays by the names of inputs, and the same with more padding.


def text(size):
    """Lengths differ, down to END alone."""
    ids = np.random.randint(END + 1, 12, (size, 6))
    ids[: size // 2, 4:] = ids[:1, 1:] = PAD
    return {"source_ids": ids}


def frames(size):
    """As many as a grid has cells, some of them padding."""
    mask = np.ones((size, 5), bool)
    mask[: size // 2, 4:] = mask[:1, 3:] = False
    source = np.random.normal(size=(size, 5, 3)).astype("float32")
    return {"source": source, "source_mask": mask}


def turns(size):
    """A dialogue of one turn, dialogues of short turns."""
    ids = np.random.randint(END + 1, 12, (size, 3, 4))
    ids[:1, 1:] = ids[1:2, :, 2:] = PAD
    return {"source_ids": ids}


def with_padding(inputs):
    """Two positions more of each kind, with noise under a mask of False."""
    padded = {}
    for name, values in inputs.items():
        widths = [(0, 0)] + [(0, 2)] * (values.ndim - 1)
        if name == "source":
            widths[-1] = (0, 0)  # features
        padded[name] = np.pad(values, widths)
    if "source" in padded:
        padded["source"][:, -2:] = np.random.normal(size=3)
    return padded


def batch_of(source, size):
    """Inputs, labels and weights, with padding on both sides."""
    labels = np.random.randint(END + 1, VOCAB, (size, 4))
    labels[: size // 2, 2:] = labels[:1, 1:] = PAD
    shifted = np.pad(labels, [(0, 0), (1, 0)], constant_values=START)[:, :-1]
    shifted[labels == PAD] = PAD
    weights = (labels != PAD).astype("float32")
    return source(size) | {"target_ids": shifted}, labels, weights


# What each test runs over.

# One of each system, with what its recipe gives it.
SYSTEMS = {
    "lstm": (functools.partial(lstm, "general", "feeding"), text),
    "transformer": (transformer, text),
    "convolutional": (convolutional, text),
    "captions": (functools.partial(captions, coverage=0.5), frames),
    "caption transformer": (caption_transformer, frames),
    "speech": (speech, frames),
    "chat": (chat, turns),
}
RETRIEVAL = {"retrieval": (retrieval, text)}
# What differs in its computations.
_VARIANTS = SYSTEMS | {
    "bahdanau, bahdanau": (
        functools.partial(lstm, "bahdanau", "bahdanau"),
        text,
    ),
    "window, luong": (functools.partial(lstm, "window"), text),
    "location, feeding": (functools.partial(lstm, "location", "feeding"), text),
    "local-m, luong": (functools.partial(lstm, "local-m"), text),
    "local-m, gru, bahdanau": (
        functools.partial(lstm, "local-m", "bahdanau", cell="gru"),
        text,
    ),
    "local-m, gru": (functools.partial(lstm, "local-m", cell="gru"), text),
    "local-p, feeding": (functools.partial(lstm, "local-p", "feeding"), text),
    "copies": (
        functools.partial(lstm, source_vocab_size=VOCAB, copy=True),
        text,
    ),
    "copies, feeding, coverage": (
        functools.partial(
            lstm,
            "general",
            "feeding",
            source_vocab_size=VOCAB,
            copy=True,
            coverage=0.5,
            tie_embeddings=True,
        ),
        text,
    ),
    "no attention": (functools.partial(lstm, "none"), text),
    "one direction": (functools.partial(lstm, bidirectional=False), text),
    "reversed source": (
        functools.partial(
            lstm,
            bidirectional=False,
            reverse_source=True,
            num_encoder_layers=2,
        ),
        text,
    ),
    "gru, one direction": (
        functools.partial(
            lstm, cell="gru", bidirectional=False, num_encoder_layers=2
        ),
        text,
    ),
    "gru, two layers, feeding": (
        functools.partial(
            lstm,
            wiring="feeding",
            cell="gru",
            num_encoder_layers=2,
            num_decoder_layers=2,
        ),
        text,
    ),
    "gru, two layers, bahdanau": (
        functools.partial(
            lstm, "bahdanau", "bahdanau", cell="gru", num_decoder_layers=2
        ),
        text,
    ),
    "tanh cells": (
        functools.partial(lstm, cell="tanh", num_decoder_layers=2),
        text,
    ),
    "tied embeddings": (
        functools.partial(
            lstm,
            "general",
            "feeding",
            num_encoder_layers=2,
            num_decoder_layers=2,
            dropout=0.1,
            tie_embeddings=True,
        ),
        text,
    ),
    "Marian": (
        functools.partial(
            transformer, norm="post", activation="silu", output_bias=True
        ),
        text,
    ),
    "OpenNMT-tf": (
        functools.partial(
            transformer,
            positions="learned",
            max_length=16,
            tie_output=False,
            norm_epsilon=1e-3,
            source_end=False,
        ),
        text,
    ),
    "window of a transformer": (functools.partial(transformer, window=2), text),
    "rotary positions and grouped queries": (
        functools.partial(
            transformer,
            num_decoder_layers=1,
            positions="rotary",
            num_kv_heads=2,
            norm="both",
            normalization="rms",
            activation="swiglu",
        ),
        text,
    ),
    "relative positions and shared layers": (
        functools.partial(
            transformer,
            positions="relative",
            share_layers=True,
            activation="gelu",
        ),
        text,
    ),
    "relative positions in a window": (
        functools.partial(transformer, positions="relative", window=2),
        text,
    ),
    "no positions": (functools.partial(transformer, positions="none"), text),
    "shared embeddings": (
        functools.partial(
            transformer, source_vocab_size=VOCAB, share_embeddings=True
        ),
        text,
    ),
    "untied output": (functools.partial(transformer, tie_output=False), text),
    "convolutional, untied output, kernels of 4": (
        functools.partial(convolutional, tie_output=False, kernel_size=4),
        text,
    ),
    "convolutional, kernels of 1": (
        functools.partial(convolutional, kernel_size=1),
        text,
    ),
    "another transformer": (
        functools.partial(
            transformer,
            num_decoder_layers=1,
            norm="post",
            positions="learned",
            max_length=16,
            window=2,
            tie_output=False,
        ),
        text,
    ),
    "captions, feeding": (
        functools.partial(captions, wiring="feeding"),
        frames,
    ),
    "captions, gated context": (
        functools.partial(captions, context_gate=True),
        frames,
    ),
    "captions, feeding, gated context": (
        functools.partial(captions, wiring="feeding", context_gate=True),
        frames,
    ),
    "captions, gru, two layers": (
        functools.partial(
            captions, wiring="luong", cell="gru", num_decoder_layers=2
        ),
        frames,
    ),
    "captions with an encoder": (
        functools.partial(captions, num_encoder_layers=1),
        frames,
    ),
    "caption transformer with an encoder": (
        functools.partial(caption_transformer, num_encoder_layers=1),
        frames,
    ),
    "captions, no attention": (
        functools.partial(captions, "none", "luong"),
        frames,
    ),
    "chat, feeding": (functools.partial(chat, wiring="feeding"), turns),
    "chat, coverage": (functools.partial(chat, coverage=0.5), turns),
    "chat, gru, two layers": (
        functools.partial(
            chat, wiring="luong", cell="gru", num_decoder_layers=2
        ),
        turns,
    ),
    "chat, no attention": (functools.partial(chat, "none", "luong"), turns),
}
_PAIRS = {
    f"{attention}, {wiring}": (functools.partial(lstm, attention, wiring), text)
    for attention, wiring in itertools.product(ATTENTIONS, WIRINGS)
    if attention not in ("turns", "none")
    if (attention, wiring) != ("location-aware", "luong")
}
CASES = _PAIRS | _VARIANTS
# The most different ones in every run, all pairs of values before a release.
_OFTEN = {
    *("lstm", "convolutional", "another transformer"),
    "rotary positions and grouped queries",
    "relative positions and shared layers",
    *("copies", "local-m, luong", "local-p, feeding"),
    "captions, gated context",
}
# Most of what has a state of its own, too.
_OFTEN_IN_STEPS = {
    *(*_OFTEN, "speech", "gru, one direction", "location, feeding"),
    "reversed source",
}


# One of each kind of state.
_OFTEN_REORDERED = {
    *("lstm", "convolutional", "copies", "local-m, luong"),
    "rotary positions and grouped queries",
}
# One of each way in which a source is read.
_OFTEN_WITHOUT_SOURCE = {
    *("lstm", "convolutional", "another transformer", "copies"),
    *("local-p, feeding", "captions, gated context"),
}


EVERY_CASE = others_slow(CASES, _OFTEN_IN_STEPS)
TYPICAL_CASES = others_slow(_VARIANTS, _OFTEN)
REORDERED_CASES = others_slow(_VARIANTS, _OFTEN_REORDERED)
CASES_WITHOUT_SOURCE = others_slow(_VARIANTS, _OFTEN_WITHOUT_SOURCE)
CASES |= RETRIEVAL


@functools.cache
def _built(name, dtype):
    """A model, and what its variables were at first."""
    model = CASES[name][0](dtype=dtype)
    return model, [variable.numpy() for variable in model.variables]


def model_of(name, dtype="float32"):
    """The model of a case, which tests share, with new weights."""
    return new_weights(*_built(name, dtype))
