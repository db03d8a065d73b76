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
# # Looking at attention
#
# An LSTM learns to read dates as people write them, and to answer in ISO 8601.
# It is trained on pairs of texts, without any alignment: it has to find out
# which word is the year. Training takes a minute or two on two CPU cores.

# %%
import keras
import tensorflow as tf

import kseq
from kseq import data, decoding, layers, models, serving, training

training.set_seed(1)
corpus = data.read_corpus()  # the built-in dates
for source, target in corpus.train.take(5).as_numpy_iterator():
    print(source.decode(), "->", target.decode())

# %% [markdown]
# ## Data
#
# One vocabulary of 1,500 SentencePiece pieces for both sides, and batches with
# a fixed budget of tokens.

# %%
tokenizer = data.Tokenizer.train(corpus.lines(), vocab_size=1500)
preprocessor = data.TextPreprocessor(tokenizer)
pairs = data.tokenize_pairs(corpus.train, preprocessor, tokenizer)
batches = data.training_batches(
    pairs, batch_tokens=2048, max_length=100, seed=1
)
inputs, labels, weights = next(iter(batches))
print({name: ids.shape for name, ids in inputs.items()}, labels.shape)

# %% [markdown]
# ## Model and training
#
# Stock `model.fit`. The inputs are `source_ids` and `target_ids`, and the
# labels are the targets, one position later.

# %%
model = models.LSTMSeq2Seq(
    tokenizer.vocab_size,
    tokenizer.vocab_size,
    embedding_dim=64,
    units=128,
    attention=layers.LuongAttention("general", name="attention"),
    input_feeding=True,
    tie_embeddings=True,
)
schedule = training.WarmupInverseSqrt(0.005, 100)
model.compile(keras.optimizers.Adam(schedule), clip_norm=1.0)
history = model.fit(
    batches, steps_per_epoch=50, epochs=5, shuffle=False, verbose=2
)

# %% [markdown]
# ## Answers
#
# A `Generator` is preprocessor, model, search and tokenizer in one; its
# predictor takes and returns lists of strings.

# %%
generator = serving.Generator(
    model, preprocessor, tokenizer, decoding.GreedySearch()
)
translator = generator.predictor()
texts = [
    "Sunday, September 1, 1940",
    "3 mars 1999",
    "domingo, 1 de mayo de 2022",
]
print(translator(texts))

# %% [markdown]
# ## Attention
#
# Each row is a piece of the answer, each column a piece of the input. A
# notebook displays an attention as a picture.

# %%
first, second, third = translator.attention(texts)
first

# %%
third

# %% [markdown]
# The answer is written year, month, day. Where does it look while it writes the
# month? Here is the column with the highest weight of each row.

# %%
for piece, row in zip(third.target_tokens, third.weights, strict=True):
    print(f"{piece:>5}  {third.source_tokens[row.argmax()]}")

# %% [markdown]
# The weights are over the states of the encoder, not over the words: the state
# of each position also holds what is around it. So the model may attend to a
# neighbour of the word that it uses.
#
# ## A different score
#
# Attention compares the state of the decoder with each state of the encoder.
# `LuongAttention` has four ways to do so; a new one is one method.


# %%
@keras.saving.register_keras_serializable(package="notebook")
class CosineAttention(layers.LuongAttention):
    def energies(self, query, keys):
        query, keys = map(keras.ops.normalize, (query, keys))
        return 10 * kseq.ops.dot_energies(query, keys)


query, memory = tf.random.normal((1, 3, 8)), tf.random.normal((1, 5, 8))
_, weights = CosineAttention()(query, memory, return_weights=True)
print(weights.numpy().round(2))
