"""kseq predict: standard input to standard output, a line for a line."""

import itertools
import json
import sys

from kseq.command_line.search_options import option_of
from kseq.commands.capabilities import Capabilities
from kseq.commands.glossary import Glossary
from kseq.commands.open_predictor import open_predictor
from kseq.commands.read_chunks import (
    above_the_answers,
    chunk_size,
    count_invalid,
    counted,
    read_chunks,
    standard_input,
    warn_if_cut,
    warn_of_invalid,
)
from kseq.data import read_lines
from kseq.data.files.text_files import BYTE_ORDER_MARK, refuse_utf_16
from kseq.data.files.url_files import copy_urls
from kseq.files.model_path import is_run
from kseq.serving.answer_markup import count_sentences
from kseq.terminal import BREAKS, progress, single_line
from kseq.user_error import UserError

_SHOWN = 60  # characters of a sentence in a message


def run(options):
    """Answers until the input ends."""
    copy_urls(options)
    model = Capabilities(options.path)
    _check(model, options)
    n_best = model.n_best(options)
    inputs_of = model.source.read_lines(model, options)
    predictor = open_predictor(options)
    if options.markup:
        _answer_markup(predictor)
        return
    prefixes = options.prefix and _Prefixes(options.prefix)
    glossary = options.glossary and Glossary(options.glossary)
    number = 0
    stdin = standard_input()
    size = chunk_size(options.batch_size, model.num_classes)
    chunks = read_chunks(stdin, size, model.source.has_tokenizer)
    for lines in counted(chunks, stdin, "Predicting"):
        prefix = prefixes and prefixes.take(len(lines))
        of_text = {}  # answers of other kinds have no phrases
        if glossary:
            of_text["phrases"] = list(map(glossary.phrases, lines))
        if options.word_probabilities:
            of_text["word_probabilities"] = True
        if options.stream:
            for line, given in zip(lines, inputs_of(lines), strict=True):
                number += 1
                answer = _stream(predictor, given)
                warn_if_cut(number, answer.truncated, line)
            continue
        with above_the_answers("Predicting", len(lines)) as advance:
            if options.paragraphs:
                texts = [line.removesuffix(b"\r") for line in lines]
                answers = predictor.paragraphs(texts)
            else:
                answers = predictor.answers(
                    inputs_of(lines),
                    n_best=n_best,
                    prefixes=prefix,
                    attention=options.attention,
                    progress=advance,
                    **of_text,
                )
        for line, answer in zip(lines, answers, strict=True):
            number += 1
            warn_if_cut(number, answer.truncated, line)
            if options.mbr:
                answer = _of_minimum_risk(answer, options.n_best)
            if glossary and not glossary.fits(line, answer):
                print(
                    f"line {number}: no answer satisfies the glossary.",
                    file=sys.stderr,
                )
            text = _formatted(answer, options).encode("utf-8", "replace")
            sys.stdout.buffer.write(text + b"\n")
        sys.stdout.buffer.flush()
    if prefixes:
        prefixes.check_end(number)


def _check(model, options):
    """UserError for options that are not for this model."""
    between_texts = model.source.has_sentences and model.answer.has_metrics
    for name, kind, is_one in (
        ("word_probabilities", "that answers with a text", model.answer.chats),
        ("stream", "that answers with a text", model.answer.chats),
        ("paragraphs", "from text to text", between_texts),
        ("markup", "from text to text", between_texts),
    ):
        if getattr(options, name) and not is_one:
            raise UserError(
                f"{option_of(name)} is for a model {kind}, which {model.path} "
                "is not."
            )
    if options.glossary and not is_run(options.path):
        raise UserError(
            f"--glossary is for a run; {options.path} is an export."
        )
    for name, signature in _SIGNATURES.items():
        if getattr(options, name):
            model.check_signature(signature, option_of(name))
    model.check_options(options)


# Options, and the signatures that they call.
_SIGNATURES = {
    "word_probabilities": "score",
    "markup": "explain",
    "mbr": "n_best",
    "glossary": "n_best",
    "attention": "explain",
    "prefix": "prefix",
}


def _answer_markup(predictor):
    """Answers the texts of a document, which is all of the input."""
    with open(standard_input(), "rb", closefd=False) as file:
        data = file.read()
    refuse_utf_16("Standard input", data)
    warn_of_invalid("Standard input", count_invalid(data.split(b"\n")))
    document = data.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
    total = count_sentences(document)
    with progress("Predicting", total, "sentences") as advance:
        [answer] = predictor.markup([document], advance, _warn_of_cut)
    _write(answer)


def _warn_of_cut(sentence):
    """Says on standard error which sentence of a document is too long."""
    print(
        "A sentence is too long; its end was left out: "
        f"{single_line(sentence[:_SHOWN])}...",
        file=sys.stderr,
    )


def _stream(predictor, given):
    """Prints the parts of an `Answer` as they come, and returns it."""
    stream = predictor.stream(given)
    for part in stream:
        _write(single_line(part, keep="\t"))
    _write("\n")
    return stream.answer


def _write(text):
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


class _Prefixes:
    """The lines of a file, one for each line of the input."""

    def __init__(self, path):
        self.path = path
        self._lines = (line.text for line in read_lines(path))

    def take(self, count):
        lines = list(itertools.islice(self._lines, count))
        if len(lines) < count:
            raise UserError(f"{self.path} has fewer lines than the input.")
        return lines

    def check_end(self, count):
        if next(self._lines, None) is not None:
            raise UserError(
                f"{self.path} has more lines than the {count} of the input."
            )


def _of_minimum_risk(answer, n_best):
    """The answer with the candidates of the highest mean chrF, best first."""
    from kseq.evaluation import expected_chrf  # imports all metrics

    candidates = answer.hypotheses
    scores = expected_chrf([each.text for each in candidates])
    best = {}  # each text once
    for place in sorted(range(len(candidates)), key=lambda i: -scores[i]):
        best.setdefault(candidates[place].text, place)
    places = list(best.values())[:n_best]
    records = [
        {
            **candidates[place].to_json(),
            "expected_chrf": round(scores[place], 4),
        }
        for place in places
    ]
    record = dict(records[0])
    if n_best > 1:
        record["hypotheses"] = records
    hypotheses = [candidates[place] for place in places]
    return answer._replace(hypotheses=hypotheses, record=record)


def _formatted(answer, options):
    if options.json:
        text = json.dumps(answer.record, ensure_ascii=False)
        # JSON leaves some as they are, which some programs take for line ends.
        return BREAKS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    has_columns = options.scores or options.n_best > 1
    columns = []
    for text, score in answer.hypotheses:
        if options.scores:
            columns.append(f"{score:.4f}")
        columns.append(single_line(text, keep="" if has_columns else "\t"))
    return "\t".join(columns)
