"""The four ids that mean the same in every vocabulary of kseq."""

PAD, UNK, START, END = range(4)
