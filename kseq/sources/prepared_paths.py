"""The paths of `kseq prepare`, where a kind of data takes one file."""

from kseq.user_error import UserError


def prepared_paths(options, kept, option):
    """The folder, the file to train on, and that of validation or None.

    Args:
        options: of `kseq prepare`.
        kept: the tokenizers of `--from`, or None.
        option: str, that says what the files hold.

    Raises:
        UserError: there are more files, or tokenizers.
    """
    if kept:
        raise UserError(f"--from keeps tokenizers of pairs, not of {option}.")
    paths = options.train, options.validation or [None]
    if not options.train or any(len(files) > 1 for files in paths):
        raise UserError(
            f"--{option} takes one --train FILE, and one --validation FILE. A "
            "pattern in quotes names several, and a folder all in it."
        )
    return options.folder, *(path for [path] in paths)
