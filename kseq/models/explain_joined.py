"""Explanations of models that join the sentences of a document."""


def explain_joined(model, inputs):
    """The logits, and the weights of what they depend on.

    It is a method of models with a layer `join`, a `JoinSentences`, and with
    `_classify`, from ids (B, L, W) to logits (B, C) and the weights of the
    joined pieces (B, T).

    Args:
        model: the model that it is a method of.
        inputs: dict of `source_ids` (B, L, W) int.

    Returns:
        A dict, the same as that of `HierarchicalAttention.explain`. The
        weight of a sentence is the sum over its pieces.
    """
    source_ids = inputs["source_ids"]
    logits, weights = model._classify(source_ids)
    of_sentences, of_words = model.join.share_weights(weights, source_ids)
    return {
        "logits": logits,
        "sentence_weights": of_sentences,
        "word_weights": of_words,
    }
