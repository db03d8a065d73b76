"""The header of an encoded picture, read in the graph."""

import numpy as np
import tensorflow as tf

MOST_PIXELS = 2**26  # of a picture: its decoded bytes fit into memory
# With millions of them, a file of a few megabytes is decoded for hours.
MOST_SCANS = 100  # of a JPEG
MOST_TEXTS = 32  # of a PNG, that may be compressed

_JPEG, _PNG = b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"
_END_OF_PNG = b"IEND\xaeB`\x82"
_EXIF = b"Exif\0\0"
_BYTE_ORDERS = b"II*\0", b"MM\0*"  # a TIFF begins with one of these
_ORIENTATION = 0x0112  # a tag of EXIF
_UPRIGHT = 1
_TEXTS = b"zTXt", b"iTXt"  # chunks of a PNG
_MOST_SEGMENTS = 2000  # of a JPEG; a hostile file has millions
_BLOCK = 2**16  # bytes in which a marker is looked for together
_APP1, _START_OF_SCAN, _END_OF_JPEG = 0xE1, 0xDA, 0xD9
_SCAN = bytes([0xFF, _START_OF_SCAN])
# Markers from C0 to CF that do not start a frame: tables, and a reserved one.
_TABLES = (0xC4, 0xC8, 0xCC)
# After a byte 255 they start no segment: 0 in compressed pixels, a fill byte,
# and markers without a size.
_NO_SEGMENT = (0x00, 0xFF, 0x01, *range(0xD0, 0xD8))


def picture_header(image):
    """What a picture is, before it is decoded.

    Args:
        image: scalar string, the bytes of a file.

    Returns:
        dict of scalars: `is_picture`, bool, whether it is a JPEG or PNG file,
        a PNG with its end, and neither too large nor too slow to be decoded;
        `height`, `width`, int32, as stored, and 0 if it is neither; `scans` of
        a JPEG and `texts` of a PNG, int32, which make it slow; `orientation`,
        int32 from 1, upright, to 8, as EXIF numbers them.

    Example:
    >>> image = tf.io.encode_png(np.zeros((2, 3, 3), "uint8"))
    >>> header = picture_header(image)
    >>> [int(header[name]) for name in ("is_picture", "height", "width")]
    [1, 2, 3]
    """
    is_jpeg = tf.strings.substr(image, 0, len(_JPEG)) == _JPEG
    is_png = tf.strings.substr(image, 0, len(_PNG)) == _PNG
    parts = tf.size(tf.strings.split(image, _END_OF_PNG))
    content = tf.io.decode_raw(image, tf.uint8)
    found = _jpeg_header(content, is_jpeg)
    height = tf.where(is_png, _number(content, 20, 4), found["height"])
    width = tf.where(is_png, _number(content, 16, 4), found["width"])
    exif = tf.where(is_png, _exif_of_png(image), found["exif"])
    pixels = tf.cast(height, tf.int64) * tf.cast(width, tf.int64)
    scans = _scans(content, image, is_jpeg)
    texts = tf.where(is_png, _texts_of_png(image), 0)
    fits = (height > 0) & (width > 0) & (pixels <= MOST_PIXELS)
    fits &= (scans <= MOST_SCANS) & (texts <= MOST_TEXTS)
    return {
        "is_picture": (is_jpeg | (is_png & (parts > 1))) & fits,
        "height": height,
        "width": width,
        "scans": scans,
        "texts": texts,
        "orientation": _orientation(content, exif),
    }


def upright(pixels, orientation):
    """Turns pixels (H, W, C) by their EXIF orientation."""

    def when(orientations, change, pixels):
        is_one = tf.reduce_any(orientation == tf.constant(orientations))
        return tf.cond(is_one, lambda: change(pixels), lambda: pixels)

    pixels = when([5, 6, 7, 8], lambda x: tf.transpose(x, (1, 0, 2)), pixels)
    pixels = when([2, 3, 6, 7], lambda x: tf.reverse(x, [1]), pixels)
    return when([3, 4, 7, 8], lambda x: tf.reverse(x, [0]), pixels)


def _number(content, place, width, little=False):
    """An unsigned integer of up to 4 bytes; negative from 2**31."""
    parts = tf.cast(content[place : place + width], tf.int32)
    order = tf.range(tf.size(parts))
    order = tf.where(little, order, tf.reverse(order, [0]))
    return tf.reduce_sum(tf.bitwise.left_shift(parts, 8 * order))


def _jpeg_header(content, is_jpeg):
    """Height, width and the position of EXIF, from the segments before them."""
    total = tf.size(content)
    exif = tf.constant(list(_EXIF), tf.uint8)

    def advance(place, found):
        marker = _number(content, place + 1, 1)
        size = _number(content, place + 2, 2)
        is_frame = (
            (marker >= 0xC0)
            & (marker <= 0xCF)
            & tf.reduce_all(marker != tf.constant(_TABLES))
        )
        body = place + 4
        start = content[body : body + len(_EXIF)]
        is_exif = (
            (marker == _APP1) & (found["exif"] == 0) & (size >= 8 + len(_EXIF))
        )
        is_exif &= tf.reduce_all(
            tf.equal(tf.pad(start, [[0, len(_EXIF) - tf.size(start)]]), exif)
        )
        height, width = (
            tf.where(is_frame, _number(content, body + 1 + at, 2), found[name])
            for at, name in ((0, "height"), (2, "width"))
        )
        found = {
            "exif": tf.where(is_exif, body + len(_EXIF), found["exif"]),
            "height": height,
            "width": width,
        }
        # Any number of bytes 255 may precede a marker.
        is_fill = marker == 0xFF
        is_segment = tf.reduce_all(marker != tf.constant(_NO_SEGMENT))
        is_last = is_frame | (marker == _START_OF_SCAN) | (size < 2)
        is_last = (is_last | ~is_segment) & ~is_fill
        following = place + tf.where(is_fill, 1, 2 + size)
        return tf.where(is_last, total, tf.minimum(following, total)), found

    def has_segment(place, found):
        return (place + 4 <= total) & (_number(content, place, 1) == 0xFF)

    nothing = dict.fromkeys(("exif", "height", "width"), tf.constant(0))
    start = tf.where(is_jpeg, 2, total)
    _, found = tf.while_loop(
        has_segment,
        advance,
        (start, nothing),
        maximum_iterations=_MOST_SEGMENTS,
    )
    return found


def _scans(content, image, is_jpeg):
    """The number of scans of a JPEG, or one that is higher but not too high."""
    total = tf.size(content)

    def advance(place, scans):
        place, marker = _next_segment(content, place)
        scans += tf.cast(marker == _START_OF_SCAN, tf.int32)
        size = 2 + tf.maximum(_number(content, place + 2, 2), 2)
        following = tf.minimum(place + tf.where(marker > 0, size, 0), total)
        return tf.where(marker == _END_OF_JPEG, total, following), scans

    def has_segment(place, scans):
        return (place + 2 < total) & (scans <= MOST_SCANS)

    # A thumbnail, or a film at the end of the file, has some more.
    most = tf.size(tf.strings.split(image, _SCAN)) - 1
    is_counted = is_jpeg & (most > MOST_SCANS)
    place, scans = tf.while_loop(
        has_segment,
        advance,
        (tf.where(is_counted, 2, total), tf.constant(0)),
        maximum_iterations=_MOST_SEGMENTS + total // _BLOCK,
    )
    # Segments that are not reached may be scans.
    scans = tf.where(has_segment(place, scans), MOST_SCANS + 1, scans)
    return tf.where(is_counted, scans, tf.where(is_jpeg, most, 0))


def _next_segment(content, place):
    """The position and the marker of the next segment of a JPEG.

    As a decoder does, it skips compressed pixels and what is no segment. If
    there is none in a block, its end, and 0.
    """
    block = tf.cast(content[place : place + _BLOCK], tf.int32)
    starts = np.isin(np.arange(256), _NO_SEGMENT, invert=True)
    is_marker = (block[:-1] == 0xFF) & tf.gather(starts, block[1:])
    found = tf.argmax(tf.cast(is_marker, tf.int32), output_type=tf.int32)
    is_there = is_marker[found]
    return (
        place + tf.where(is_there, found, tf.size(is_marker)),
        tf.where(is_there, block[found + 1], 0),
    )


def _texts_of_png(image):
    """The number of chunks with a text that may be compressed."""
    # Compressed pixels could have one of their names.
    return sum(tf.size(tf.strings.split(image, name)) - 1 for name in _TEXTS)


def _exif_of_png(image):
    """The position of EXIF, 0 if there is none."""
    start = tf.constant(0)
    for order in _BYTE_ORDERS:
        # Four bytes of the compressed pixels could be the name of the chunk.
        before = tf.strings.split(image, b"eXIf" + order)
        is_there = tf.size(before) > 1
        found = tf.strings.length(before[0]) + len(b"eXIf")
        start = tf.where(is_there, found, start)
    return start


def _orientation(content, start):
    """The orientation in the first directory of EXIF, which is a TIFF."""
    exif = content[start : start + 2**16]
    little = _number(exif, 0, 1) == ord("I")
    entries = tf.maximum(_number(exif, 4, 4, little), 0)
    entries = tf.minimum(entries, 2**16)
    count = _number(exif, entries, 2, little)
    directory = exif[entries + 2 : entries + 2 + 12 * count]
    directory = directory[: tf.size(directory) // 12 * 12]
    fields = tf.cast(tf.reshape(directory, (-1, 12)), tf.int32)

    def short(at):
        first, second = fields[:, at], fields[:, at + 1]
        return tf.where(little, first + 256 * second, 256 * first + second)

    found = tf.boolean_mask(short(8), short(0) == _ORIENTATION)
    found = tf.concat([found, [_UPRIGHT]], axis=0)[0]
    is_known = (start > 0) & (found >= 1) & (found <= 8)
    return tf.where(is_known, found, _UPRIGHT)
