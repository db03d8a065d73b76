"""Multi-head attention, over a memory or over its own inputs."""

import functools
import itertools

import keras
from keras import ops

from kseq.layers.attention_scores import check_memory
from kseq.layers.check_mask import check_mask
from kseq.layers.dropout import Dropout
from kseq.layers.layer_config import config_of
from kseq.layers.output_spec import output_spec
from kseq.ops import (
    blockwise_attention,
    causal_mask,
    distances,
    fold_hypotheses,
    is_long,
    masked_softmax,
    relative_energies,
    rotary_embedding,
    scaled_dot_energies,
    unfold_hypotheses,
    weighted_sum,
    window_mask,
    windowed_attention,
)
from kseq.user_error import ArgumentError, check_integers


@keras.saving.register_keras_serializable(package="kseq")
class MultiHeadAttention(keras.layers.Layer):
    """Scaled dot-product attention with several heads.

        head_i = softmax(Q_i K_i^T / sqrt(key_dim)) V_i
        output = [head_1; ...; head_N] W_o + b_o

    A layer that is first called without a memory attends to its own inputs,
    with one projection for query, key and value. Otherwise it attends to the
    memory, with one projection for the query and one for key and value.

    Memory grows with T times S, or with T + S where there are more than a
    million pairs of positions: then the weights of 256 queries are computed at
    a time, and once more for the gradient. A graph that is traced without
    knowing its lengths does so within `kseq.ops.long_sequences`.

    Args:
        num_heads: int, number of heads, N.
        key_dim: int, features of a head, H.
        dropout: float, rate at which attention weights are dropped.
        window: int or None. Self-attention only: largest distance between a
            query and the positions that it attends to. Without a cache,
            weights to return or a mask of rank 3, time and memory grow with
            T times the window, not with T squared.
        rotary: bool, self-attention only: whether queries and keys are
            rotated by their positions, those of the cache first. `key_dim`
            must then be even.
        max_relative_position: int or None. Self-attention only: there is an
            embedding of each distance from a query to a key up to this one;
            larger distances share the last embedding. All weights are then
            computed at once.
        num_kv_heads: int or None, key and value heads, each shared by
            `num_heads / num_kv_heads` query heads; None for `num_heads`.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        query: (B, T, D) float.
        memory: (B, S, M) float, what is attended to.
        memory_mask: bool, True at keys that may be attended to, (B, S) or
            (B, T, S). In self-attention the keys are the positions of the
            cache, then those of the query. By default the Keras mask of
            `memory`, or of `query` in self-attention without a cache. With a
            cache, a mask of rank 3 is the only one that is applied: the order
            of the keys is then irrelevant.
        causal: bool, whether to mask later positions.
        projected_memory: the output of `project_memory(memory)`, instead of
            `memory`. Then `query` may be (B * K, T, D): K hypotheses of each
            item, which read the same memory.
        cache: self-attention only: a dict of "key" and "value", each
            (B, N, P, H) float, the P positions before the query's; of the
            heads of keys and values, if there are fewer.
        positions: (B, T) int, of the query, for a rotary layer whose cache has
            a different order. By default the positions after the cache.
        distances: (B, T, P + T) float, from each query back to each key, for
            relative positions and such a cache.
        return_weights: bool, whether to return the attention weights too,
            before dropout.
        training: bool, whether to apply dropout.
        mask, query_mask: set by Keras; pass `memory_mask` instead.

    Returns:
        output, (B, T, D); then weights, (B, N, T, S), if `return_weights`;
        then the cache with P + T positions, if one was given. The weights
        and heads are zero if all keys are masked.

    Raises:
        ValueError: if an argument is out of range, if a memory is given to
            self-attention or missing otherwise, if `causal`, a cache or a
            window is given with a memory.

    Example:
        >>> query, memory = np.ones((2, 5, 16)), np.ones((2, 7, 24))
        >>> attention = MultiHeadAttention(num_heads=4, key_dim=8)
        >>> output, weights = attention(query, memory, return_weights=True)
        >>> output.shape, weights.shape
        (TensorShape([2, 5, 16]), TensorShape([2, 4, 5, 7]))

    Reference:
        Vaswani et al. 2017, arXiv:1706.03762, section 3.2; the window is the
        restricted self-attention of section 4. Rotary positions: Su et al.
        2021, arXiv:2104.09864. Relative ones: Shaw et al. 2018,
        arXiv:1803.02155, section 3, of keys only, which their table 3 finds
        enough. Grouped queries: Ainslie et al. 2023, arXiv:2305.13245.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        dropout: float = 0.0,
        window: int | None = None,
        rotary: bool = False,
        max_relative_position: int | None = None,
        num_kv_heads: int | None = None,
        **kwargs,
    ):
        check_integers(num_heads=num_heads, key_dim=key_dim)
        check_integers(window=window, minimum=0, optional=True)
        check_integers(
            max_relative_position=max_relative_position,
            num_kv_heads=num_kv_heads,
            optional=True,
        )
        if num_heads % (num_kv_heads or num_heads):
            raise ArgumentError(
                "num_heads must be a multiple of num_kv_heads. Received: "
                f"num_heads={num_heads}, num_kv_heads={num_kv_heads}"
            )
        if rotary and key_dim % 2:
            raise ArgumentError(
                f"rotary needs an even key_dim. Received: key_dim={key_dim}"
            )
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.dropout = dropout
        self.window = window
        self.rotary = rotary
        self.max_relative_position = max_relative_position
        self.num_kv_heads = num_kv_heads

        of_keys = num_kv_heads or num_heads
        self._heads = num_heads, of_keys, of_keys
        self.weights_dropout = Dropout(
            dropout, dtype=self.dtype_policy, name="weights_dropout"
        )

    def build(self, query_shape, memory_shape=None):
        width, key_width, _ = (n * self.key_dim for n in self._heads)
        self.attends_to_itself = memory_shape is None
        if self.attends_to_itself:
            self.query_key_value = self._dense(
                width + 2 * key_width, "query_key_value"
            )
            self.query_key_value.build(query_shape)
            if self.max_relative_position is not None:
                self.distance_embeddings = self.add_weight(
                    name="distance_embeddings",
                    shape=(2 * self.max_relative_position + 1, self.key_dim),
                    initializer="glorot_uniform",
                )
        else:
            if (
                self.window is not None
                or self.rotary
                or self.max_relative_position is not None
            ):
                raise ValueError(
                    "Only self-attention takes a window, is rotary or has "
                    f"relative positions. Received: window={self.window}, "
                    f"rotary={self.rotary} and a memory"
                )
            self.query = self._dense(width, "query")
            self.query.build(query_shape)
            self.key_value = self._dense(2 * key_width, "key_value")
            self.key_value.build(memory_shape)

        self.projection = self._dense(query_shape[-1], "projection")
        self.projection.build((*query_shape[:-1], width))

    def project_memory(self, memory):
        """Keys and values of a memory: (B, S, M) -> two of (B, N, S, H)."""
        return tuple(self._project(self.key_value, memory, self._heads[1:]))

    def check_arguments(
        self,
        query,
        memory=None,
        projected_memory=None,
        causal: bool = False,
        cache=None,
        **others,
    ):
        """Raises ValueError unless those of `call` fit the layer."""
        has_memory = memory is not None or projected_memory is not None
        if self.attends_to_itself and has_memory:
            raise ValueError(
                f"{self.name} was built to attend to its own inputs. "
                "Received: a memory"
            )
        if not self.attends_to_itself and not has_memory:
            raise ValueError(
                f"{self.name} was built to attend to a memory. Received: none"
            )
        if memory is not None:
            check_memory(memory, query)
        if has_memory and (causal or cache is not None):
            raise ValueError(
                "Only self-attention can be causal or take a cache. "
                f"Received: causal={causal}, cache={cache is not None}"
            )

    def call(
        self,
        query,
        memory=None,
        memory_mask=None,
        causal: bool = False,
        projected_memory=None,
        cache=None,
        positions=None,
        distances=None,
        return_weights: bool = False,
        training: bool | None = None,
        mask=None,
        query_mask=None,
    ):
        self.check_arguments(
            query,
            memory=memory,
            projected_memory=projected_memory,
            causal=causal,
            cache=cache,
        )
        if self.attends_to_itself:
            if mask is None and cache is None:
                mask = query_mask
            memory_mask = mask if memory_mask is None else memory_mask
            queries, keys, values = self._project(
                self.query_key_value, query, self._heads
            )
            if self.rotary:
                before = 0 if cache is None else ops.shape(cache["key"])[2]
                time = ops.shape(query)[1]
                if positions is None:
                    positions = before + ops.arange(time, dtype="int32")
                else:
                    positions = positions[:, None]  # of all heads
                queries = rotary_embedding(queries, positions)
                keys = rotary_embedding(keys, positions)
        else:
            keys, values = projected_memory or self.project_memory(memory)
            folded = fold_hypotheses(query, keys)  # (B, K * T, D)
            (queries,) = self._project(self.query, folded, self._heads[:1])
        if cache is not None:
            keys = ops.concatenate([cache["key"], keys], axis=2)
            values = ops.concatenate([cache["value"], values], axis=2)
            cache = {"key": keys, "value": values}
        is_whole = len(getattr(memory_mask, "shape", ())) == 3
        if memory_mask is not None:
            batch, _, time, _ = keys.shape
            steps = queries.shape[2:3] if is_whole else ()
            check_mask("memory_mask", memory_mask, batch, *steps, time)
        if self.num_kv_heads:
            shared_by = self.num_heads // self.num_kv_heads
            keys = ops.repeat(keys, shared_by, axis=1)
            values = ops.repeat(values, shared_by, axis=1)

        attend = self._in_blocks(queries, keys, causal)
        is_plain = cache is None and not return_weights
        if attend is not None and is_plain and not is_whole:
            context = attend(
                *(queries, keys, values),
                mask=memory_mask,
                dropout=self.weights_dropout.repeatable(training),
            )
            return self._join_heads(context, query)

        energies = scaled_dot_energies(queries, keys)  # (B, N, K * T, S)
        if self.max_relative_position is not None:
            energies = energies + self._relative(queries, keys, distances)
        if cache is not None and is_whole:
            admitted = ops.expand_dims(memory_mask, 1)
        else:
            admitted = self._mask(energies, memory_mask, causal)
        weights = masked_softmax(energies, admitted)
        dropped = self.weights_dropout(weights, training=training)
        context = weighted_sum(dropped, values)  # (B, N, K * T, H)

        outputs = [self._join_heads(context, query)]
        if return_weights:
            weights = unfold_hypotheses(ops.swapaxes(weights, 1, 2), query)
            outputs.append(ops.swapaxes(weights, 1, 2))  # (B * K, N, T, S)
        if cache is not None:
            outputs.append(cache)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def compute_output_shape(self, query_shape, memory_shape=None):
        return query_shape

    compute_output_spec = output_spec

    def get_config(self) -> dict:
        return config_of(self, MultiHeadAttention)

    def _dense(self, units, name):
        return keras.layers.Dense(units, dtype=self.dtype_policy, name=name)

    def _project(self, projection, inputs, heads):
        """(B, T, D) -> tensors (B, N, T, H), N those of `heads`."""
        batch, time, depth = ops.shape(inputs)
        # TensorFlow fuses product and bias for a matrix only.
        rows = projection(ops.reshape(inputs, (-1, depth)))  # (B * T, ...)
        shape = (batch, time, sum(heads), self.key_dim)
        x = ops.transpose(ops.reshape(rows, shape), (0, 2, 1, 3))
        ends = list(itertools.accumulate(heads))[:-1]
        return ops.split(x, ends, axis=1) if ends else [x]

    def _relative(self, queries, keys, given):
        if given is None:
            given = distances(ops.shape(queries)[2], ops.shape(keys)[2])
        embeddings = ops.cast(self.distance_embeddings, queries.dtype)
        return relative_energies(queries, embeddings, given)

    def _join_heads(self, context, query):
        """(B, N, K * T, H) -> (B * K, T, D)."""
        width = self.num_heads * self.key_dim
        rows = ops.reshape(ops.swapaxes(context, 1, 2), (-1, width))
        batch, time, _ = ops.shape(query)
        shape = (batch, time, self.projection.units)
        return ops.reshape(self.projection(rows), shape)

    def _in_blocks(self, queries, keys, causal):
        """The attention in blocks that pays off, or None."""
        if self.max_relative_position is not None:
            return None
        time, memory_time = ops.shape(queries)[2], ops.shape(keys)[2]
        # JAX infers shapes with lengths that cannot be compared.
        if not isinstance(time, int) and not ops.is_tensor(time):
            return None
        if self.window is not None:
            return functools.partial(
                windowed_attention, window=self.window, causal=causal
            )
        if is_long(time, memory_time):
            return functools.partial(blockwise_attention, causal=causal)
        return None

    def _mask(self, energies, memory_mask, causal):
        """True where keys are attended to; broadcasts to the energies."""
        masks = []
        time, memory_time = ops.shape(energies)[-2:]
        if causal:
            masks.append(causal_mask(time, memory_time))
        if self.window is not None:
            masks.append(window_mask(time, memory_time, self.window))
        if memory_mask is not None:
            if len(memory_mask.shape) == 2:
                memory_mask = ops.expand_dims(memory_mask, 1)
            masks.append(ops.expand_dims(memory_mask, 1))  # (B, 1, 1 or T, S)
        return functools.reduce(ops.logical_and, masks) if masks else None
