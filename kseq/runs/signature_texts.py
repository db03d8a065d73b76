"""Signatures in words, and which models have them."""

# Inputs to which there is more than one right answer.
VARIED = ("turns", "prompt")

# Signatures of what answers with a text, its own or one that it knows, with
# bits, with a label or with tags; {} is what it takes.
OF_TEXT = {
    "serving_default": "`{}` → `text`, `score`, `truncated`",
    "n_best": "`{}` → `texts`, `scores`, `truncated`, the best first",
    "prefix": "`{}`, `prefix` → the same, of answers that begin so",
    "score": "`{}`, `target` → `score`, `log_prob`, `tokens` of an answer",
    "explain": "`{}` → `source_tokens`, `target_tokens`, `attention`",
}
OF_DRAWN = OF_TEXT | {
    "sample": (
        "`{}`, `temperature`, `top_p`, `seed` → the outputs of "
        "`serving_default` and `explain`, of an answer drawn at random"
    )
}
OF_ANSWERS = {
    "serving_default": OF_TEXT["serving_default"],
    "n_best": OF_TEXT["n_best"],
    "score": "`{}`, `target` → `score` of any answer",
    "encode": "`{}` → `vector`",
    "encode_answers": "`text` of answers → `vector`",
}
OF_VECTORS = {
    "serving_default": "`{}` → `probabilities` of bits",
    "explain": "`{}` → `probabilities`, `read_weights`, `write_weights`",
}
OF_LABELS = {
    "serving_default": (
        "`{}` → `label`, `probability`, `labels`, `probabilities`, `truncated`"
    ),
    "explain": (
        "`{}` → `sentences`, `words`, `sentence_weights`, `word_weights`, "
        "`label`, `probability`"
    ),
    "classify": "`inputs`, serialized `tf.train.Example` → `classes`, `scores`",
}
OF_TAGS = {
    "serving_default": "`{}` → `words`, `tags`, `probabilities`, `truncated`",
    "distribution": (
        "`{}` → `words`, `tagset`, `probabilities` of all tags, `truncated`"
    ),
}
