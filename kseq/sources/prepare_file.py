"""`kseq prepare` where a kind of data takes one file."""

from kseq.user_error import UserError


def prepare_file(prepare, options, kept, beam, option, *columns, **given):
    """Prepares a file to train on, and one of validation if it is given.

    Args:
        prepare: function of `kseq.data`.
        options: of `kseq prepare`.
        kept: the tokenizers of `--from`, or None.
        beam: options of Beam, or None.
        option: str, that says what the files hold.
        *columns: arguments of the function after the paths.
        **given: others, if there is a value.

    Raises:
        UserError: there are tokenizers.
    """
    if kept:
        raise UserError(f"--from keeps tokenizers of pairs, not of {option}.")
    validation = options.validation or [None]
    return prepare(
        *(options.folder, options.train[0], validation[0], *columns),
        **{name: value for name, value in given.items() if value},
        processes=options.processes,
        beam=beam,
        log=False,
    )


def prepare_features(prepare, options, kept, beam, **given):
    """Prepares data with features; training makes their tokenizer.

    See `prepare_file`.

    Raises:
        UserError: there are options of tokenizers.
    """
    if kept or options.vocab_size or options.pieces:
        raise UserError(
            "--from, --vocab-size and --pieces are for text: with features, "
            "training makes the tokenizer."
        )
    return prepare_file(
        *(prepare, options, kept, beam, "features", options.columns),
        features=options.features,
        **given,
    )


def prepare_with_bpe(prepare, options, kept, beam, option, items, *columns):
    """Prepares data with one BPE tokenizer; see `prepare_file`.

    `items` is what has the pieces, for the message.

    Raises:
        UserError: there are pieces or tokenizers.
    """
    if options.pieces:
        raise UserError(
            f"{items} always have pieces of bpe: leave out --pieces."
        )
    return prepare_file(
        *(prepare, options, kept, beam, option, *columns),
        vocab_size=options.vocab_size,
    )
