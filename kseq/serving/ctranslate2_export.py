"""Export to CTranslate2's format."""

from pathlib import Path
from typing import Any

import kseq
from kseq.control_tokens import END, START, UNK
from kseq.files.new_folder import new_folder
from kseq.serving.check_transformer import check_transformer
from kseq.serving.ctranslate2_spec import ctranslate2_spec
from kseq.serving.generator import Generator

_README = """\
# {name}

A Transformer in CTranslate2's format, from kseq {version}.

```python
import ctranslate2, sentencepiece

folder = "."  # of this file
model = ctranslate2.Translator(folder)
source = sentencepiece.SentencePieceProcessor(f"{{folder}}/source.model")
target = sentencepiece.SentencePieceProcessor(f"{{folder}}/target.model")
pieces = source.encode(["a text"], out_type=str)
answers = model.translate_batch(
    pieces,
    beam_size={beam_size},
    length_penalty={length_penalty:g},
    max_input_length={most_read},
    max_decoding_length={most_written},
)
print([target.decode(answer.hypotheses[0]) for answer in answers])
```

Before this, kseq removes carriage returns, and ASCII white space at both ends
of a text; U+FDD0 and U+FDD1 become U+FFFD, and a text of white space and
characters without width alone becomes empty. All other characters pass through
SentencePiece as they do in kseq.

`Translator(..., compute_type="int8")` computes in 8 bits from the same files.
CTranslate2 ends a beam earlier than kseq does, and divides scores by another
power of the length, so some answers differ.
"""


def export_ctranslate2(generator: Generator, directory: Path) -> Path:
    """Writes a Transformer in CTranslate2's format.

    The folder holds weights in float32, vocabularies, the tokenizers as
    `source.model` and `target.model`, and a README. It appears atomically.

    Args:
        generator: `kseq.serving.Generator`.
        directory: `pathlib.Path` of a folder that does not exist.

    Returns:
        `directory`.

    Raises:
        UserError: if it is not a Transformer from text to text, or the folder
            exists or cannot be written.
        DiskError: if the disk is full.
    """
    spec = checked_spec(generator)
    with new_folder(directory) as folder:
        write_ctranslate2(spec, generator, folder, directory.name)
    return directory


def checked_spec(generator: Generator) -> Any:
    """A model for `write_ctranslate2`; UserError if CTranslate2 has no such."""
    check_transformer(
        *(generator, "CTranslate2"),
        norm=("pre", "post"),
        positions=("sinusoidal", "learned", "rotary", "none"),
    )
    preprocessor: Any = generator.preprocessor  # of text
    spec = ctranslate2_spec(
        generator.model, max(generator.max_length, preprocessor.max_length)
    )
    tokenizers = generator.tokenizers
    spec.register_source_vocabulary(_pieces(tokenizers["source"]))
    target = _pieces(tokenizers["target"])
    spec.register_target_vocabulary(target)
    spec.config.unk_token = target[UNK]
    spec.config.bos_token = spec.config.decoder_start_token = target[START]
    spec.config.eos_token = target[END]
    spec.config.add_source_eos = generator.model.source_end
    spec.validate()
    spec.optimize()
    return spec


def write_ctranslate2(
    spec: Any, generator: Generator, folder: Path, name: str
) -> None:
    """Writes the files of a model into a folder, with its name in the README.

    Raises:
        OSError: if they cannot be written.
    """
    spec.save(str(folder))
    for side in ("source", "target"):
        model = generator.tokenizers[side].model
        (folder / f"{side}.model").write_bytes(model)
    preprocessor: Any = generator.preprocessor
    readme = _README.format(
        name=name,
        version=kseq.__version__,
        beam_size=getattr(generator.search, "beam_size", 1),
        length_penalty=getattr(generator.search, "length_penalty", 1.0),
        most_read=preprocessor.max_length,
        most_written=generator.max_length - 1,
    )
    (folder / "README.md").write_text(readme, "utf-8")


def _pieces(tokenizer):
    pieces = tokenizer.pieces(range(tokenizer.vocab_size)).numpy()
    return [piece.decode() for piece in pieces]
