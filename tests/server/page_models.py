"""SavedModels of plain functions, with the signatures of kseq's exports.

Each `explain` takes one input at a time, which is what the page sends.
"""

import tensorflow as tf

from kseq.serving.safe_graph import trust

LIMIT = 200  # bytes of a text; longer: truncated
LABELS = ("<i>spam</i>", "mail")
RATE = 8000  # of recordings
GRID = 2, 3  # rows and columns of a picture
WORDS = ("a", "red", "house")


def save_page_models(root):
    """Saves a version of each kind of model below a folder.

    Returns:
        dict, name of the model -> its folder.
    """
    signatures = {
        "translator": _translator(tf.strings.upper),
        "whisper": {**_translator(tf.strings.lower), **_paragraphs()},
        "retriever": _retriever(),
        "<b>classifier": _classifier(),
        "captions": _captions(),
        "speech": _speech(),
        "chat": _chat(),
        "writer": _writer(),
        "tags": _tagger(),
        "numbers": _numbers(),
    }
    folders = {}
    for number, (name, functions) in enumerate(signatures.items()):
        folders[name] = root / f"{number}"
        module = tf.Module()
        module.functions = functions
        path = str(folders[name] / "1")
        tf.saved_model.save(module, path, signatures=functions)
        # Their operations are not only those that kseq exports.
        trust((folders[name] / "1" / "saved_model.pb").read_bytes())
    extra = folders["speech"] / "1" / "assets.extra"
    extra.mkdir()
    text = f'{{"preprocessor": {{"sample_rate": {RATE}}}}}'
    (extra / "kseq.json").write_text(text, "utf-8")
    return folders


def _function(*shape, **inputs):
    specs = [
        tf.TensorSpec(shape or (None,), dtype, name=name)
        for name, dtype in inputs.items()
    ]
    return tf.function(input_signature=specs)


def _one(**tensors):
    """The rows of a batch of one."""
    return {name: tensor[None] for name, tensor in tensors.items()}


def _is_cut(text):
    return tf.strings.length(text) > LIMIT


def _best(texts, truncated):
    """What `n_best` returns: each text, then shouted, then nothing."""
    scores = tf.constant([[-0.25, -1.5, -float("inf")]])
    three = tf.stack([texts, texts + "!", tf.zeros_like(texts) + ""], axis=1)
    scores = tf.repeat(scores, tf.size(texts), axis=0)
    return {"texts": three, "scores": scores, "truncated": truncated}


def _translator(change):
    """The words of a text in reverse order, and changed.

    A text that begins with `slow` takes a second, `fail` is refused.
    """

    def answer(text):
        words = tf.reverse(tf.strings.split(text[None])[0], [0])
        return change(tf.strings.reduce_join(words, separator=" "), "utf-8")

    def answers(text):
        is_slow = tf.strings.regex_full_match(text, "(?s)slow.*")
        count = tf.where(is_slow, 150_000, 0)
        done = tf.while_loop(
            lambda n: tf.reduce_any(n < count), lambda n: [n + 1], [count * 0]
        )[0]
        number = tf.where(text == "fail", "no number", "0")
        zero = tf.strings.to_number(number, tf.int32) * done[0]
        texts = tf.map_fn(answer, text)
        return texts, tf.cast(zero, tf.float32)

    @_function(text=tf.string)
    def serving_default(text):
        texts, score = answers(text)
        return {"text": texts, "score": score, "truncated": _is_cut(text)}

    @_function(text=tf.string)
    def n_best(text):
        return _best(answers(text)[0], _is_cut(text))

    @_function(text=tf.string)
    def explain(text):
        words = tf.strings.split(text)[0]
        size = tf.size(words)
        end = tf.constant(["</s>"])
        anti = tf.reverse(tf.eye(size), [0]) * 0.75
        anti += 0.25 / tf.cast(tf.maximum(size, 1), tf.float32)
        attention = tf.pad(anti, [[0, 1], [0, 1]])
        corner = tf.one_hot([size], size + 1)
        attention += tf.pad(corner, [[size, 0], [0, 0]])
        reverse = change(tf.reverse(words, [0]), "utf-8")
        return _one(
            source_tokens=tf.concat(["▁" + words, end], 0),
            target_tokens=tf.concat(["▁" + reverse, end], 0),
            attention=attention,
            truncated=_is_cut(text)[0],
        )

    return {
        "serving_default": serving_default,
        "n_best": n_best,
        "explain": explain,
    }


def _paragraphs():
    @_function(text=tf.string)
    def paragraphs(text):
        marked = tf.strings.regex_replace(text, r"(\w+)", r"<\1>")
        return {"text": marked, "truncated": _is_cut(text)}

    return {"paragraphs": paragraphs}


def _retriever():
    @_function(text=tf.string)
    def serving_default(text):
        score = tf.ones_like(text, tf.float32)
        return {"text": text, "score": score, "truncated": _is_cut(text)}

    return {"serving_default": serving_default}


def _classifier():
    """Three quarters for the first label; the first word counts most."""

    @_function(text=tf.string)
    def serving_default(text):
        batch = tf.size(text)
        labels = tf.repeat(tf.constant([LABELS]), batch, axis=0)
        probabilities = tf.repeat(tf.constant([[0.75, 0.25]]), batch, axis=0)
        return {
            "label": labels[:, 0],
            "probability": probabilities[:, 0],
            "labels": labels,
            "probabilities": probabilities,
            "truncated": _is_cut(text),
        }

    @_function(text=tf.string)
    def explain(text):
        sentences = tf.strings.split(text[0], "\n")
        pieces = tf.strings.split(sentences)
        words = (" " + pieces).to_tensor("")
        count = tf.size(sentences)
        first = tf.one_hot(tf.zeros([count], tf.int32), tf.shape(words)[1])
        return _one(
            sentences=sentences,
            sentence_weights=tf.one_hot(0, count) * 0.5
            + 0.5 / tf.cast(count, tf.float32),
            words=words,
            word_weights=first,
            label=tf.constant(LABELS[0]),
            probability=tf.constant(0.75),
            truncated=_is_cut(text)[0],
        )

    return {"serving_default": serving_default, "explain": explain}


def _tagger():
    """Words in capitals are names, three quarters of the way."""

    def tagged(text):
        words = tf.strings.split(text).to_tensor("")
        is_name = (tf.strings.upper(words) == words) & (words != "")
        share = tf.where(is_name, 0.75, 1.0)
        share = tf.where(words == "", 0.0, share)
        return words, is_name, share

    @_function(text=tf.string)
    def serving_default(text):
        words, is_name, share = tagged(text)
        tags = tf.where(is_name, "B-<b>name", "O")
        return {
            "words": words,
            "tags": tf.where(words == "", "", tags),
            "probabilities": share,
            "truncated": _is_cut(text),
        }

    @_function(text=tf.string)
    def distribution(text):
        _, is_name, share = tagged(text)
        names = tf.where(is_name, share, 1 - share)
        return {
            "tagset": tf.repeat([["O", "B-<b>name"]], tf.size(text), axis=0),
            "probabilities": tf.stack([1 - names, names], axis=-1),
            "truncated": _is_cut(text),
        }

    return {"serving_default": serving_default, "distribution": distribution}


def _same_words(name, sources):
    """Answers `WORDS`; each word attends to one position of `sources`.

    An input that is no such file has an empty answer.
    """
    starts = {"image": b"\x89PNG", "audio": b"RIFF"}[name]

    def answers(data):
        is_file = tf.strings.substr(data, 0, 4) == starts
        return tf.where(is_file, " ".join(WORDS), "")

    def default(data):
        texts = answers(data)
        score = tf.zeros_like(texts == "", tf.float32)
        return {"text": texts, "score": score, "truncated": texts == "-"}

    def explain(data):
        del data
        tokens = [f"▁{word}" for word in WORDS] + ["</s>"]
        return _one(
            source_tokens=tf.constant(sources),
            target_tokens=tf.constant(tokens),
            attention=tf.one_hot(tf.range(len(tokens)), len(sources)),
            truncated=tf.constant(False),
        )

    def n_best(data):
        return _best(answers(data), answers(data) == "-")

    functions = {
        "serving_default": default,
        "explain": explain,
        "n_best": n_best,
    }
    return {
        key: tf.function(
            function,
            input_signature=[tf.TensorSpec((None,), tf.string, name)],
            autograph=False,
        )
        for key, function in functions.items()
    }


def _captions():
    rows, columns = GRID
    cells = [f"{r + 1},{c + 1}" for r in range(rows) for c in range(columns)]
    return _same_words("image", cells)


def _speech():
    return _same_words("audio", [f"{place / 10:.2f}" for place in range(5)])


def _chat():
    """Repeats the last turn; reads the last two."""

    def last(turns):
        lengths = tf.math.count_nonzero(turns != "", axis=1, dtype=tf.int32)
        return tf.gather(turns, tf.maximum(lengths - 1, 0), batch_dims=1)

    @_function(None, None, turns=tf.string)
    def serving_default(turns):
        texts = "You say: " + last(turns)
        score = tf.zeros(tf.shape(texts))
        return {"text": texts, "score": score, "truncated": texts == ""}

    @_function(None, None, turns=tf.string)
    def explain(turns):
        read = turns[0, -2:]
        count = tf.size(read)
        pieces = tf.stack(["▁" + read, tf.repeat("</s>", count)], axis=1)
        sources = tf.reshape(pieces, [-1])
        half = tf.constant([0.75, 0.0, 0.25, 0.0])
        whole = tf.constant([1.0, 0.0])
        row = tf.cond(count == 2, lambda: half, lambda: whole)
        return _one(
            source_tokens=sources,
            target_tokens=tf.constant(["▁You", "</s>"]),
            attention=tf.stack([row, row]),
            truncated=tf.constant(False),
        )

    @tf.function(
        input_signature=[
            tf.TensorSpec((None, None), tf.string, "turns"),
            tf.TensorSpec((None,), tf.float32, "temperature"),
            tf.TensorSpec((None,), tf.float32, "top_p"),
            tf.TensorSpec((None,), tf.int64, "seed"),
        ]
    )
    def sample(turns, temperature, top_p, seed):
        numbers = tf.strings.join(
            [
                tf.strings.as_string(x, precision=2)
                for x in (temperature, top_p)
            ],
            separator=" ",
        )
        text = tf.strings.join(["Drawn: ", last(turns), " ", numbers])
        score = tf.cast(seed, tf.float32)
        return explain(turns) | {"text": text, "score": score}

    return {
        "serving_default": serving_default,
        "explain": explain,
        "sample": sample,
    }


def _writer():
    @_function(prompt=tf.string)
    def serving_default(prompt):
        texts = tf.strings.join([" and ", prompt])
        score = tf.zeros(tf.shape(texts))
        return {"text": texts, "score": score, "truncated": _is_cut(prompt)}

    return {"serving_default": serving_default}


def _numbers():
    @_function(None, 2, x=tf.float32)
    def serving_default(x):
        return {"y": 2 * x}

    return {"serving_default": serving_default}
