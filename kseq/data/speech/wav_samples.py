"""The samples of WAV files, in the graph."""

import tensorflow as tf

_PCM, _EXTENSIBLE = 1, 0xFFFE
_HEADER, _CHUNK, _FORMAT = 12, 8, 16  # bytes: RIFF header, of a chunk, "fmt "
_MOST_CHUNKS = 1000  # before the samples; a hostile file has millions
_LOUDEST = 2.0**15


def wav_samples(audio, sample_rate: int | None = None):
    """Decodes WAV files of 16-bit PCM, and raises no error for other files.

    Args:
        audio: (B,) string, the bytes of the files. If a header says that there
            are no samples, those that follow are used.
        sample_rate: int, samples per second of the files that are decoded; None
            for any.

    Returns:
        samples, (B, N) float32, ragged, from -1 to 1, the mean of the channels;
        and the sample rates, (B,) int32. An item that is not such a file has no
        samples and the rate 0.

    Example:
    >>> wave = tf.audio.encode_wav([[0.5], [-0.25]], 8000)
    >>> samples, rates = wav_samples([wave, b"RIFF"])
    >>> samples.to_list(), rates.numpy()
    ([[0.5, -0.25], []], array([8000,    0], dtype=int32))
    """
    spec = tf.RaggedTensorSpec((None,), tf.float32, ragged_rank=0)
    return tf.map_fn(
        lambda wav: _decoded(wav, sample_rate),
        tf.convert_to_tensor(audio, tf.string),
        fn_output_signature=(spec, tf.TensorSpec((), tf.int32)),
    )


def _decoded(wav, sample_rate):
    found = wav_chunks(wav)
    there = tf.strings.length(wav) - found["start"]
    # So that the slices below are valid for a short file, too.
    wav = tf.strings.join([wav, bytes(_HEADER)])
    is_pcm = (found["format"] == _PCM) | (found["format"] == _EXTENSIBLE)
    is_wav = (
        (tf.strings.substr(wav, 0, 4) == b"RIFF")
        & (tf.strings.substr(wav, 8, 4) == b"WAVE")
        & is_pcm
        & (found["bits"] == 16)
        & (found["channels"] > 0)
        & (found["rate"] > 0)
        & (found["start"] > 0)
    )
    rate = tf.where(is_wav, found["rate"], 0)
    is_read = is_wav if sample_rate is None else rate == sample_rate
    channels = tf.maximum(found["channels"], 1)
    size = tf.minimum(found["size"], there) // (2 * channels) * 2 * channels
    data = tf.strings.substr(
        wav, tf.where(is_read, found["start"], 0), tf.where(is_read, size, 0)
    )
    samples = tf.cast(tf.io.decode_raw(data, tf.int16), tf.float32) / _LOUDEST
    return tf.reduce_mean(tf.reshape(samples, (-1, channels)), axis=1), rate


def wav_chunks(wav):
    """The contents of the chunks "fmt " and "data" of a file, as numbers.

    Args:
        wav: scalar string, the bytes of the file.

    Returns:
        dict, of int32: `format`, `channels`, `rate`, `bits`, and `start` and
        `size` of the samples in bytes; 0 if missing.
    """
    content = tf.io.decode_raw(wav, tf.uint8)
    wav = tf.strings.join([wav, bytes(_HEADER)])
    total = tf.size(content)

    def number(place, width):
        parts = tf.cast(content[place : place + width], tf.int32)
        # Fewer bytes if a file ends in the middle of a number.
        shifts = 8 * tf.range(tf.size(parts))
        return tf.reduce_sum(tf.bitwise.left_shift(parts, shifts))

    def is_chunk(place):
        """Whether a chunk begins here, with a name and a size, not samples."""
        name = tf.strings.substr(wav, tf.minimum(place, total), 4)
        is_name = tf.strings.regex_full_match(name, "[ -~]{4}")
        size = number(place + 4, 4)
        return is_name & (size >= 0) & (size <= total - place - _CHUNK)

    def advance(place, found):
        size = number(place + 4, 4)
        # Four bytes may give a negative number; no chunk is that long.
        size = tf.where(size < 0, total, tf.minimum(size, total))
        body = place + _CHUNK
        name = tf.strings.substr(wav, place, 4)
        is_format = (name == b"fmt ") & (body + _FORMAT <= total)
        is_data = (name == b"data") & (found["start"] == 0)
        # The recorder was interrupted, or wrote to a pipe: all that follows.
        is_unfinished = is_data & (size == 0) & ~is_chunk(body)
        size = tf.where(is_unfinished, total - body, size)
        given = {
            "format": number(body, 2),
            "channels": number(body + 2, 2),
            "rate": number(body + 4, 4),
            "bits": number(body + 14, 2),
        }
        found = {
            **{
                key: tf.where(is_format, value, found[key])
                for key, value in given.items()
            },
            "start": tf.where(is_data, body, found["start"]),
            "size": tf.where(is_data, size, found["size"]),
        }
        # Chunks begin at even positions.
        return tf.minimum(body + size + size % 2, total), found

    names = ("format", "channels", "rate", "bits", "start", "size")
    _, found = tf.while_loop(
        lambda place, found: (place + _CHUNK <= total) & (found["start"] == 0),
        advance,
        (tf.constant(_HEADER), dict.fromkeys(names, tf.constant(0))),
        maximum_iterations=_MOST_CHUNKS,
    )
    return found
