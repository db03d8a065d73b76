"""Lines of text, of which files have pairs with the answers."""

from kseq import data
from kseq.data import DataError
from kseq.data.files.corpora import log_problems
from kseq.data.files.tables import kind_of
from kseq.data.files.text_files import LONGEST_LINE, read_lines
from kseq.data.text.pair_table import PairTable
from kseq.sources.source_type import SourceType
from kseq.terminal import escaped_line, progress
from kseq.user_error import UserError

_PIECES_OF_DATES = 1500  # as in the recipes


def lines_alone(model, options):
    """Lines are inputs as they are."""
    return lambda lines: lines


def _first_rows(path, columns, num_files):
    # Of two files that are no tables each has one side.
    if num_files > 1 and not kind_of(path):
        return read_lines(path)
    return PairTable(path, columns).rows()


def _read_corpus(options, train, validation):
    return data.read_corpus(
        options.files,
        options.validation or None,
        options.columns or (),
        log=False,
    )


def line_filters(options, source):
    """The filters of `--filter`, or None; without TensorFlow.

    Raises:
        DataError: the options do not fit.
    """
    given = {
        "scripts": tuple(options.scripts or ()),
        "max_ratio": options.max_ratio,
        "max_characters": options.max_characters,
    }
    given = {name: value for name, value in given.items() if value}
    if not options.filter:
        if given:
            name = next(iter(given)).replace("_", "-")
            raise DataError(f"--{name} is for --filter.")
        return None
    if source is not TEXT:
        raise DataError("--filter is for pairs of sentences.")
    return data.LineFilters(**given)


def _prepare(options, kept, beam):
    given = {"vocab_size": options.vocab_size, "pieces": options.pieces}
    if not options.train:
        given["vocab_size"] = options.vocab_size or _PIECES_OF_DATES
    given = {name: value for name, value in given.items() if value}
    return data.prepare_pairs(
        options.folder,
        options.train,
        options.validation,
        options.columns,
        tokenizers=data.PairTokenizers(**given, kept=kept),
        filters=line_filters(options, TEXT),
        processes=options.processes,
        beam=beam,
        log=False,
    )


def _read_examples(model, options):
    """Pairs of source and references, see `kseq.data.Corpus.examples`."""
    from kseq.data.text.parallel_text import check_pair_columns
    from kseq.data.text.references import with_references

    columns = tuple(options.columns or ())
    text = data.ParallelText(options.source, options.reference, columns)
    check_pair_columns(columns, [text])
    with progress(f"Reading {escaped_line(text)}"):
        report = _count(text)
    left_out = f"{report.too_long} of {report.pairs} pairs"
    if report.too_long == report.pairs:
        raise DataError(
            f"{text}: there is no pair to evaluate on; {left_out} have a line "
            f"over {LONGEST_LINE} bytes."
        )
    problems = text.notes() + report.problems(text, of_left_out=False)
    if report.too_long:
        problems.append(
            f"{text}: {left_out} are left out of the scores: a line is over "
            f"{LONGEST_LINE} bytes."
        )
    log_problems(problems)
    pairs = text.all_pairs()
    return with_references(pairs) if text.target is None else pairs


def _count(text):
    try:
        return text.count()
    except DataError as error:
        if text.target is not None or kind_of(text.source):
            raise
        raise UserError(
            f"{str(error).removesuffix('.')}. This model answers with a text: "
            "it needs SOURCE and REFERENCE, or a table of both."
        ) from None


TEXT = SourceType(
    name="text",
    preprocessor="TextPreprocessor",
    item="text",
    lines="text",
    command_line="< FILE",
    python='["..."]',
    json='["..."]',
    read_lines=lines_alone,
    options=frozenset({"columns", "metrics"}),
    content="pairs",
    prepared="pairs",
    more_columns=1,  # alignments
    first_rows=_first_rows,
    read_corpus=_read_corpus,
    prepare=_prepare,
    trains="translate_transformer",
    read_examples=_read_examples,
    has_tokenizer=True,
    has_sentences=True,
    types=(str, bytes),
    chat_input=lambda turns: turns[-1],
    page_input="text_input",
    page_view="translator",
)
