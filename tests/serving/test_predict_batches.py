import tensorflow as tf

from kseq.evaluation import map_lines


def test_lines_are_answered_in_their_order():
    lines = [b"x" * n for n in (3, 1, 4, 1, 5, 9, 2, 6)]
    batches = []

    def length(texts):
        batches.append(texts.numpy().tolist())
        return {"length": tf.strings.length(texts)}

    results = map_lines(length, lines, batch_size=3)
    assert [r["length"] for r in results] == [len(line) for line in lines]
    assert batches[0] == [lines[5], lines[7], lines[4]]
