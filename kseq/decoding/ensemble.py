"""Several models as one."""

import math
from collections.abc import Sequence
from typing import Any

from keras import ops

from kseq.decoding.start_decoding import attends
from kseq.user_error import ArgumentError

_OF_ITEMS = ("memory", "shared")  # entries of a state with one row per item
_OF_SEARCH = ("constants", "attention")


class Ensemble:
    """Several models that a search reads as one.

        p(token) = (p_1(token) + ... + p_n(token)) / n

    The models read the same source and have the same vocabulary or classes;
    their architectures may differ. Searches, constraints, scores, classifiers
    and exports accept an ensemble in place of a model.

    Args:
        models: sequence of two models or more, which have `encode` and
            `decode_step`; or classifiers, or taggers.
        temperatures: of classifiers and taggers, one for each model, which its
            logits are divided by; None for 1.

    Attributes:
        variables: list, those of all models.
        attention: None if a model has no attention to its source, or if the
            models attend to different numbers of positions.

    Call arguments:
        inputs: see the models.

    Returns:
        log-probabilities, (B, T, V) float32: logits that are normalized.

    Raises:
        ValueError: if there are fewer than two models; when it is called, if
            their vocabularies or classes have different sizes.

    Example:
        >>> models = [
        ...     kseq.models.LSTMSeq2Seq(
        ...         source_vocab_size=9, target_vocab_size=9,
        ...         embedding_dim=4, units=units, attention=None,
        ...     )
        ...     for units in (4, 6)
        ... ]
        >>> ensemble = Ensemble(models)
        >>> inputs = {"source_ids": tf.constant([[4, 5, 3], [6, 3, 0]])}
        >>> search = kseq.decoding.GreedySearch()
        >>> best = search(ensemble, inputs, tf.constant([5, 5]))
        >>> best.scores.shape
        TensorShape([2, 1])
    """

    name = "ensemble"

    def __init__(
        self, models: Sequence[Any], temperatures: Sequence[float] | None = None
    ):
        if len(models) < 2:
            raise ArgumentError(
                f"An ensemble needs two models or more. Received: {len(models)}"
            )
        self.models = tuple(models)
        self.temperatures = tuple(temperatures or [1.0] * len(models))
        self.variables = [
            variable
            for model in models
            for variable in getattr(model, "variables", ())
        ]
        self.source_layer = getattr(models[0], "source_layer", None)
        self._is_aligned = len(set(map(source_stride, models))) == 1
        explains = all(map(attends, models))
        self.attention = True if explains and self._is_aligned else None

    @property
    def max_length(self) -> int:
        """The longest sequence that all models read."""
        return min(model.max_length for model in self.models)

    @property
    def num_classes(self) -> int:
        """Of classifiers."""
        return self.models[0].num_classes

    @property
    def num_tags(self) -> int:
        """Of taggers."""
        return self.models[0].num_tags

    def count_params(self) -> int:
        """The parameters of all models."""
        return sum(model.count_params() for model in self.models)

    def __call__(self, inputs, training: bool = False) -> Any:
        logits = [model(inputs, training=training) for model in self.models]
        return _mean(self._cooled(logits))

    def loss_outputs(self, inputs, training: bool) -> Any:
        """Those of language models, for the likelihood of running text."""
        return _mean(
            [
                model.loss_outputs(inputs, training=training)
                for model in self.models
            ]
        )

    def encode(self, inputs) -> dict:
        """The state before the first step, from the inputs of the source."""
        states = [model.encode(inputs) for model in self.models]
        state = _joined(states)
        memories = [each.get("memory") for each in states]
        if self._is_aligned and _has(memories, "mask"):
            state["memory"]["mask"] = memories[0]["mask"]
        if self._is_aligned and _has(memories, "ctc_log_probs"):
            log_probs = [memory["ctc_log_probs"] for memory in memories]
            state["memory"]["ctc_log_probs"] = _log_mean_exp(log_probs)
        return state

    def decoding_constants(self) -> list[dict]:
        """What every step needs and no input changes, of each model."""
        return [
            {"constants": model.decoding_constants()}
            if hasattr(model, "decoding_constants")
            else {}
            for model in self.models
        ]

    def decode_step(self, token_ids: Any, state: dict) -> tuple[Any, dict]:
        """One step. (B * K,) int, state -> (B * K, V) float32, state."""
        constants = state.get("constants", [{}] * len(self.models))
        steps = []
        for i, model in enumerate(self.models):
            parts = (
                state["memory"]["models"][i],
                *(state["shared"][i], state["models"][i], constants[i]),
            )
            own = {key: value for part in parts for key, value in part.items()}
            if "attention" in state:
                own["attention"] = state["attention"]
            steps.append(model.decode_step(token_ids, own))
        logits, states = zip(*steps, strict=True)
        next_state = {**state, **_joined(states)}
        if "attention" in state:
            weights = ops.stack([each["attention"] for each in states])
            next_state["attention"] = ops.mean(weights, axis=0)
        return _mean(logits), next_state

    def explain(self, inputs) -> dict:
        """Logits and weights of classifiers, the weights as means."""
        explained = [model.explain(inputs) for model in self.models]
        logits = self._cooled([each.pop("logits") for each in explained])
        weights = {
            name: ops.mean(ops.stack([each[name] for each in explained]), 0)
            for name in explained[0]
        }
        return {"logits": _mean(logits), **weights}

    def _cooled(self, logits):
        """Each divided by the temperature of its model."""
        pairs = zip(logits, self.temperatures, strict=True)
        return [each / temperature for each, temperature in pairs]

    def attention_weights(self, inputs) -> Any:
        """Over the source, the mean of the models: (B, T, S) float32."""
        weights = [model.attention_weights(inputs) for model in self.models]
        return ops.mean(ops.stack(weights), axis=0)


def source_stride(model: Any) -> int:
    """How many positions of its source a model attends to as one."""
    return getattr(getattr(model, "source_layer", None), "stride", 1)


def _joined(states):
    """The states of the models in one, whose entries have the same rows."""
    rest = [
        {
            key: value
            for key, value in state.items()
            if key not in (*_OF_ITEMS, *_OF_SEARCH)
        }
        for state in states
    ]
    memory, shared = (
        [{key: state[key]} if key in state else {} for state in states]
        for key in _OF_ITEMS
    )
    return {"memory": {"models": memory}, "shared": shared, "models": rest}


def _has(memories, name):
    return all(isinstance(each, dict) and name in each for each in memories)


def _mean(logits):
    """The logarithm of the mean of the probabilities, from logits."""
    sizes = [each.shape[-1] for each in logits]
    if len(set(sizes)) > 1:
        raise ArgumentError(
            "The models of an ensemble must have the same vocabulary or "
            f"classes. Received: {sizes} of them"
        )
    return _log_mean_exp(
        [ops.log_softmax(ops.cast(each, "float32")) for each in logits]
    )


def _log_mean_exp(log_probs):
    total = ops.logsumexp(ops.stack(log_probs), axis=0)
    return total - math.log(len(log_probs))
