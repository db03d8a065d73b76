"""Decoding speed of a Transformer's export beside CTranslate2 and LiteRT.

    python tests/benchmarks/serving_speed.py RUN SOURCE REFERENCE

RUN is exported as a SavedModel, and for CTranslate2 and LiteRT. Each contender
answers the lines of SOURCE in a process of its own, in turn, text to text:

- the served signature, of weights stored in float32, bfloat16 and int8, and
  CTranslate2 in float32 and int8: lines sorted by length, in batches of 32;
- the first of them in a program that leaves TensorFlow's threads as they are;
- `kseq.load(PATH)(lines)`, what `kseq predict` does with a file, without its
  start, and CTranslate2 with batches of 4,096 tokens of its own making;
- the command `kseq predict` with its start;
- the Python in the README of a LiteRT export, one line at a time on one
  processor, of weights in float32, float16 and int8;
- the served signature of `--against EXPORT/VERSION`, such as that of an earlier
  version of kseq.

CTranslate2 does not run an LSTM, LiteRT may not be installed: choose the
contenders by `--only`. It ends a
search when the beam has as many finished answers as its size, which is
`--patience 1` here.

Prints sentences and tokens of the target tokenizer a second (medians), their
ratio to the first contender, BLEU, the share of answers equal to those of the
served signature, the latency of single lines, the peak of memory and the size
of the export.
"""

import argparse
import multiprocessing
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_BATCH, _SINGLE = 32, 50
_KSEQ = [sys.executable, "-m", "kseq"]


class Signature:
    """`serving_default` in batches of 32 lines, with the threads of `serve`."""

    folder = "saved_model"

    def __init__(self, folders, options):
        from kseq.process import start_keras

        start_keras(for_search=True)
        self.load(folders)

    def load(self, folders):
        import tensorflow as tf
        import tensorflow_text  # noqa: F401, the operations of tokenizers

        self.constant = tf.constant
        self.model = tf.saved_model.load(str(folders[self.folder]))
        self.signature = self.model.signatures["serving_default"]

    def __call__(self, lines):
        return in_batches(lines, self.batch)

    def batch(self, lines):
        texts = self.signature(text=self.constant(lines))["text"].numpy()
        return [text.decode() for text in texts]


class Bare(Signature):
    """With TensorFlow's own threads, as in any program that loads it."""

    def __init__(self, folders, options):
        self.load(folders)


class BFloat16(Signature):
    folder = "bfloat16"


class Int8(Signature):
    folder = "int8"


class Against(Signature):
    folder = "against"


class File:
    """What `kseq predict` does with a file."""

    folder = "saved_model"

    def __init__(self, folders, options):
        import kseq
        from kseq.process import start_keras

        start_keras(for_search=True)  # as the command does
        self.predictor = kseq.load(folders["saved_model"])

    def __call__(self, lines):
        return list(self.predictor(lines))

    batch = __call__


class Command:
    """`kseq predict`, from its start to its end."""

    folder = "saved_model"
    batch = None

    def __init__(self, folders, options):
        self.command = [*_KSEQ, "predict", str(folders["saved_model"])]

    def __call__(self, lines):
        text = "".join(f"{line}\n" for line in lines).encode()
        done = subprocess.run(
            self.command, input=text, stdout=subprocess.PIPE, check=True
        )
        return done.stdout.decode().split("\n")[:-1]


class CTranslate2:
    """In batches of 32 lines, or of its own making."""

    folder = "ctranslate2"
    compute_type, own_batches = "float32", False

    def __init__(self, folders, options):
        import ctranslate2
        import sentencepiece

        folder = str(folders["ctranslate2"])
        self.beam_size = 1 if options.greedy else options.beam_size
        self.model = ctranslate2.Translator(
            folder,
            compute_type=self.compute_type,
            intra_threads=options.threads,
        )
        self.source, self.target = (
            sentencepiece.SentencePieceProcessor(f"{folder}/{side}.model")
            for side in ("source", "target")
        )

    def __call__(self, lines):
        if self.own_batches:
            return self.batch(lines, max_batch_size=4096, batch_type="tokens")
        return in_batches(lines, self.batch)

    def batch(self, lines, **options):
        answers = self.model.translate_batch(
            self.source.encode(lines, out_type=str),
            beam_size=self.beam_size,
            **options,
        )
        return self.target.decode([a.hypotheses[0] for a in answers])


class CTranslate2Int8(CTranslate2):
    compute_type = "int8"


class CTranslate2File(CTranslate2):
    own_batches = True


class LiteRT:
    """What the README of the export does."""

    folder = "litert"

    def __init__(self, folders, options):
        os.chdir(folders[self.folder])
        readme = Path("README.md").read_text("utf-8")
        names = {}
        exec(re.search("```python\n(.*?)```", readme, re.S)[1], names)
        self.answer = names["answer"]

    def batch(self, lines):
        return list(map(self.answer, lines))

    __call__ = batch


class LiteRTFloat16(LiteRT):
    folder = "litert_float16"


class LiteRTInt8(LiteRT):
    folder = "litert_int8"


_LITERT = ["--format", "litert"]
EXPORTS = {
    "saved_model": [],
    "bfloat16": ["--quantize", "bfloat16"],
    "int8": ["--quantize", "int8"],
    "ctranslate2": ["--format", "ctranslate2"],
    "litert": _LITERT,
    "litert_float16": [*_LITERT, "--quantize", "float16"],
    "litert_int8": [*_LITERT, "--quantize", "int8"],
}

CONTENDERS = {
    "CTranslate2, float32": CTranslate2,
    "served signature": Signature,
    "the same, bare": Bare,
    "CTranslate2, int8": CTranslate2Int8,
    "CTranslate2, a file": CTranslate2File,
    "kseq, a file": File,
    "stored in bfloat16": BFloat16,
    "stored in int8": Int8,
    "kseq predict": Command,
    "LiteRT": LiteRT,
    "LiteRT, float16": LiteRTFloat16,
    "LiteRT, int8": LiteRTInt8,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--beam-size", type=int, default=5)
    parser.add_argument("--patience", type=float, help="of kseq's beam search")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--greedy", action="store_true")
    parser.add_argument("--threads", type=int, default=2, help="of CTranslate2")
    parser.add_argument("--against", type=Path, metavar="EXPORT/VERSION")
    parser.add_argument(
        "--only", nargs="+", choices=CONTENDERS, default=list(CONTENDERS)
    )
    options = parser.parse_args()
    contenders = {name: CONTENDERS[name] for name in options.only}
    if options.against:
        contenders[str(options.against)] = Against
    lines = options.source.read_text("utf-8").splitlines()
    references = options.reference.read_text("utf-8").splitlines()

    with tempfile.TemporaryDirectory() as folder:
        kinds = {contender.folder for contender in contenders.values()}
        folders = exported(options, Path(folder), kinds)
        workers = {
            name: Worker(contender, folders, options)
            for name, contender in contenders.items()
        }
        for worker in workers.values():
            worker("all", lines)  # warm
        found = {name: [] for name in workers}
        for _ in range(options.rounds):
            for name, worker in workers.items():
                found[name].append(worker("all", lines))
        singles = {
            name: worker("single", lines[:_SINGLE])[0]
            for name, worker in workers.items()
        }
        peaks = {
            name: worker("end", None)[0] for name, worker in workers.items()
        }
        sizes = {
            name: size_of(folders[contender.folder])
            for name, contender in contenders.items()
        }
    facts = singles, peaks, sizes
    show(found, facts, references, token_counter(options.run))


def exported(options, folder, kinds):
    """The exports that are needed, by their kinds."""
    command = [*_KSEQ, "export", str(options.run)]
    if options.greedy:
        command += ["--greedy"]
    else:
        command += ["--beam-size", str(options.beam_size)]
    folders = {"against": options.against}
    for kind in kinds - {"against"}:
        to = folder / kind
        search = command
        if kind != "ctranslate2" and options.patience is not None:
            search = [*command, "--patience", str(options.patience)]
        has_versions = "--format" not in EXPORTS[kind]
        folders[kind] = to / "1" if has_versions else to
        subprocess.run([*search, *EXPORTS[kind], "--to", str(to)], check=True)
    return folders


def size_of(folder):
    """The bytes of its files."""
    files = filter(Path.is_file, folder.rglob("*"))
    return sum(file.stat().st_size for file in files)


def token_counter(run):
    """A function, texts -> tokens of the target tokenizer, without END."""
    import sentencepiece

    from kseq.runs import RunDirectory

    model = RunDirectory(run).tokenizer("target").read_bytes()
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return lambda texts: sum(map(len, processor.encode(texts)))


def in_batches(lines, answer):
    """Answers in the order of the lines, which are sorted by length."""
    order = sorted(range(len(lines)), key=lambda i: len(lines[i]))
    answers = [None] * len(lines)
    for start in range(0, len(order), _BATCH):
        places = order[start : start + _BATCH]
        found = answer([lines[place] for place in places])
        for place, text in zip(places, found, strict=True):
            answers[place] = text
    return answers


class Worker:
    """A contender in a process of its own."""

    def __init__(self, *arguments):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        process = context.Process(
            target=_work, args=(theirs, *arguments), daemon=True
        )
        process.start()

    def __call__(self, *message):
        self.pipe.send(message)
        return self.pipe.recv()


def _work(pipe, contender, folders, options):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    answer = contender(folders, options)
    while True:
        kind, lines = pipe.recv()
        if kind == "end":
            who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
            most = max(resource.getrusage(each).ru_maxrss for each in who)
            pipe.send((most / 1024, None))
            return
        if kind == "single" and answer.batch is None:
            pipe.send((float("nan"), None))
            continue
        if kind == "single":
            times = []
            for line in lines:
                start = time.perf_counter()
                answer.batch([line])
                times.append(time.perf_counter() - start)
            pipe.send((statistics.median(times), None))
            continue
        start = time.perf_counter()
        answers = answer(lines)
        pipe.send((time.perf_counter() - start, answers))


def show(found, facts, references, count_tokens):
    import sacrebleu

    singles, peaks, sizes = facts

    seconds = {
        name: statistics.median(s for s, _ in rounds)
        for name, rounds in found.items()
    }
    answers = {name: rounds[0][1] for name, rounds in found.items()}
    first, other = next(iter(found)), "served signature"
    print(
        f"{'':22} {'lines/s':>8} {'tokens/s':>8} {'ratio':>6} {'BLEU':>6} "
        f"{'equal':>6} {'one line':>9} {'memory':>9} {'size':>9}"
    )
    for name, texts in answers.items():
        bleu = sacrebleu.corpus_bleu(texts, [references]).score
        tokens = count_tokens(texts)
        equal = sum(
            a == b
            for a, b in zip(texts, answers.get(other, texts), strict=True)
        )
        print(
            f"{name:22} {len(texts) / seconds[name]:8.1f} "
            f"{tokens / seconds[name]:8.0f} "
            f"{seconds[first] / seconds[name]:6.2f} {bleu:6.2f} "
            f"{equal / len(texts):6.1%} {1000 * singles[name]:6.1f} ms "
            f"{peaks[name]:5.0f} MiB {sizes[name] / 2**20:5.1f} MiB"
        )


if __name__ == "__main__":
    main()
