# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The attention laboratory
#
# Five experiments: attention by hand, sinusoidal positions, word order in a
# Transformer, every attention score on the same data, and the bottleneck that
# attention removes. The first three take seconds. The last two train a model
# for each entry of `attentions` and each of two corpora, in half a minute each
# on one core. For a quicker run, delete entries.
#
# Tables are printed in Markdown, and pictures are also written to the current
# directory.

# %%
import random
import time

import keras
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

import kseq
from kseq import data, decoding, layers, models, serving, training

SEED = 1
UNITS, STEPS = 64, 300
PAIRS, TESTS = 20_000, 200

# %% [markdown]
# ## Attention by hand
#
# Three states of a source and one query. Each score is one line of arithmetic.
# A softmax of the energies gives the weights, and the weighted sum of the
# states is the context.

# %%
states = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
query = np.array([1.0, 2.0])
W = np.array([[2.0, 0.0], [0.0, 0.5]])  # of general
A = np.array([[0.5, 0.0], [0.0, 0.5]])  # of the query
U = np.array([[0.0, 1.0], [1.0, 0.0]])  # of the states
v = np.array([1.0, 1.0])

by_hand = {
    "dot": [query @ h for h in states],
    "scaled_dot": [query @ h / np.sqrt(2) for h in states],
    "general": [query @ W @ h for h in states],
    "concat": [
        v @ np.tanh(np.hstack([A, U]) @ np.concatenate([query, h]))
        for h in states
    ],
    "additive": [v @ np.tanh(A @ query + U @ h) for h in states],
}

# %% [markdown]
# The layers compute the same numbers. A kernel of Keras is the transpose of the
# matrix in the paper. Luong's concat is Bahdanau's additive score: the matrix
# of a concatenation is two matrices side by side.

# %%
by_layer = {
    "dot": (layers.LuongAttention("dot"), []),
    "scaled_dot": (layers.LuongAttention("scaled_dot"), []),
    "general": (layers.LuongAttention("general"), [W.T]),
    "concat": (layers.LuongAttention("concat", units=2), [v, A.T, U.T]),
    "additive": (layers.BahdanauAttention(units=2), [v, A.T, U.T]),
}


def numbers(values):
    return " ".join(f"{value:.3f}" for value in values)


for score, energies in by_hand.items():
    weights = np.exp(energies) / np.exp(energies).sum()
    context = weights @ states

    layer, kernels = by_layer[score]
    layer.build((1, 1, 2), (1, 3, 2))
    layer.set_weights(kernels)
    found = layer(query[None, None], states[None], return_weights=True)
    for computed, expected in zip(found, (context, weights), strict=True):
        np.testing.assert_allclose(computed[0, 0], expected, rtol=1e-5)
    row = score, numbers(energies), numbers(weights), numbers(context)
    print("|", " | ".join(row), "|")

# %% [markdown]
# ## Sinusoidal positions
#
# The encoding of a position consists of sines and cosines with wavelengths from
# 2 pi to 10000 times 2 pi. The dot product of two encodings depends only on the
# distance between their positions.

# %%
positions = np.arange(40)
encodings = kseq.ops.sinusoids(positions, 64).numpy()
products = encodings @ encodings.T
distances = abs(positions[:, None] - positions)
difference = abs(products - products[0][distances]).max()
print(f"largest difference at the same distance: {difference:.1e}")

figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(11, 3.2), layout="constrained"
)
left.imshow(encodings.T, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
left.set(title="encodings", xlabel="position", ylabel="sines, then cosines")
middle.imshow(products, cmap="Greys", aspect="auto")
middle.set(title="dot products", xlabel="position", ylabel="position")
right.plot(products[[5, 20, 35]].T)
right.set(title="dot products with 5, 20 and 35", xlabel="position")
right.spines[["top", "right"]].set_visible(False)
figure.savefig("laboratory_sinusoids.png", dpi=80)

# %% [markdown]
# ## Word order in a Transformer
#
# Attention sums over the source, and a sum has no order. Without positional
# encodings a Transformer gives the same answer to the same words in any order,
# whatever its weights: here eight sources and a permutation of each, and the
# largest change of a logit in an untrained model.

# %%
training.set_seed(SEED)
draw = np.random.default_rng(SEED)
source = draw.integers(4, 50, (8, 12))
permuted = draw.permuted(source, axis=1)
target = draw.integers(4, 50, (8, 6))
for kind in ("none", "sinusoidal", "learned", "relative", "rotary"):
    transformer = models.Transformer(
        *(50, 50),
        num_encoder_layers=1,
        num_decoder_layers=1,
        model_dim=32,
        ffn_dim=64,
        num_heads=4,
        positions=kind,
    )
    before, after = (
        transformer({"source_ids": ids, "target_ids": target})
        for ids in (source, permuted)
    )
    print(f"| {kind} | {abs(before - after).numpy().max():.1e} |")

# %% [markdown]
# ## Two corpora
#
# Dates, as people write them, become ISO 8601: the order changes. Numbers of 1
# to 20 random digits are copied: the order stays, and there is nothing to know
# but where to look. A token is a character.


# %%
def digits(count, shortest, longest, seed):
    draw = random.Random(seed)
    return [
        "".join(draw.choices("0123456789", k=draw.randint(shortest, longest)))
        for _ in range(count)
    ]


copied = digits(PAIRS, 1, 20, SEED)
corpora = {"dates": data.dates("train", size=PAIRS), "digits": (copied, copied)}
lengths = (5, 10, 15, 20, 25, 30)
examined = [digits(TESTS, length, length, SEED) for length in lengths]
tested = {
    "dates": data.dates("test", size=TESTS),
    "digits": (examined[3], examined[3]),  # as long as any in training
}

# %% [markdown]
# ## Every score
#
# The model is a bidirectional LSTM, an LSTM decoder with input feeding, and
# attention between them. Without attention (none), the decoder knows only the
# last state of the encoder. Local attention reads five positions around a
# center that advances by one at each step (monotonic) or is predicted
# (predictive).
#
# Each row: exact match in percent, weights, and seconds of a core, for dates
# and then for numbers of 20 digits.


# %%
attentions = {
    "none": None,
    "dot": layers.LuongAttention("dot"),
    "scaled_dot": layers.LuongAttention("scaled_dot"),
    "general": layers.LuongAttention("general"),
    "concat": layers.LuongAttention("concat", units=UNITS),
    "additive": layers.BahdanauAttention(UNITS),
    "location": layers.LocationAttention(max_length=50),
    "location_aware": layers.LocationAwareAttention(UNITS),
    "monotonic": layers.LocalAttention(window=2, alignment="monotonic"),
    "predictive": layers.LocalAttention(window=2, alignment="predictive"),
}


def train(attention, sources, targets):
    """A translator, its number of weights and seconds of training."""
    training.set_seed(SEED)
    tokenizer = data.Tokenizer.train([*sources, *targets], 1000, "char")
    preprocessor = data.TextPreprocessor(tokenizer)
    pairs = tf.data.Dataset.from_tensor_slices((sources, targets))
    batches = data.training_batches(
        data.tokenize_pairs(pairs, preprocessor, tokenizer),
        batch_tokens=2048,
        max_length=50,
        seed=SEED,
    )
    model = models.LSTMSeq2Seq(
        *(tokenizer.vocab_size, tokenizer.vocab_size),
        embedding_dim=32,
        units=UNITS,
        attention=attention,
        input_feeding=attention is not None,
        tie_embeddings=True,
    )
    schedule = training.WarmupInverseSqrt(0.005, 100)
    model.compile(keras.optimizers.Adam(schedule), clip_norm=1.0)
    start = time.process_time()
    model.fit(batches, steps_per_epoch=STEPS, shuffle=False, verbose=0)
    seconds = time.process_time() - start
    greedy = decoding.GreedySearch()
    generator = serving.Generator(model, preprocessor, tokenizer, greedy)
    return generator.predictor(), model.count_params(), seconds


def exact_match(translator, sources, targets):
    """Percentage of answers without an error."""
    return 100 * np.mean(np.array(translator(sources)) == targets)


translators = {}
for score, attention in attentions.items():
    row = [score]
    for corpus, pairs in corpora.items():
        found = train(attention, *pairs)
        translators[corpus, score], count, seconds = found
        right = exact_match(translators[corpus, score], *tested[corpus])
        row += [f"{right:.1f}", f"{count:,}", f"{seconds:.0f}"]
    print("|", " | ".join(row), "|", flush=True)

# %% [markdown]
# ## Alignments
#
# One date and the weights of each score. A column is a character of the source,
# a row is a character of the answer, and dark is a high weight.

# %%
text = "domingo, 1 de mayo de 2022"
shown = [score for score, attention in attentions.items() if attention]
figure, panels = plt.subplots(
    *(3, 3), figsize=(11, 6), layout="constrained", squeeze=False
)
for axes in panels.flat[len(shown) :]:
    axes.set_axis_off()
for axes, score in zip(panels.flat, shown, strict=False):
    [found] = translators["dates", score].attention([text])
    rows = found.weights[: len(found.target_tokens)]
    axes.imshow(rows, cmap="Greys", vmin=0, vmax=1, aspect="auto")
    for ticks, tokens in (
        (axes.set_xticks, found.source_tokens),
        (axes.set_yticks, found.target_tokens),
    ):
        names = [t.strip("▁").replace("</s>", "") for t in tokens]
        ticks(range(len(tokens)), names, fontsize=7)
    axes.tick_params(length=0)
    axes.set_title(score, fontsize=10)
figure.savefig("laboratory_alignments.png", dpi=90)

# %% [markdown]
# ## The bottleneck
#
# Numbers of up to 30 digits; training has seen up to 20. Without attention, one
# vector must hold all of them.

# %%
drawn = ("none", "general", "location_aware", "monotonic")
figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
for score in (score for score in drawn if score in attentions):
    curve = [
        exact_match(translators["digits", score], texts, texts)
        for texts in examined
    ]
    print("|", score, "|", " | ".join(f"{x:.0f}" for x in curve), "|")
    axes.plot(lengths, curve, ".-", label=score)
axes.axvline(20, color="0.8", zorder=0)
axes.set(xlabel="digits", ylabel="exact match, %", ylim=(-3, 103))
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False)
figure.savefig("laboratory_bottleneck.png", dpi=90)
