"""The paths of `kseq prepare`, where a kind of data takes one file."""

from kseq.user_error import UserError


def prepared_paths(options, kept, option):
    """The folder, the file to train on, and that of validation or None.

    Args:
        options: of `kseq prepare`.
        kept: the tokenizers of `--from`, or None.
        option: str, that says what the files hold.

    Raises:
        UserError: there are tokenizers.
    """
    if kept:
        raise UserError(f"--from keeps tokenizers of pairs, not of {option}.")
    return (
        options.folder,
        options.train[0],
        (*(options.validation or ()), None)[0],
    )
