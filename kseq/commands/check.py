"""kseq check: the numbers of a corpus, before anything is trained."""

from collections import Counter

from kseq.command_line.option_types import option
from kseq.data import DataError
from kseq.data.files.prepared_folder import PreparedFolder, is_prepared
from kseq.data.files.url_files import copy_urls, refuse_folder_urls, urls_of
from kseq.process import OPTIONAL, start_keras
from kseq.sources import source_of_files
from kseq.sources.first_rows import read_first_rows
from kseq.sources.text import line_filters
from kseq.terminal import escaped_line

_OF_ALL = ("command", "debug", "files")  # not about what is in the files


def run(options):
    """Prints what a recipe would train on and what it would leave out."""
    refuse_folder_urls(options)
    if urls_of(options):
        start_keras(without=OPTIONAL)
        copy_urls(options)
    if len(options.files) == 1 and is_prepared(options.files[0]):
        _refuse_options(options)
        _check_prepared(PreparedFolder(options.files[0]))
        return
    source = source_of_files(options)
    train, validation = options.files, options.validation or ()
    if source.option and (len(train) > 1 or len(validation) > 1):
        raise DataError(
            f"--{source.option} takes one file, and one for --validation. A "
            "pattern in quotes names several."
        )
    resample = getattr(options, "resample", None)
    if resample and "resample" not in source.options:
        raise DataError("--resample is for recordings: give --audio.")
    filters = line_filters(options, source)
    read_first_rows(source.content, train, validation, options.columns or ())
    start_keras(without=OPTIONAL)
    corpus = source.read_corpus(options, train[0], (*validation, None)[0])
    for line in corpus.describe():
        print(line)
    if filters is not None:
        _print_filtered(options, filters)


def _print_filtered(options, filters):
    """Prints how many pairs of each text are left out by filters."""
    from kseq.data import kept_pairs
    from kseq.data.text.parallel_text import parallel_texts

    seen = set()
    for text in parallel_texts("FILES", options.files, options.columns or ()):
        counts, found = Counter(), Counter()
        for block in text.usable_blocks(counts):
            found += kept_pairs(*block[:2], filters, seen)[1]
        found += Counter(empty=counts["blank"], too_long=counts["too_long"])
        print(
            escaped_line(
                f"{text}: filters leave out {found.total()} of "
                f"{counts['pairs']} pairs: {filters.described(found)}."
            )
        )


def _refuse_options(options):
    """Raises DataError for options of files, which are prepared already."""
    given = [
        option(name)
        for name, value in vars(options).items()
        if value and name not in _OF_ALL
    ]
    if given:
        raise DataError(
            f"{options.files[0]} is a prepared folder, which is checked as a "
            f"whole: leave out {', '.join(given)}."
        )


def _check_prepared(prepared):
    """Reads all files of a prepared folder, and prints what is in it."""
    prepared.verify()
    with prepared.opened() as record:
        kind = record["kind"]
        lines = [f"Prepared {kind}: {', '.join(record['files'])}"]
        for side, array in record["arrays"].items():
            size = " x ".join(map(str, array["shape"]))
            what = "ids" if len(array["shape"]) == 1 else "features"
            lines.append(f"{side}: {size} {what} ({array['dtype']})")
        counts = ", ".join(map(str, record["counts"]))
        lines.append(f"Training {kind} of each corpus: {counts}")
        lines += record["facts"] + record["problems"]
    for line in lines:
        print(escaped_line(line))
