"""kseq score: how likely a model finds given answers."""

import tensorflow as tf

from kseq.commands.open_model import is_classifier, open_run
from kseq.control_tokens import END, PAD
from kseq.data import ParallelText, shifted
from kseq.decoding import sequence_scores
from kseq.evaluation import map_lines
from kseq.user_error import UserError


def run(options):
    """Prints one score a line: what `predict --scores` would give it."""
    text = ParallelText(options.source, options.target)
    sources, targets = list(text.source_lines()), list(text.target_lines())
    translator = open_run(options)
    if is_classifier(translator):
        raise UserError(f"{options.path} is a classifier; predict --scores.")
    function = _scoring_function(translator)
    for result in map_lines(
        function, sources, targets, batch_size=options.batch_size
    ):
        print(f"{result['score']:.4f}")


def _scoring_function(translator):
    """(B,) and (B,) strings -> dict with `score` (B,) float32."""

    def ids(tokenizer, text):
        tokens = tokenizer.tokenize(text)[:, : translator.max_length - 1]
        ends = tf.fill([tokens.nrows(), 1], END)
        return tf.concat([tokens, ends], axis=1).to_tensor(PAD)

    text = tf.TensorSpec((None,), tf.string)

    @tf.function(input_signature=[text, text], autograph=False)
    def score(source, target):
        source_ids = ids(translator.source_tokenizer, source)
        inputs, labels, sample_weight = shifted(
            source_ids, ids(translator.target_tokenizer, target)
        )
        scores = sequence_scores(
            translator.model(inputs),
            labels,
            sample_weight,
            translator.length_penalty,
        )
        # Nothing is the sure answer to nothing.
        both_blank = (source_ids[:, 0] == END) & (labels[:, 0] == END)
        return {"score": tf.where(both_blank, 0.0, scores)}

    return score
