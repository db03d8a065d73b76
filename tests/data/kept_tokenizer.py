"""What `prepare_documents` and its kin do with a tokenizer that is given."""

import pytest

from kseq.data import DataError, Tokenizer


def check_a_tokenizer_that_is_kept(prepare, files_of):
    """It may be the one that was trained for the folder.

    Args:
        prepare: function of a folder, by default "out", that prepares the data
            of a test.
        files_of: function of a folder, its files but the record.
    """
    prepared = prepare()
    again = prepare("again", tokenizer=prepared.tokenizer)
    assert files_of("again") == files_of("out")
    known = files_of("out")
    prepare(tokenizer=prepared.tokenizer, vocab_size=300)
    assert files_of("out") == known
    other = Tokenizer.train(["other text"] * 9, 280)
    with pytest.raises(DataError, match="other options: tokenizers is None"):
        prepare(tokenizer=other)
    with pytest.raises(DataError, match="other options: vocab_size is None"):
        prepare("again")
    assert again.describe() == prepared.describe()
