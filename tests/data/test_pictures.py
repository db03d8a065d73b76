"""Pictures as people have them, in Python and in the graph."""

import io
import struct
import zlib

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image, ImageOps

from kseq.data import DataError, ImagePreprocessor
from kseq.data.files.media_folder import read_picture
from kseq.data.files.picture_header import picture_header
from kseq.data.pictures.image_preprocessor import decode_images

SHAPE = 8, 12  # that of the pictures, so that they are not stretched
PIXELS = np.random.default_rng(1).integers(0, 255, (*SHAPE, 3), np.uint8)
ORIENTATION = 0x0112


def encoded(format, picture=None, **options):
    file = io.BytesIO()
    picture = picture or Image.fromarray(PIXELS)
    picture.save(file, format, **options)
    return file.getvalue()


def with_orientation(orientation, endian=None, format="JPEG"):
    exif = Image.Exif()
    exif.endian = endian or exif.endian
    exif[ORIENTATION] = orientation
    exif[0x010F] = "a maker of cameras"
    return encoded(format, exif=exif, quality=95)


def png_of(height, width, *chunks):
    """Of one colour, which is small however large the picture is.

    Chunks, their names and contents, are before the pixels.
    """

    def chunk(name, content):
        check = struct.pack(">I", zlib.crc32(name + content))
        return struct.pack(">I", len(content)) + name + content + check

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    row = bytes(1 + (width + 7) // 8)
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", header),
            *(chunk(*each) for each in chunks),
            chunk(b"IDAT", zlib.compress(row * height, 9)),
            chunk(b"IEND", b""),
        ]
    )


def jpeg_of_scans(count):
    """Progressive, with its last scan repeated."""
    image = encoded("JPEG", progressive=True)
    start = image.rindex(b"\xff\xda")
    scan, end = image[start:-2], image[-2:]
    return image[:start] + scan * (count - image.count(b"\xff\xda") + 1) + end


def with_segment(image, content, start=2):
    """A JPEG with a segment of a maker of cameras."""
    size = (2 + len(content)).to_bytes(2, "big")
    return image[:start] + b"\xff\xe5" + size + content + image[start:]


TEXT = b"zTXt", b"a\0\0" + zlib.compress(bytes(7_000_000), 9)
SCANS = b"\xff\xda\0\x08" * 10_000  # of what is no part of the picture
HIDDEN = jpeg_of_scans(101)
LAST_SCAN = HIDDEN.rindex(b"\xff\xda")


@pytest.fixture(scope="module")
def preprocess():
    """Pixels in [-2, 2], and what is blank, in a graph."""
    preprocessor = ImagePreprocessor(side=1, rows=8, columns=12)
    return tf.function(
        lambda images: preprocessor(images)._asdict(),
        input_signature=[tf.TensorSpec((None,), tf.string)],
        autograph=False,
    )


@pytest.mark.parametrize("endian", ["<", ">"])
@pytest.mark.parametrize("format", ["JPEG", "PNG"])
def test_a_picture_is_turned_upright(preprocess, endian, format):
    images = [with_orientation(n, endian, format) for n in range(1, 9)]
    found = preprocess(images)["inputs"]["source"].numpy()
    for number, image in enumerate(images, start=1):
        assert int(picture_header(tf.constant(image))["orientation"]) == number
        picture = ImageOps.exif_transpose(Image.open(io.BytesIO(image)))
        turned = encoded("PNG", picture)  # no EXIF, and of the same shape
        expected = preprocess([turned])["inputs"]["source"][0].numpy()
        # Decoders round differently.
        np.testing.assert_allclose(found[number - 1], expected, atol=0.1)


@pytest.mark.parametrize("orientation", [0, 1, 9, 65_535])
def test_what_is_upright_is_not_changed(orientation):
    """Whatever else is before the picture: its bits are those of before."""
    plain = encoded("JPEG", quality=95)
    comment = b"\xff\xfe\0\x05abc\xff"  # and a fill byte
    tagged = with_orientation(orientation)
    for image in (plain, tagged, plain[:2] + comment + plain[2:]):
        before = tf.image.resize(
            tf.io.decode_jpeg(image, 3), (5, 7), antialias=True
        )
        [after] = decode_images(tf.constant([image]), (5, 7))
        np.testing.assert_array_equal(before, after)


KINDS = {
    "CMYK.jpg": encoded("JPEG", Image.fromarray(PIXELS).convert("CMYK")),
    "grey.jpg": encoded("JPEG", Image.fromarray(PIXELS).convert("L")),
    "progressive.jpg": encoded("JPEG", progressive=True),
    "16 bits.png": encoded("PNG", Image.fromarray(np.uint16(PIXELS[..., 0]))),
    "palette.png": encoded("PNG", Image.fromarray(PIXELS).convert("P")),
    "one bit.png": encoded("PNG", Image.fromarray(PIXELS).convert("1")),
    "grey and alpha.png": encoded("PNG", Image.fromarray(PIXELS).convert("LA")),
    "alpha.png": encoded("PNG", Image.fromarray(PIXELS).convert("RGBA")),
    "100 scans.jpg": jpeg_of_scans(100),
    "thumbnail.jpg": with_segment(encoded("JPEG"), SCANS),
    "thumbnail in 100 scans.jpg": with_segment(jpeg_of_scans(100), SCANS),
    "film.jpg": encoded("JPEG") + SCANS,
    "restarts.jpg": with_segment(
        encoded("JPEG", restart_marker_blocks=1, quality=100), SCANS
    ),
    "32 texts.png": png_of(*SHAPE, *[(b"iTXt", b"a\0\0\0\0\0A text.")] * 32),
    "a PNG.jpg": encoded("PNG"),
    "1 x 1.png": encoded("PNG", Image.new("RGB", (1, 1))),
    "animated.png": encoded(
        "PNG",
        save_all=True,
        append_images=[Image.new("RGB", SHAPE[::-1])],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_every_jpeg_and_png_is_a_picture(write, preprocess, name):
    image = read_picture(write(name, KINDS[name]))
    found = preprocess([image, b""])
    assert found["blank"].numpy().tolist() == [False, True]


GIF = encoded("GIF", save_all=True, append_images=[Image.new("RGB", (12, 8))])
WHOLE = {kind: encoded(kind) for kind in ("JPEG", "PNG")}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (GIF, "but GIF. Convert it to PNG"),
        (encoded("BMP"), "but BMP"),
        (encoded("WEBP"), "but WebP"),
        (encoded("TIFF"), "but TIFF"),
        (b"<!DOCTYPE html><title>404</title>", "but HTML"),
        (b"a text\n", "is not a readable JPEG or PNG file"),
        (WHOLE["JPEG"][:-40], "truncated or damaged"),
        (WHOLE["JPEG"][:3], "truncated or damaged"),
        (WHOLE["PNG"][:-40], "truncated or damaged"),
        (WHOLE["PNG"][:60] + bytes(9) + WHOLE["PNG"][69:], "or damaged"),
        (b"\xff\xd8" + b"\xff\xe0\0\x02" * 10**5, "truncated or damaged"),
        (b"\xff\xd8" + b"\xff" * 10**6, "truncated or damaged"),
        (png_of(20_000, 20_000), "20000 x 20000 pixels; expected at most"),
        # Each of these would be decoded for minutes if there were more parts.
        (jpeg_of_scans(101), "more than 100 scans"),
        (jpeg_of_scans(101)[:-2], "more than 100 scans"),
        (with_segment(HIDDEN, SCANS, LAST_SCAN), "more than 100 scans"),
        (
            HIDDEN[:LAST_SCAN] + b"\xff\xe5\0\2" * 2000 + HIDDEN[LAST_SCAN:],
            "more than 100 scans",
        ),
        (png_of(*SHAPE, *[TEXT] * 33), "more than 32 compressed texts"),
    ],
    ids=range(19),
)
def test_what_is_no_picture_is_named(write, preprocess, content, message):
    path = write("a.jpg", content)
    with pytest.raises(DataError, match=message) as error:
        read_picture(path)
    assert str(path) in str(error.value)
    if "damaged" not in message:
        found = preprocess([content, WHOLE["PNG"]])
        assert found["blank"].numpy().tolist() == [True, False]
