import random
import threading
import time

import numpy as np
import pytest
import tensorflow as tf

from kseq.server import cancellation
from kseq.server.batcher import Batcher
from kseq.server.request_error import RequestError
from kseq.server.row_lengths import row_lengths
from tests.waiting import wait_for


class Lengths:
    """Answers with the length of each text, as a `Servable` does.

    Args:
        held: texts whose calls wait until `release` is set.
        wrong: texts that are refused.
    """

    def __init__(self, held=(), wrong=(), adds_rows=True, pads_rows=False):
        self.held = held
        self.wrong = wrong
        self.are_added = adds_rows
        self.are_padded = pads_rows
        self.release = threading.Event()
        self.calls = []

    def adds_rows(self, signature):
        return self.are_added

    def pads_rows(self, signature):
        return self.are_padded

    def run(self, signature, inputs):
        (texts,) = (values.tolist() for values in inputs.values())
        self.calls.append(texts)
        if set(texts) & set(self.held):
            assert self.release.wait(20)
        if set(texts) & set(self.wrong):
            raise RequestError("wrong")
        return {"length": np.array([len(text) for text in texts])}


@pytest.fixture
def make():
    made = []

    def make_batcher(queue_size=100, num_threads=2):
        made.append(Batcher(queue_size, num_threads))
        return made[-1]

    yield make_batcher
    for batcher in made:
        batcher.close()


def ask(batcher, servable, *texts, timeout=20.0, name="text", continues=False):
    inputs = {name: np.array(texts, object)}
    return batcher.submit(
        servable, "serving_default", inputs, timeout, continues
    )


def occupied(batcher, servable):
    """Both threads answer something that is held."""
    futures = [ask(batcher, servable, text) for text in servable.held]
    wait_for(lambda: len(servable.calls) == len(servable.held))
    return futures


def test_what_waits_is_answered_together(make):
    servable = Lengths(held=[b"one", b"a text of which the length is another"])
    batcher = make()
    first = occupied(batcher, servable)
    waiting = [
        ask(batcher, servable, *texts) for texts in ([b"a"], [b"bb", b"c"])
    ]
    longer = ask(batcher, servable, b"d" * 500)
    servable.release.set()
    assert [f.result(20)["length"].tolist() for f in waiting] == [[1], [2, 1]]
    assert longer.result(20)["length"].tolist() == [500]
    assert [f.result(20)["length"].tolist() for f in first] == [[3], [37]]
    assert [b"a", b"bb", b"c"] in servable.calls
    assert [b"d" * 500] in servable.calls


def test_what_a_batch_would_change_is_answered_alone(make):
    servable = Lengths(held=[b"one", b"two"], adds_rows=False)
    batcher = make()
    occupied(batcher, servable)
    waiting = [ask(batcher, servable, b"a") for _ in range(3)]
    servable.release.set()
    assert [f.result(20)["length"].tolist() for f in waiting] == [[1]] * 3
    assert servable.calls.count([b"a"]) == 3


def test_a_batch_is_bounded(make):
    servable = Lengths(held=[b"one", b"a text of which the length is another"])
    batcher = make()
    occupied(batcher, servable)
    waiting = [ask(batcher, servable, b"a") for _ in range(80)]
    large = ask(batcher, servable, *[b"b"] * 70)
    servable.release.set()
    assert all(f.result(20)["length"].tolist() == [1] for f in waiting)
    assert large.result(20)["length"].tolist() == [1] * 70
    sizes = {
        text: sorted(len(call) for call in servable.calls if call[0] == text)
        for text in (b"a", b"b")
    }
    assert sizes[b"a"] in ([16, 32, 32], [8, 8, 32, 32])
    assert sizes[b"b"] == [6, 32, 32]


def test_a_large_request_is_split_by_length_and_joined(make, seed):
    draws = random.Random(seed)
    servable = Lengths()
    texts = [b"a" * draws.choice([0, 1, 50, 999, 5000]) for _ in range(500)]
    future = ask(make(), servable, *texts)
    assert future.result(20)["length"].tolist() == list(map(len, texts))
    for call in servable.calls:
        assert len(call) <= 32
        assert len(call) == 1 or len(call) * max(map(len, call)) <= 32_768
        assert list(map(len, call)) == sorted(map(len, call))


def test_a_large_request_leaves_others_their_turn(make):
    servable = Lengths(held=[b"held"])
    batcher = make()
    large = ask(batcher, servable, *[b"held"] * 10_000)
    wait_for(lambda: servable.calls)
    for text in (b"a", b"bb"):
        assert ask(batcher, servable, text).result(20)["length"] == [len(text)]
    assert servable.calls.count([b"held"] * 32) == 1
    assert batcher.waiting == 0
    servable.release.set()
    assert large.result(20)["length"].tolist() == [4] * 10_000


@pytest.mark.parametrize("continues", [True, False])
def test_streams_and_new_requests_take_turns(make, continues):
    """However many of the others wait already."""
    servable = Lengths(held=[b"one", b"two"], adds_rows=False)
    batcher = make()
    occupied(batcher, servable)
    others = [
        ask(batcher, servable, b"a%d" % number, continues=not continues)
        for number in range(9)
    ]
    ours = [
        ask(batcher, servable, text, continues=continues)
        for text in (b"b1", b"b2")
    ]
    servable.release.set()
    for future in others + ours:
        future.result(20)
    order = [call[0] for call in servable.calls]
    assert max(map(order.index, (b"b1", b"b2"))) <= 2 + 4


def test_large_requests_take_turns(make):
    servable = Lengths(held=[b"one", b"a text of which the length is another"])
    batcher = make()
    occupied(batcher, servable)
    large = [ask(batcher, servable, *[text] * 320) for text in (b"a", b"bb")]
    small = ask(batcher, servable, b"a text of another length, and so alone")
    servable.release.set()
    for future in (*large, small):
        future.result(20)
    place = servable.calls.index([b"a text of another length, and so alone"])
    assert place <= 6  # of 22 calls of the large ones


@pytest.mark.parametrize("begun", [0, 1])
def test_a_large_request_that_is_cancelled(make, begun):
    servable = Lengths(held=[b"held", b"a text of which the length is another"])
    batcher = make()
    if not begun:
        occupied(batcher, servable)
    large = ask(batcher, servable, *[b"held"] * 64)
    wait_for(lambda: len(servable.calls) == 2 - begun)
    assert batcher.waiting == 1 - begun
    assert large.cancel()
    assert batcher.waiting == 0
    servable.release.set()
    assert ask(batcher, servable, b"a").result(20)["length"] == [1]
    assert len(servable.calls) == 3 - begun


def test_one_wrong_row_of_a_large_request(make):
    servable = Lengths(wrong=[b"bad"])
    batcher = make()
    with pytest.raises(RequestError, match="wrong"):
        ask(batcher, servable, *[b"a"] * 64, b"bad", b"longer").result(20)
    assert ask(batcher, servable, b"a").result(20)["length"] == [1]


def test_a_large_request_whose_time_is_over(make):
    servable = Lengths(held=[b"held"])
    large = ask(make(), servable, *[b"held"] * 64, timeout=0.05)
    wait_for(lambda: servable.calls)
    time.sleep(0.1)
    servable.release.set()
    with pytest.raises(RequestError) as error:
        large.result(20)
    assert error.value.code == "DEADLINE_EXCEEDED"
    assert len(servable.calls) == 1


def test_a_large_request_whose_outputs_are_no_rows(make):
    servable = Lengths()
    servable.run = lambda signature, inputs: {"size": np.zeros(3)}
    large = ask(make(), servable, *[b"a"] * 64)
    assert large.result(20)["size"].shape == (3,)


def test_a_large_request_that_cannot_be_split_leaves_a_thread(make):
    servable = Lengths(held=[b"held"], adds_rows=False)
    batcher = make()
    large = [ask(batcher, servable, *[b"held"] * 40) for _ in range(2)]
    assert ask(batcher, servable, b"short").result(20)["length"] == [5]
    servable.release.set()
    for future in large:
        assert future.result(20)["length"].tolist() == [4] * 40


@pytest.mark.parametrize(
    ("name", "size", "calls"),
    [
        ("image", 10**6, [32, 8]),
        ("audio", 320_000, [32, 8]),  # 10 s
        ("audio", 3_200_000, [3] * 13 + [1]),
        ("text", 1000, [32, 8]),
        ("text", 10_000, [3] * 13 + [1]),
    ],
)
def test_pictures_and_sounds_have_many_bytes(make, name, size, calls):
    values = [b"a" * size for _ in range(40)]
    servable = Lengths(held=[b"one", b"a text of which the length is another"])
    batcher = make()
    occupied(batcher, servable)
    waiting = [ask(batcher, servable, value, name=name) for value in values]
    servable.release.set()
    for future in waiting:
        assert future.result(20)["length"] == [size]
    found = [len(call) for call in servable.calls[2:]]
    assert sorted(found) == sorted(calls)


@pytest.mark.parametrize(
    ("inputs", "lengths"),
    [
        ({"text": [b"", b"abc"]}, [0, 3]),
        ({"text": ["é".encode(), b"a"], "target": [b"a", b"abc"]}, [2, 3]),
        ({"turns": [[b"a", b"bc"], [b"", b""]]}, [3, 0]),
        ({"image": [b"", b"a" * 1000]}, [1, 1]),
        ({"audio": [b"", b"a" * 32_000]}, [0, 100]),
        ({"frames": np.zeros((2, 50, 7), np.float32)}, [50, 50]),
        ({"x": np.zeros(3, np.float32)}, [1, 1, 1]),
        ({"text": []}, []),
        ({"x": np.float32(1)}, []),
        ({"text": [b"a"], "other": [b"a", b"b"]}, []),
    ],
)
def test_row_lengths(inputs, lengths):
    arrays = {
        name: np.array(value, object) if isinstance(value, list) else value
        for name, value in inputs.items()
    }
    arrays = {name: np.asarray(value) for name, value in arrays.items()}
    assert row_lengths(arrays).tolist() == lengths


def test_one_that_is_wrong_fails_alone(make):
    servable = Lengths(
        held=[b"one", b"a text of which the length is another"], wrong=[b"bad"]
    )
    batcher = make()
    occupied(batcher, servable)
    good, bad = ask(batcher, servable, b"a"), ask(batcher, servable, b"bad")
    servable.release.set()
    assert good.result(20)["length"].tolist() == [1]
    with pytest.raises(RequestError, match="wrong"):
        bad.result(20)


def test_long_ones_leave_a_thread_to_short_ones(make):
    servable = Lengths(held=[b"l" * 10_000, b"m" * 100_000])
    batcher = make()
    long = [ask(batcher, servable, text) for text in servable.held]
    assert ask(batcher, servable, b"short").result(20)["length"] == [5]
    assert not any(future.done() for future in long)
    servable.release.set()
    assert [f.result(20)["length"].tolist() for f in long] == [[10**4], [10**5]]


def test_a_full_queue_refuses_at_once_until_someone_leaves(make):
    servable = Lengths(held=[b"one", b"a text of which the length is another"])
    batcher = make(queue_size=2)
    occupied(batcher, servable)
    waiting = [ask(batcher, servable, b"a") for _ in range(2)]
    with pytest.raises(RequestError, match="full") as error:
        ask(batcher, servable, b"a")
    assert error.value.status == 429
    assert waiting[0].cancel()
    last = ask(batcher, servable, b"bb")
    servable.release.set()
    assert waiting[1].result(20)["length"].tolist() == [1]
    assert last.result(20)["length"].tolist() == [2]


def test_what_has_waited_too_long_is_not_begun(make):
    servable = Lengths(held=[b"one", b"a text of which the length is another"])
    batcher = make()
    occupied(batcher, servable)
    late = ask(batcher, servable, b"a", timeout=0.01)
    time.sleep(0.05)
    servable.release.set()
    with pytest.raises(RequestError) as error:
        late.result(20)
    assert error.value.code == "DEADLINE_EXCEEDED"
    assert [b"a"] not in servable.calls


def test_what_waits_is_answered_before_the_end(make):
    servable = Lengths(held=[b"one", b"a text of which the length is another"])
    batcher = make()
    occupied(batcher, servable)
    waiting = ask(batcher, servable, b"a")
    servable.release.set()
    batcher.close()
    assert waiting.result(0)["length"].tolist() == [1]
    with pytest.raises(RequestError, match="shutting down"):
        ask(batcher, servable, b"a")


class Padded(Lengths):
    """Answers with the letters of each text, padded, and their squares."""

    def __init__(self, **options):
        super().__init__(adds_rows=False, pads_rows=True, **options)

    def run(self, signature, inputs):
        sizes = super().run(signature, inputs)["length"]
        letters = [
            [bytes([letter]) for letter in text] for text in inputs["text"]
        ]
        longest = sizes.max(initial=0)
        padded = np.full((len(sizes), longest), b"", object)
        squares = np.zeros((len(sizes), longest, longest), np.float32)
        for row, size in enumerate(sizes):
            padded[row, :size] = letters[row]
            squares[row, :size, :size] = size
        return {"letters": padded, "squares": squares, "length": sizes}


def test_padded_outputs_are_split_by_length_and_padded_again(make, seed):
    draws = random.Random(seed)
    texts = [b"ab" * draws.choice([0, 1, 2, 20]) for _ in range(150)]
    servable = Padded()
    joined = ask(make(), servable, *texts).result(20)
    assert max(map(len, servable.calls)) == 32
    assert len(servable.calls[0][-1]) == 40  # the longest come first
    whole = Padded().run("", {"text": np.array(texts, object)})
    assert joined.keys() == whole.keys()
    for name, value in whole.items():
        assert joined[name].dtype == value.dtype
        np.testing.assert_array_equal(joined[name], value)


def test_padded_outputs_of_several_requests_are_not_joined(make):
    servable = Padded(held=[b"one", b"a text of which the length is another"])
    batcher = make()
    occupied(batcher, servable)
    waiting = [ask(batcher, servable, text) for text in (b"ab", b"abc")]
    servable.release.set()
    shapes = [future.result(20)["letters"].shape for future in waiting]
    assert shapes == [(1, 2), (1, 3)]


def test_an_answer_that_would_be_too_large_is_not_made(make):
    """One long row pads all others: 1,001 * 300 * 300 numbers."""
    servable = Padded()
    batcher = make()
    with pytest.raises(RequestError, match="more than") as error:
        ask(batcher, servable, b"a" * 300, *[b"a"] * 1000).result(20)
    assert error.value.status == 400
    assert len(servable.calls) == 1
    assert ask(batcher, servable, b"a").result(20)["length"] == [1]


def test_one_call_with_too_large_an_answer(make):
    servable = Lengths()
    servable.run = lambda signature, inputs: {"x": np.zeros((1, 2**24))}
    with pytest.raises(RequestError, match="more than"):
        ask(make(), servable, b"a").result(20)


def test_a_large_answer_to_a_large_request(make):
    """What grows with the inputs is not bounded."""
    servable = Lengths()
    servable.run = lambda signature, inputs: {
        "x": np.zeros((len(inputs["text"]), 512))
    }
    found = ask(make(), servable, *[b"a" * 200] * 10_000).result(20)
    assert found["x"].nbytes > 32 * 2**20


def test_a_call_that_cannot_be_split_is_bounded(make):
    servable = Lengths(adds_rows=False)
    batcher = make()
    with pytest.raises(RequestError, match="at most 41 at once") as error:
        ask(batcher, servable, b"a" * 100_000, *[b"a"] * 100).result(20)
    assert error.value.status == 400
    assert not servable.calls
    many = ask(batcher, servable, *[b"a"] * 10_000)
    assert len(many.result(20)["length"]) == 10_000


class Endless:
    """Counts for minutes, in a loop of TensorFlow."""

    def __init__(self):
        self.begun = threading.Event()
        self.ended = []
        self._count = tf.function(
            lambda: tf.while_loop(
                lambda i: i < 2**30, lambda i: [i + 1], [tf.constant(0)]
            )[0],
            autograph=False,
        ).get_concrete_function()

    def adds_rows(self, signature):
        return True

    pads_rows = adds_rows

    def run(self, signature, inputs):
        self.begun.set()
        try:
            if inputs["text"][0] == b"count":
                self._count()
        except tf.errors.CancelledError as error:
            self.ended.append(error)
            raise
        return {"length": np.zeros(len(inputs["text"]))}


@pytest.mark.parametrize("rows", [1, 100])
def test_a_call_ends_when_nobody_waits_for_it(make, rows):
    endless, batcher = Endless(), make()
    future = ask(batcher, endless, *[b"count"] * rows)
    endless.begun.wait(20)
    assert ask(batcher, endless, b"a").result(20)["length"] == [0]
    assert future.cancel()
    wait_for(lambda: endless.ended)
    wait_for(lambda: not batcher._calls)
    assert ask(batcher, endless, b"a").result(20)["length"] == [0]


def test_threads_are_cancelled_apart(make):
    endless, batcher = Endless(), make(num_threads=3)
    futures = []
    for count in (1, 2):
        futures.append(ask(batcher, endless, b"count"))
        wait_for(lambda n=count: len(batcher._calls) == n)
    futures[0].cancel()
    wait_for(lambda: len(batcher._calls) == 1)
    assert len(endless.ended) == 1
    assert not futures[1].done()
    futures[1].cancel()
    wait_for(lambda: len(endless.ended) == 2)


def test_a_call_goes_on_while_one_waits_for_it(make):
    servable = Lengths(held=[b"one", b"a text of which the length is another"])
    batcher = make()
    occupied(batcher, servable)
    first, second = (ask(batcher, servable, text) for text in (b"a", b"bb"))
    servable.held = [*servable.held, b"a"]
    assert batcher.waiting == 2
    servable.release.set()
    first.cancel()
    assert second.result(20)["length"] == [2]


def test_the_end_has_a_bound(make):
    """Also where a call does not let itself be cancelled."""
    endless, batcher = Endless(), make()
    stuck = Lengths(held=[b"stuck"])
    futures = [
        ask(batcher, stuck, b"stuck"),
        ask(batcher, endless, b"count"),
        ask(batcher, endless, b"a text of another length, which waits"),
    ]
    wait_for(lambda: len(batcher._calls) == 2)
    start = time.monotonic()
    batcher.close(0.1)
    assert time.monotonic() - start < 10
    assert len(endless.ended) == 1
    for future in futures[1:]:
        assert future.exception(0).code == "UNAVAILABLE"
    stuck.release.set()


def test_without_the_private_names_a_call_runs_to_its_end(make, monkeypatch):
    monkeypatch.delattr(cancellation.cancellation, "CancellationManager")
    servable = Lengths(held=[b"held"])
    batcher = make()
    future = ask(batcher, servable, b"held")
    wait_for(lambda: servable.calls)
    future.cancel()
    servable.release.set()
    assert ask(batcher, servable, b"a").result(20)["length"] == [1]


@tf.function(input_signature=[tf.TensorSpec((None,), tf.string)])
def numbers(text):
    return tf.strings.to_number(text, tf.int32)


class Numbers(Lengths):
    """A graph that fails where a text is no number."""

    def run(self, signature, inputs):
        super().run(signature, inputs)
        (texts,) = inputs.values()
        return {"number": numbers(tf.constant(texts.tolist())).numpy()}


def test_a_call_that_fails_cancels_no_other(make):
    """TensorFlow cancels what a failed call was given."""
    # Of different lengths: one call does not answer both.
    servable = Numbers(held=[b"1" * 9, b"2".zfill(40)])
    batcher = make()
    occupied(batcher, servable)
    good, bad, other = (ask(batcher, servable, t) for t in (b"1", b"x", b"2"))
    servable.release.set()
    assert good.result(20)["number"] == [1]
    assert other.result(20)["number"] == [2]
    assert isinstance(bad.exception(20), tf.errors.InvalidArgumentError)
    assert [b"1", b"x", b"2"] in servable.calls


def test_what_is_cancelled_begins_no_further_call():
    calls = cancellation.Cancellation()
    calls.cancel()
    with calls.scope(), pytest.raises(tf.errors.CancelledError):
        numbers(tf.constant(["1"]))
    numbers(tf.constant(["1"]))
