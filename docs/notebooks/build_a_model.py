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
# # A model of your own
#
# Layers of kseq are Keras layers. Here they make a small Transformer that reads
# a date, character by character, and says which month it is, in any of 41
# languages. It is a plain `keras.Model` with a stock loss; at the end we look
# at which characters it attended to. Training takes about a minute on two CPU
# cores.

# %%
import keras
import numpy as np

import kseq
from kseq import data, layers, pictures

keras.utils.set_random_seed(1)
texts, answers = data.dates("train", size=8000)
months = np.array([int(answer[5:7]) - 1 for answer in answers])
print(texts[:4], months[:4] + 1)

# %% [markdown]
# ## Data
#
# One id for each character; 0 is padding.

# %%
characters = sorted({character for text in texts for character in text})
number = {character: index + 1 for index, character in enumerate(characters)}
longest = max(map(len, texts))


def ids_of(texts):
    ids = np.zeros((len(texts), longest), "int32")
    for row, text in enumerate(texts):
        known = [number[character] for character in text if character in number]
        ids[row, : len(known[:longest])] = known[:longest]
    return ids


print(ids_of(texts[:2]).shape, len(characters), "characters")

# %% [markdown]
# ## Model
#
# Embeddings, positions, two Transformer blocks, and attention pooling: one
# vector for the whole text, a weighted mean of its characters. The mask is
# computed once and passed by keyword to every layer that sees padding.

# %%
ids = keras.Input((longest,), dtype="int32", name="ids")
mask = kseq.ops.padding_mask(ids)

x = keras.layers.Embedding(len(characters) + 1, 64)(ids)
x = layers.SinusoidalPositionalEncoding()(x)
for _ in range(2):
    x = layers.TransformerEncoderBlock(
        num_heads=4, key_dim=16, ffn_dim=128, dropout=0.1
    )(x, inputs_mask=mask)
vector, weights = layers.AttentionPooling(64)(x, mask, return_weights=True)
logits = keras.layers.Dense(12, name="month")(vector)

model = keras.Model(ids, logits)
model.summary()

# %% [markdown]
# ## Training

# %%
model.compile(
    keras.optimizers.Adam(0.002),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
history = model.fit(ids_of(texts), months, batch_size=128, epochs=6, verbose=2)

# %% [markdown]
# No test date is in a training text.

# %%
others, targets = data.dates("test", size=500)
expected = [int(target[5:7]) - 1 for target in targets]
found = model.predict(ids_of(others), verbose=0).argmax(axis=1)
print("accuracy", np.mean(found == expected))

# %% [markdown]
# ## What it attended to
#
# A second model with the same layers returns the weights of the pooling.

# %%
reader = keras.Model(ids, weights)
shown = ["Sunday, September 1, 1940", "3 mars 1999", "12. august 1984"]
rows = reader.predict(ids_of(shown), verbose=0)
for text, row in zip(shown, rows, strict=True):
    best = sorted(np.argsort(-row[: len(text)])[:4])
    print(text, "->", [text[index] for index in best])

# %%
from IPython.display import Image

text = shown[0]
Image(pictures.attention_picture(rows[:1, : len(text)], list(text), ["month"]))

# %% [markdown]
# From here: `kseq.models.ExactModel` instead of `keras.Model` gives the same
# update on any number of devices, and a model with `encode` and `decode_step`
# can generate text: see the tutorial "A model of your own".
