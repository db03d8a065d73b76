"""`kseq prepare` where a kind of data takes one file."""

from kseq.user_error import UserError


def prepared_paths(options, kept, option):
    """The folder, the file to train on, and that of validation or None.

    Raises:
        UserError: there are tokenizers of `--from`.
    """
    if kept:
        raise UserError(f"--from keeps tokenizers of pairs, not of {option}.")
    validation = options.validation or [None]
    return options.folder, options.train[0], validation[0]


def prepare_features(prepare, options, kept, beam, **given):
    """Prepares what has features, and a tokenizer in training alone.

    Args:
        prepare: function of `kseq.data`.
        options: of `kseq prepare`.
        kept: the tokenizers of `--from`, or None.
        beam: options of Beam, or None.
        **given: arguments of the function, if there is a value.

    Raises:
        UserError: there are options of tokenizers.
    """
    if kept or options.vocab_size or options.pieces:
        raise UserError(
            "--from, --vocab-size and --pieces are for text: with features, "
            "training makes the tokenizer."
        )
    return prepare(
        *prepared_paths(options, kept, "features"),
        options.columns,
        features=options.features or "",
        **{name: value for name, value in given.items() if value},
        processes=options.processes,
        beam=beam,
        log=False,
    )


def prepare_with_bpe(
    prepare, options, kept, beam, *, option, items, columns=()
):
    """Prepares what has one tokenizer, of bpe, see `prepare_features`.

    Args:
        prepare: function of `kseq.data`.
        options: see `prepare_features`.
        kept: see `prepare_features`.
        beam: see `prepare_features`.
        option: str, that says what the files hold.
        items: str, what has the pieces, for the message.
        columns: arguments of the function after the paths.

    Raises:
        UserError: there are pieces or tokenizers.
    """
    if options.pieces:
        raise UserError(f"{items} have pieces of bpe: leave out --pieces.")
    given = {"vocab_size": options.vocab_size} if options.vocab_size else {}
    return prepare(
        *prepared_paths(options, kept, option),
        *columns,
        **given,
        processes=options.processes,
        beam=beam,
        log=False,
    )
