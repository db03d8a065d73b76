"""A small good file of each kind that is read, and changes that break it."""

import bz2
import gzip
import io
import itertools
import json
import lzma

import numpy as np
import pyarrow
import pyarrow.parquet
import soundfile
import zstandard
from PIL import Image

from tests.data.wav import tone, wav

SPECIAL = [
    *(b"\t", b",", b";", b"\n", b"\r", b"\r\n", b'"', b'""', b"\0", b"\\"),
    *(b"\xff", b"\xff\xd8", b"\xef\xbb\xbf", b"{", b"}", b"[", b"]", b"null"),
    *(b"\\ud800", b"1e999", b"__eou__", b"\xff\xff\xff\xff", bytes(4)),
    *("\u2028".encode(), "\u00a0".encode(), b"\x1b[1m", b"data", b"fmt "),
    *(b"\x7f\xff\xff\xff", b"9" * 40, b" " * 9, b"IDAT", b"Exif\0\0"),
]


def files(count=12):
    """(kind, name, columns, content) of each."""
    pairs = [(f"source {n}", f"target {n}") for n in range(count)]
    labels = [(f"label {n % 2}", f"a text {n}") for n in range(count)]
    marked = "a {} __eou__ b __eou__ c __eou__\n"
    quoted = b'source\ttarget\n"so ""so"""\tb\n'
    records = [{"source": a, "target": b} for a, b in pairs]
    documents = [{"label": n % 2 + 0.0, "text": f"t {n}"} for n in range(count)]
    turns = [{"turns": [f"a {n}", "b", "c"]} for n in range(count)]
    tagged = [
        {"words": ["a", f"b{n}"], "tags": ["X", "Y"]} for n in range(count)
    ]
    word = "{}\tw {}\tl\tNOUN\t_\t_\t0\troot\t_\t_\n"
    nested = [{"translation": record} for record in records]
    inner = ("translation.source", "translation.target")
    found = [
        ("pairs", "a.tsv", (), rows(pairs, "\t")),
        ("pairs", "b.tsv", (), quoted + rows(pairs, "\t")),
        ("pairs", "a.csv", (), rows(pairs, ",")),
        ("pairs", "b.csv", ("2", "1"), rows(pairs, ";")),
        ("pairs", "a.jsonl", (), lines(records)),
        ("pairs", "b.jsonl", inner, lines(nested)),
        ("pairs", "a.json", (), json.dumps(records, indent=1).encode()),
        ("pairs", "a.parquet", inner, parquet(nested)),
        ("pairs", "a.arrow", inner, arrow(nested)),
        ("documents", "a.tsv", (), b"label\ttext\n" + rows(labels, "\t")),
        ("documents", "a.csv", (), b"label,text\n" + rows(labels, ",")),
        ("documents", "a.jsonl", (), lines(documents)),
        ("documents", "a.parquet", (), parquet(documents)),
        ("tags", "a.conll", (), numbered("a{} X\nb Y\n\n", count)),
        ("tags", "a.jsonl", (), lines(tagged)),
        ("tags", "a.parquet", (), parquet(tagged)),
        (
            *("tags", "a.conllu", ()),
            "".join(
                f"# {n}\n{word.format(1, n)}1-2\tx\n{word.format(2, n)}"
                f"3\t.\t.\tPUNCT" + 6 * "\t_" + "\n\n"
                for n in range(count)
            ).encode(),
        ),
        ("dialogues", "a.txt", (), numbered("a{}\nb\nc\n\n", count)),
        ("dialogues", "b.txt", (), numbered(marked, count)),
        ("dialogues", "a.jsonl", (), lines(turns)),
        ("text", "a.txt", (), b"a line of text\n" * count),
        ("text", "a.jsonl", (), lines(documents)),
        ("text", "a.csv", (), b"label,text\n" + rows(labels, ",")),
        ("captions", "a.tsv", (), rows(pairs, "\t")),
        ("captions", "a.jsonl", ("source", "target"), lines(records)),
        ("transcripts", "a.csv", (), b"path,sentence\n" + rows(pairs, ",")),
    ]
    compressions = (
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".zst", zstandard.compress),
    )
    found += [
        (kind, f"{name}{end}", columns, compress(content))
        for (kind, name, columns, content), (end, compress) in zip(
            found[::2], itertools.cycle(compressions), strict=False
        )
        if not name.endswith((".parquet", ".arrow"))
    ]
    return found + recordings() + pictures()


def numbered(text, count):
    return "".join(map(text.format, range(count))).encode()


def rows(pairs, between):
    return "".join(f"{a}{between}{b}\n" for a, b in pairs).encode()


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def parquet(records):
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), file)
    return file.getvalue()


def arrow(records):
    file = io.BytesIO()
    table = pyarrow.Table.from_pylist(records)
    with pyarrow.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    return file.getvalue()


def recordings():
    sound = tone(0.1)
    found = [("recording", "a.wav", (), wav(sound))]
    for name, kind, subtype in (
        ("24.wav", "WAV", "PCM_24"),
        ("float.wav", "WAV", "FLOAT"),
        ("ulaw.wav", "WAV", "ULAW"),
        ("adpcm.wav", "WAV", "MS_ADPCM"),
        ("a.flac", "FLAC", "PCM_16"),
        ("a.ogg", "OGG", "VORBIS"),
        ("a.mp3", "MP3", "MPEG_LAYER_III"),
        ("a.aiff", "AIFF", "PCM_16"),
        ("a.caf", "CAF", "PCM_16"),
    ):
        file = io.BytesIO()
        soundfile.write(file, sound, 8000, subtype, format=kind)
        found.append(("recording", name, (), file.getvalue()))
    return found


def pictures():
    pixels = np.random.default_rng(1).integers(0, 255, (24, 32, 3), np.uint8)
    picture, exif = Image.fromarray(pixels), Image.Exif()
    exif[0x0112] = 6
    found = []
    for name, kind, options in (
        ("a.jpg", "JPEG", {}),
        ("exif.jpg", "JPEG", {"exif": exif}),
        ("progressive.jpg", "JPEG", {"progressive": True, "exif": exif}),
        ("a.png", "PNG", {}),
        ("palette.png", "PNG", {}),
        ("a.gif", "GIF", {}),
        ("a.webp", "WEBP", {}),
    ):
        file = io.BytesIO()
        image = picture.convert("P") if name.startswith("pal") else picture
        image.save(file, kind, **options)
        found.append(("picture", name, (), file.getvalue()))
    return found


def changed(content, draw):
    """The same with up to six changes."""
    content = bytearray(content)
    # Most of what can be wrong is in a header.
    reach = len(content) if draw.random() < 0.6 else 64
    for _ in range(draw.randint(1, 6)):
        place = draw.randrange(min(len(content), reach) + 1)
        end = min(place + draw.choice((1, 2, 4, 30, 400)), len(content))
        change = draw.randrange(6)
        if change == 0:
            content[place:place] = draw.choice(SPECIAL)
        elif change == 1:
            content[place:end] = draw.choice(SPECIAL)
        elif change == 2:
            del content[place:end]
        elif change == 3:
            content[place:place] = content[place:end] * draw.choice((1, 3, 50))
        elif change == 4:
            content[place:end] = draw.randbytes(end - place)
        elif draw.random() < 0.3:
            del content[place:]
    return bytes(content)
