"""Time to a loss: TransformerLM beside a GPT of the same sizes in PyTorch.

python tests/benchmarks/language_model.py shakespeare.txt --torch PYTHON

The sizes and the schedule of the GPT are those that nanoGPT recommends for a
laptop: 4 blocks, width 128, 4 heads, 64 characters, batches of 12, 2,000
steps, AdamW at 0.001 with a cosine. TransformerLM has the same sizes, and the
optimizer of `write_text`. Both are trained in turn, each in a process of its
own, on the same nine tenths of the text; the loss is that of the whole rest,
in rows of 64. Times leave out the evaluations and the first 10 steps.

PYTHON is an interpreter that has torch; by default the one of this script.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))

LAYERS, DIM, HEADS, LENGTH, BATCH = 4, 128, 4, 64, 12
STEPS, EVERY, WARMUP, UNTIMED = 2000, 250, 100, 10


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--torch", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--part", choices=("gpt", "kseq"))
    options = parser.parse_args()
    if options.part:
        train = {"gpt": train_gpt, "kseq": train_kseq}[options.part]
        text = options.text.read_text("utf-8")
        cut = int(0.9 * len(text))
        for row in train(text[:cut], text[cut:], options):
            print(json.dumps(row), flush=True)
        return

    found = {
        "gpt": list(measured(options, "gpt", options.torch)),
        "kseq": list(measured(options, "kseq", sys.executable)),
    }
    aim = found["gpt"][-1]["loss"]
    seconds = {
        name: next((r["seconds"] for r in rows if r["loss"] <= aim), math.nan)
        for name, rows in found.items()
    }
    print(f"\nto the loss {aim:.4f}, seconds: ", end="")
    print(", ".join(f"{name} {value:.1f}" for name, value in seconds.items()))
    print(f"kseq / gpt: {seconds['kseq'] / seconds['gpt']:.2f}")
    steps = [rows[-1]["seconds"] / rows[-1]["step"] for rows in found.values()]
    print("milliseconds a step:", *(f"{1000 * step:.1f}" for step in steps))


def measured(options, part, python):
    """The rows of one training, as they come."""
    command = [python, __file__, str(options.text), "--part", part]
    for name in ("threads", "seed", "steps"):
        command += [f"--{name}", str(getattr(options, name))]
    environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        for line in process.stdout:
            row = json.loads(line)
            print(part, " ".join(f"{k}={v:.4g}" for k, v in row.items()))
            yield row
    if process.returncode:
        sys.exit(f"{part} ended with {process.returncode}.")


def timed(step, evaluate, steps):
    """Rows of step, seconds and loss; `step` is called with its number."""
    seconds = 0.0
    for number in range(1, steps + 1):
        start = time.perf_counter()
        step(number)
        seconds += (time.perf_counter() - start) * (number > UNTIMED)
        if number % EVERY == 0 or number == steps:
            whole = seconds * number / max(number - UNTIMED, 1)
            yield {"step": number, "seconds": whole, "loss": evaluate()}


def train_gpt(train, validation, options):
    import torch
    from torch import nn
    from torch.nn import functional

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    characters = sorted({*train, *validation})
    number_of = {character: i for i, character in enumerate(characters)}

    def ids(text):
        return torch.tensor([number_of[character] for character in text])

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(DIM) for _ in range(2)])
            self.attend = nn.Linear(DIM, 3 * DIM)
            self.project = nn.Linear(DIM, DIM)
            self.widen = nn.Linear(DIM, 4 * DIM)
            self.narrow = nn.Linear(4 * DIM, DIM)

        def forward(self, x):
            batch, length, _ = x.shape
            parts = self.attend(self.norms[0](x)).split(DIM, dim=2)
            heads = (batch, length, HEADS, DIM // HEADS)
            q, k, v = (part.view(heads).transpose(1, 2) for part in parts)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.project(y.transpose(1, 2).reshape(x.shape))
            hidden = functional.gelu(self.widen(self.norms[1](x)))
            return x + self.narrow(hidden)

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(len(characters), DIM)
            self.place = nn.Embedding(LENGTH, DIM)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.norm = nn.LayerNorm(DIM)
            for name, weights in self.named_parameters():
                if weights.dim() == 2:
                    last = name.endswith(("project.weight", "narrow.weight"))
                    shrunk = (2 * LAYERS) ** 0.5 if last else 1.0
                    nn.init.normal_(weights, std=0.02 / shrunk)
                elif name.endswith("bias"):
                    nn.init.zeros_(weights)

        def forward(self, ids):
            x = self.embed(ids) + self.place.weight[: ids.shape[1]]
            for block in self.blocks:
                x = block(x)
            return self.norm(x) @ self.embed.weight.T

    model, data = GPT(), ids(train)
    matrices = [w for w in model.parameters() if w.dim() == 2]
    others = [w for w in model.parameters() if w.dim() != 2]
    optimizer = torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": 0.1},
            {"params": others, "weight_decay": 0.0},
        ],
        lr=1e-3,
        betas=(0.9, 0.99),
    )

    def rate(step):
        if step < WARMUP:
            return step / WARMUP
        done = (step - WARMUP) / max(options.steps - WARMUP, 1)
        return 0.1 + 0.45 * (1 + math.cos(math.pi * done))

    def step(number):
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * rate(number)
        starts = torch.randint(len(data) - LENGTH, (BATCH,))
        rows = data[starts[:, None] + torch.arange(LENGTH + 1)]
        logits = model(rows[:, :-1])
        loss = functional.cross_entropy(
            logits.flatten(0, 1), rows[:, 1:].flatten()
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    held_out = ids(validation)

    @torch.no_grad()
    def evaluate():
        total = 0.0
        for start in range(0, len(held_out) - 1, LENGTH):
            row = held_out[start : start + LENGTH + 1][None]
            logits = model(row[:, :-1])[0]
            total += functional.cross_entropy(
                logits, row[0, 1:], reduction="sum"
            ).item()
        return total / (len(held_out) - 1)

    return timed(step, evaluate, options.steps)


def train_kseq(train, validation, options):
    os.environ["TF_NUM_INTRAOP_THREADS"] = str(options.threads)
    from kseq.process import start_keras

    start_keras()
    import keras

    from kseq import data, models, training
    from kseq.training.optimizer import ema_weights
    from recipes.write_text import Config

    keras.utils.set_random_seed(options.seed)
    lines = data.TextCorpus([train], [], []).lines()
    tokenizer = data.Tokenizer.train(lines, 8000, "char", verbatim=True)
    batches = data.running_text_batches(
        data.running_ids([train], tokenizer),
        batch_size=BATCH,
        length=LENGTH,
        seed=options.seed,
    )
    model = models.TransformerLM(
        tokenizer.vocab_size,
        num_layers=LAYERS,
        model_dim=DIM,
        ffn_dim=4 * DIM,
        num_heads=HEADS,
        max_length=LENGTH,
    )
    config = Config(steps=options.steps, warmup_steps=WARMUP)
    training.compile_model(model, config, beta_2=0.99)
    model.make_train_function()
    iterator = iter(batches)
    ids = data.running_ids([validation], tokenizer)[1:-1]
    held_out = data.running_text_evaluation(ids, batch_size=32, length=LENGTH)

    def evaluate():
        with ema_weights(model):
            return model.evaluate(held_out, verbose=0, return_dict=True)["loss"]

    def step(number):
        model.train_function(iterator)

    return timed(step, evaluate, options.steps)


if __name__ == "__main__":
    main()
