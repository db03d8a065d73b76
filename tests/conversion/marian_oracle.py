"""Small Marian models, made and answered by PyTorch and transformers.

    python tests/conversion/marian_oracle.py

writes `tests/conversion/marian.tar.xz`, which the tests read without PyTorch.
The slow tests make others, in a process of its own: PyTorch and TensorFlow
do not get on in one. `ORACLE_PYTHON` names a Python that has PyTorch,
transformers and sentencepiece, if that of the tests has not.
"""

import collections
import json
import random
import sys
import tarfile
import tempfile
from pathlib import Path

WORDS = {
    "eins": "one",
    "zwei": "two",
    "drei": "three",
    "vier": "four",
    "fünf": "five",
    "rote": "red",
    "grüne": "green",
    "Hunde": "dogs",
    "Katzen": "cats",
    "laufen": "run",
    "schlafen": "sleep",
}
# Also blank, with white space, of unknown words, decomposed, of another width.
SOURCES = [
    "zwei rote Hunde laufen",
    "drei grüne Katzen",
    "  Katzen   schlafen ",
    "",
    "unbekannte Wörter 123",
    "fünf \uff28unde",
    "eins",
    ">>eng<< vier rote Katzen laufen",
    "grüne",
]


def sentences(count, seed):
    """Pairs of sentences, word for word."""
    drawn = random.Random(seed)
    for _ in range(count):
        words = drawn.choices(list(WORDS), k=drawn.randint(1, 6))
        yield " ".join(words), " ".join(WORDS[word] for word in words)


def make(
    folder,
    *,
    seed=1,
    steps=0,
    activation="swish",
    legacy=None,
    separate=False,
):
    """Writes a model and what it answers.

    Args:
        folder: `pathlib.Path`, created.
        seed: int.
        steps: int, of training; a model that is not trained is random.
        activation: str.
        legacy: bool, whether `pytorch_model.bin` has the format before
            PyTorch 1.6; None for `model.safetensors`.
        separate: bool, whether source and target have two vocabularies and two
            embeddings.

    Returns:
        The folder, which has `expected.json` as well.
    """
    import sentencepiece
    import torch
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    pairs = list(sentences(400, seed))
    for side, lines in zip(
        ("source", "target"), zip(*pairs, strict=True), strict=True
    ):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_prefix=str(folder / side),
            vocab_size=40,
            hard_vocab_limit=False,
            model_type="unigram",
            normalization_rule_name="nmt_nfkc",
            minloglevel=2,
        )
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
        (folder / f"{side}.vocab").unlink()
    sides = {}
    for side in ("source", "target"):
        model = sentencepiece.SentencePieceProcessor(
            model_file=str(folder / f"{side}.spm")
        )
        sides[side] = [model.id_to_piece(i) for i in range(3, len(model))]
    languages = (">>eng<<", ">>fra<<")
    if separate:  # The ids of </s> and <pad> are the same in both.
        tail = sides["target"]
        vocabulary = ["</s>", "<unk>", "<pad>", *languages, *sides["source"]]
        target_ids = _numbered(["</s>", "<unk>", "<pad>", *tail])
        (folder / "target_vocab.json").write_text(
            json.dumps(target_ids), "utf-8"
        )
    else:
        pieces = [*dict.fromkeys([*sides["source"], *sides["target"]])]
        # It becomes UNK.
        pieces.remove("▁drei" if "▁drei" in pieces else pieces[7])
        random.Random(seed).shuffle(pieces)
        vocabulary = ["</s>", "<unk>", *languages, *pieces, "<pad>"]
        target_ids = _numbered(vocabulary)
    ids = _numbered(vocabulary)
    (folder / "vocab.json").write_text(json.dumps(ids), "utf-8")

    torch.manual_seed(seed)
    config = MarianConfig(
        vocab_size=len(ids),
        decoder_vocab_size=len(target_ids),
        share_encoder_decoder_embeddings=not separate,
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        activation_function=activation,
        scale_embedding=True,
        max_position_embeddings=64,
        pad_token_id=ids["<pad>"],
        eos_token_id=0,
        bos_token_id=0,
        forced_eos_token_id=0,
        decoder_start_token_id=ids["<pad>"],
        dropout=0.0,
        init_std=0.3 if not steps else 0.1,
    )
    model = MarianMTModel(config)
    tokenizer = MarianTokenizer(
        *(str(folder / f"{side}.spm") for side in ("source", "target")),
        str(folder / "vocab.json"),
        target_vocab_file=str(folder / "target_vocab.json"),
        separate_vocabs=separate,
    )
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("bias") or "norm" in name:
                weight += 0.1 * torch.randn_like(weight)
        model.final_logits_bias += 0.3 * torch.randn(1, len(target_ids))
        for stack in (model.model.encoder, model.model.decoder):
            stack.embed_tokens.weight[ids["<pad>"]] = 0.0
    if steps:
        _train(model, tokenizer, steps, seed)
    model.eval()
    generation = {
        "num_beams": 4,
        "max_length": 30,
        "bad_words_ids": [[ids["<pad>"]]],
    }
    model.generation_config.update(**generation)
    _write_answers(folder, model, tokenizer)
    model.save_pretrained(folder)
    if legacy is not None:
        weights = folder / "pytorch_model.bin"
        torch.save(
            model.state_dict(),
            weights,
            _use_new_zipfile_serialization=not legacy,
        )
        (folder / "model.safetensors").unlink()
    return folder


def answer(folder):
    """Writes what the model in a folder answers."""
    from transformers import MarianMTModel, MarianTokenizer

    model = MarianMTModel.from_pretrained(folder).eval()
    tokenizer = MarianTokenizer.from_pretrained(folder)
    _write_answers(folder, model, tokenizer)


def _write_answers(folder, model, tokenizer):
    expected = _answers(model, tokenizer)
    (folder / "expected.json").write_text(
        json.dumps(expected, ensure_ascii=False, indent=1), "utf-8"
    )


def _numbered(pieces):
    return {piece: number for number, piece in enumerate(pieces)}


def _train(model, tokenizer, steps, seed):
    import torch

    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    data = list(sentences(steps * 16, seed + 1))
    for step in range(steps):
        sources, targets = zip(*data[16 * step : 16 * step + 16], strict=True)
        batch = tokenizer(
            list(sources),
            text_target=list(targets),
            return_tensors="pt",
            padding=True,
        )
        labels = batch["labels"]
        labels[labels == tokenizer.pad_token_id] = -100
        optimizer.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}", file=sys.stderr)


def _answers(model, tokenizer):
    """Ids, logits of forced targets, and answers of both searches."""
    import torch

    found = []
    for text in SOURCES:
        batch = tokenizer([text], return_tensors="pt")
        target = tokenizer(text_target=["two red dogs"], return_tensors="pt")
        given = target["input_ids"]
        with torch.no_grad():
            logits = model(**batch, labels=given).logits[0]
            greedy = model.generate(**batch, num_beams=1)
            beam = model.generate(**batch, num_beams=4)
        found.append(
            {
                "source": text,
                "source_ids": batch["input_ids"][0].tolist(),
                "target": "two red dogs",
                "target_ids": given[0].tolist(),
                "logits": [
                    [round(value, 5) for value in row]
                    for row in logits.tolist()
                ],
                "greedy": tokenizer.decode(greedy[0], skip_special_tokens=True),
                "beam": tokenizer.decode(beam[0], skip_special_tokens=True),
            }
        )
    return found


def make_archive(path):
    """Writes what the tests read without PyTorch."""
    import torch
    from safetensors.torch import save_file

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder / "trained", steps=300)
        row = torch.arange(10.0)
        table = torch.arange(6.0).reshape(2, 3)
        halves = torch.tensor([1.5, -2])
        tensors = collections.OrderedDict(
            table=table,
            transposed=table.T,
            half=halves.half(),
            bfloat=halves.bfloat16(),
            number=torch.tensor([3]),
            part=row[3:7:2],
        )
        torch.save(tensors, folder / "zip.bin")
        legacy = {"_use_new_zipfile_serialization": False}
        torch.save(tensors, folder / "legacy.bin", **legacy)
        copies = {key: each.clone() for key, each in tensors.items()}
        copies["transposed"] = table.T.contiguous()
        save_file(copies, folder / "tiny.safetensors")
        with tarfile.open(path, "w:xz") as archive:
            for each in sorted(folder.iterdir()):
                archive.add(each, each.name)


if __name__ == "__main__":
    if sys.argv[2:]:
        make(Path(sys.argv[1]), **json.loads(sys.argv[2]))
    elif sys.argv[1:]:
        answer(Path(sys.argv[1]))
    else:
        make_archive(Path(__file__).with_name("marian.tar.xz"))
