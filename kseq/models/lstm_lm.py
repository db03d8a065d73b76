"""An LSTM language model."""

import keras
from keras import layers, ops

from kseq.layers import Dropout
from kseq.layers.recurrent_layer import recurrent_layer
from kseq.models.arguments import config_of, set_rates, set_sizes
from kseq.models.exact_model import ExactModel
from kseq.models.prompts import LastSteps, Prompt, PromptAndTarget
from kseq.models.source_inputs import id_inputs
from kseq.ops import start_mask


@keras.saving.register_keras_serializable(package="kseq")
class LSTMLM(ExactModel):
    """A stack of LSTMs as a language model.

        x_t = LSTM(dropout(x_1, ..., x_t)), of each layer
        logits_t = W dropout(x_t) + b

    It reads and writes what `TransformerLM` does.

    Args:
        vocab_size: int, V.
        num_layers: int.
        embedding_dim: int.
        units: int, of each layer.
        dropout: float, on the inputs of each layer and of the logits.
        max_length: int, the sequence length in training.
        dtype: dtype policy or its name.
        **kwargs: `name`, `trainable`.

    Call arguments:
        inputs: see `TransformerLM`.

    Returns:
        logits, (B, T, V) float32: row t is for the token after target t.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> model = LSTMLM(20, num_layers=1, embedding_dim=8, units=8)
        >>> prompt, target = np.array([[2, 5, 6]]), np.array([[2, 8, 9]])
        >>> model({"source_ids": prompt, "target_ids": target}).shape
        TensorShape([1, 3, 20])

    Reference:
        Zaremba et al. 2014, arXiv:1409.2329.
    """

    def __init__(
        self,
        vocab_size: int,
        *,
        num_layers: int,
        embedding_dim: int,
        units: int,
        dropout: float = 0.0,
        max_length: int = 1024,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "lstm_lm",
        **kwargs,
    ):
        set_sizes(
            self,
            vocab_size=vocab_size,
            num_layers=num_layers,
            embedding_dim=embedding_dim,
            units=units,
            max_length=max_length,
        )
        set_rates(self, dropout=dropout)

        # Layers
        policy = keras.dtype_policies.get(dtype)
        self.embedding = layers.Embedding(
            vocab_size, embedding_dim, dtype=policy, name="embedding"
        )
        self.dropout_layer = Dropout(dropout, dtype=policy, name="dropout")
        self.lstms = [
            recurrent_layer(
                "lstm", units, policy, return_state=True, name=f"lstm_{i}"
            )
            for i in range(num_layers)
        ]
        self.output_layer = layers.Dense(
            vocab_size, dtype=policy, name="outputs"
        )
        self.joined = PromptAndTarget(name="joined")
        self.tail = LastSteps(dtype=policy, name="tail")
        self.logits = layers.Identity(dtype="float32", name="logits")

        # Graph
        inputs = id_inputs("source_ids", "target_ids")
        target_ids = inputs["target_ids"]
        ids, mask, _ = self.joined(inputs["source_ids"], target_ids)
        x, _ = self._read(ids, mask)
        logits = self._logits(self.tail(x, target_ids))
        super().__init__(inputs, logits, dtype=policy, name=name, **kwargs)

    @property
    def target_vocab_size(self) -> int:
        """Vocabulary size of the answers: `vocab_size`."""
        return self.vocab_size

    def loss_outputs(self, inputs, training: bool):
        x, _ = self._read(inputs["target_ids"], training=training)
        return self._logits(x, training)

    def _read(self, ids, mask=None, training=None):
        x, states = self.embedding(ids), []
        for lstm in self.lstms:
            x = self.dropout_layer(x, training=training)
            x, *state = lstm(x, mask=mask, training=training)
            states.append(state)
        return x, states

    def _logits(self, x, training=None):
        x = self.dropout_layer(x, training=training)
        return self.logits(self.output_layer(x))

    def encode(self, inputs: dict) -> dict:
        """The state before the first step, from the prompts `source_ids`."""
        prompt = Prompt(inputs["source_ids"])
        # One masked step, because there has to be one.
        ids = ops.pad(prompt.context, [[0, 0], [1, 0]])
        mask = ops.pad(prompt.mask, [[0, 0], [1, 0]])
        _, states = self._read(ids, mask)
        return {"states": states, "last": ops.cast(prompt.last, "int64")}

    def decode_step(self, token_ids, state: dict):
        """One step. (B * K,) int, state -> (B * K, V) float32, state."""
        token_ids = ops.cast(token_ids, "int64")  # int32 is on the host
        first = start_mask(token_ids)
        x = self.embedding(ops.where(first, state["last"], token_ids))
        states = []
        for lstm, before in zip(self.lstms, state["states"], strict=True):
            x, after = lstm.cell(x, before)
            states.append(list(after))
        return self._logits(x), {**state, "states": states}

    def get_config(self) -> dict:
        return config_of(self, LSTMLM)
