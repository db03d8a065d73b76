"""A decoder-only Transformer language model."""

import keras
from keras import layers, ops

from kseq.layers import Dropout, TransformerDecoderBlock
from kseq.layers.positional_encoding import position_layer
from kseq.layers.transformer_sublayers import apply_blocks, final_norm
from kseq.models import embeddings
from kseq.models.arguments import (
    config_of,
    set_block_arguments,
    set_rates,
    set_sizes,
    stack_of_blocks,
)
from kseq.models.exact_model import ExactModel
from kseq.models.prompts import (
    LastSteps,
    Prompt,
    PromptAndTarget,
    recent_mask,
)
from kseq.models.source_inputs import id_inputs
from kseq.ops import start_mask
from kseq.ops.masks import PLACES


@keras.saving.register_keras_serializable(package="kseq")
class TransformerLM(ExactModel):
    """The decoder-only Transformer, a language model.

        x = x + CausalSelfAttention(norm(x)); x = x + FFN(norm(x))
        logits = norm(x) E^T

    It reads a prompt, which begins with START, and returns the logits of its
    continuation. Training reads only `target_ids`, running text in which each
    document is between START and END.

    Args:
        vocab_size: int, V.
        num_layers: int.
        model_dim: int, D, a multiple of `num_heads`.
        ffn_dim: int, width of the hidden layer of the feed-forward network.
        num_heads: int, N.
        dropout: float, on embeddings and on the output of each sublayer.
        attention_dropout: float, on the attention weights.
        positions: "rotary", "sinusoidal", "learned", "relative" or "none", see
            `Transformer`.
        max_length: int, the sequence length in training: decoding attends to at
            most this many positions, and learned positions hold no more.
        tie_output: bool, the embedding is also the output projection.
        window: int or None. Self-attention sees the last `window` positions.
        norm: "pre", "post" or "both".
        normalization: "layer", or "rms" for that of Zhang and Sennrich 2019.
        activation: "relu", "gelu", "silu" or "swiglu", of the feed-forward
            network.
        num_kv_heads: int or None, key and value heads, a divisor of
            `num_heads`; None for `num_heads`.
        share_layers: bool, whether the stack is one block, applied
            once for each layer.
        dtype: dtype policy or its name.
        **kwargs: `name`, `trainable`.

    Call arguments:
        inputs: dict of `source_ids` (B, S) int32, prompts that begin with
            START, padded with PAD; and `target_ids` (B, T) int32, what follows
            after them, beginning with START in place of the prompt's last
            token.

    Returns:
        logits, (B, T, V) float32: row t is for the token after target t.

    Raises:
        ValueError: if an argument does not fit the others.

    Example:
        >>> model = TransformerLM(
        ...     20, num_layers=1, model_dim=8, ffn_dim=16, num_heads=2
        ... )
        >>> prompt, target = np.array([[2, 5, 6]]), np.array([[2, 8, 9]])
        >>> model({"source_ids": prompt, "target_ids": target}).shape
        TensorShape([1, 3, 20])

    Reference:
        Radford et al. 2018, Improving Language Understanding by Generative
        Pre-Training; pre-norm as in Radford et al. 2019. Rotary positions: Su
        et al. 2021, arXiv:2104.09864.
    """

    def __init__(
        self,
        vocab_size: int,
        *,
        num_layers: int,
        model_dim: int,
        ffn_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        positions: str = "rotary",
        max_length: int = 1024,
        tie_output: bool = True,
        window: int | None = None,
        norm: str = "pre",
        normalization: str = "layer",
        activation: str = "relu",
        num_kv_heads: int | None = None,
        share_layers: bool = False,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "transformer_lm",
        **kwargs,
    ):
        set_sizes(
            self,
            vocab_size=vocab_size,
            num_layers=num_layers,
            model_dim=model_dim,
            ffn_dim=ffn_dim,
            num_heads=num_heads,
            max_length=max_length,
        )
        set_rates(self, dropout=dropout, attention_dropout=attention_dropout)
        policy = keras.dtype_policies.get(dtype)
        block = set_block_arguments(
            self,
            policy,
            attention_dropout,
            norm=norm,
            normalization=normalization,
            activation=activation,
            positions=positions,
            window=window,
            num_kv_heads=num_kv_heads,
            share_layers=share_layers,
        )

        # Layers
        self.embedding = embeddings.output_embedding(
            vocab_size, model_dim, tie_output, policy, "embedding"
        )
        self.position_layer = position_layer(
            positions, max_length, policy, "positions"
        )
        self.embedding_dropout = Dropout(
            dropout, dtype=policy, name="embedding_dropout"
        )
        self.blocks = stack_of_blocks(
            TransformerDecoderBlock,
            *(num_layers, "block", share_layers),
            **block,
        )
        self.joined = PromptAndTarget(max_length, name="joined")
        self.tail = LastSteps(dtype=policy, name="tail")
        self.last_norm = final_norm(norm, normalization, policy, "last_norm")
        self.logits = layers.Identity(dtype="float32", name="logits")

        # Config
        self.tie_output = tie_output

        # Graph
        inputs = id_inputs("source_ids", "target_ids")
        logits, _ = self._after_prompts(inputs)
        super().__init__(inputs, logits, dtype=policy, name=name, **kwargs)

    @property
    def target_vocab_size(self) -> int:
        """Vocabulary size of the answers: `vocab_size`."""
        return self.vocab_size

    def loss_outputs(self, inputs, training: bool):
        x = self._embed(inputs["target_ids"], training=training)
        x, _ = apply_blocks(
            self.blocks, x, [{"training": training}] * self.num_layers
        )
        return self._logits(x)

    def _after_prompts(self, inputs, **arguments):
        """(B, T, V), of targets after their prompts, and what blocks return."""
        target_ids = inputs["target_ids"]
        ids, mask, padding = self.joined(inputs["source_ids"], target_ids)
        x = self._embed(ids, start=-padding)
        each = [{"self_mask": mask, **arguments}] * self.num_layers
        x, others = apply_blocks(self.blocks, x, each)
        return self._logits(self.tail(x, target_ids)), others

    def _embed(self, ids, start=0, training=None):
        x = self.embedding(ids) * self.model_dim**0.5
        x = self.position_layer(x, start=start)
        return self.embedding_dropout(x, training=training)

    def _logits(self, x, kernel=None):
        x = self.last_norm(x)
        return self.logits(embeddings.project(self.embedding, x, kernel))

    def encode(self, inputs: dict) -> dict:
        """The state before the first step, from the prompts `source_ids`."""
        prompt = Prompt(inputs["source_ids"])
        key_dim = self.model_dim // self.num_heads
        heads = self.num_kv_heads or self.num_heads
        shape = (ops.shape(prompt.last)[0], heads, 0, key_dim)
        empty = ops.zeros(shape, dtype=self.compute_dtype)
        cache = {"key": empty, "value": empty}
        x = self._embed(prompt.context, start=-prompt.padding)
        window = self.max_length
        if self.window is not None:
            window = min(window, self.window + 1)
        mask = recent_mask(prompt.mask, window)
        each = [{"self_mask": mask, "cache": cache}] * self.num_layers
        _, caches = apply_blocks(self.blocks, x, each)
        return {
            "caches": [cache for (cache,) in caches],
            "mask": prompt.mask,
            # TensorFlow has int32 of a loop on the CPU.
            "last": ops.cast(prompt.last, "int64"),
            "padding": ops.cast(prompt.padding, PLACES),
        }

    def decoding_constants(self):
        """What every step needs and no input changes: the output matrix."""
        return embeddings.output_kernel(self.embedding)

    def decode_step(self, token_ids, state: dict):
        """One step. (B * K,) int, state -> (B * K, V) float32, state."""
        token_ids = ops.cast(token_ids, "int64")  # int32 is on the host
        first = start_mask(token_ids)
        token_ids = ops.where(first, state["last"], token_ids)[:, None]
        real = ops.ones_like(token_ids, dtype="bool")
        mask = ops.concatenate([state["mask"], real], axis=1)
        length = ops.shape(mask)[1]
        places = ops.arange(length, dtype="int32")
        near = ops.logical_and(mask, places >= length - self.max_length)

        start = ops.cast(length - 1, PLACES) - state["padding"]
        x = self._embed(token_ids, start=start)
        each = [{"self_mask": near, "cache": c} for c in state["caches"]]
        x, caches = apply_blocks(self.blocks, x, each)
        caches = [cache for (cache,) in caches]
        logits = self._logits(x[:, 0], state.get("constants"))
        return logits, {**state, "caches": caches, "mask": mask}

    def all_attention_weights(self, inputs: dict) -> dict:
        """The weights of every block and head, N of them.

        Args:
            inputs: as in a call.

        Returns:
            A dict with `decoder`, a list with one (B, N, T, T) float32 for
            each block. Prompt and target are one sequence, see `joined`.
        """
        _, blocks = self._after_prompts(inputs, return_weights=True)
        return {"decoder": [ops.cast(own, "float32") for (own,) in blocks]}

    def get_config(self) -> dict:
        return config_of(self, TransformerLM)
