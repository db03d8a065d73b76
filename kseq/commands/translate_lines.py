"""Lines to translations, as `kseq predict` prints them."""

import json
import math

from kseq.evaluation import map_lines
from kseq.user_error import UserError


def translate_lines(translator, lines, options):
    """Translates lines.

    Args:
        translator: see `open_model`.
        lines: list of bytes.
        options: of `kseq predict`.

    Returns:
        For each line a pair: what is printed, bytes, and whether the line
        had to be cut.
    """
    answers = _answers(translator, lines, options)
    return [(_formatted(a, options), bool(a["truncated"])) for a in answers]


def _answers(translator, lines, options):
    """A dict of arrays for each line."""
    functions = [translator.translate]
    if options.n_best > 1:
        functions.append(translator.n_best)
    if options.attention:
        functions.append(translator.explain)

    def answer(text):
        return {k: v for f in functions for k, v in f(text).items()}

    answers = map_lines(answer, lines, batch_size=options.batch_size)
    if options.n_best > 1 and len(answers[0]["texts"]) < options.n_best:
        raise UserError(
            f"--n-best {options.n_best} needs as wide a beam; this one is "
            f"{len(answers[0]['texts'])}."
        )
    return answers


def _formatted(answer, options):
    hypotheses = _hypotheses(answer, options.n_best)
    if options.json:
        return _as_json(answer, hypotheses, options)
    has_columns = options.scores or options.n_best > 1
    columns = []
    for text, score in hypotheses:
        if options.scores:
            columns.append(b"%.4f" % score)
        columns.append(text.replace(b"\t", b" ") if has_columns else text)
    return b"\t".join(columns)


def _hypotheses(answer, count):
    """(text, score) of the best `count`; a text never ends its line."""
    pairs = [(answer["text"], answer["score"])]
    if count > 1:
        pairs = zip(answer["texts"], answer["scores"], strict=True)
    real = [pair for pair in pairs if math.isfinite(pair[1])][:count]
    return [(text.replace(b"\n", b" "), float(score)) for text, score in real]


def _as_json(answer, hypotheses, options):
    parts = [
        {"text": text.decode("utf-8", "replace"), "score": round(score, 6)}
        for text, score in hypotheses
    ]
    record = dict(parts[0])
    if options.n_best > 1:
        record["hypotheses"] = parts
    if options.attention:
        record["attention"] = _attention(answer)
    return json.dumps(record, ensure_ascii=False).encode("utf-8")


def _attention(answer):
    """The tokens on both sides and a row of weights for each target token."""
    source, target = (
        [token.decode("utf-8", "replace") for token in answer[name] if token]
        for name in ("source_tokens", "target_tokens")
    )
    weights = answer["attention"][: len(target), : len(source)]
    return {
        "source_tokens": source,
        "target_tokens": target,
        "weights": [[round(float(w), 6) for w in row] for row in weights],
    }
