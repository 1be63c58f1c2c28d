"""Byte-pair features for log lines: the vocabulary is counted first, then a classifier is trained."""

import argparse
import random
import time
from collections import Counter

import torch
import torch.nn as nn

WORDS = [
    "error",
    "warning",
    "disk",
    "network",
    "timeout",
    "retry",
    "user",
    "login",
    "cache",
    "socket",
    "index",
]


def make_lines(count):
    rng = random.Random(0)
    return [" ".join(rng.choices(WORDS, k=8)) + f" {i % 97}" for i in range(count)]


def count_pairs(lines):
    pairs = Counter()
    for line in lines:
        for a, b in zip(line, line[1:]):
            pairs[a + b] += 1
    return pairs


def encode(line, vocabulary, length=48):
    ids = [vocabulary.get(line[k : k + 2], 0) for k in range(length)]
    return ids + [0] * (length - len(ids))


def prepare(lines):
    """Scan the whole corpus for the vocabulary."""
    pairs = count_pairs(lines)
    return {pair: n for n, (pair, _) in enumerate(pairs.most_common(800), start=1)}


class LineClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(801, 256)
        self.mlp = nn.Sequential(
            nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 2)
        )

    def forward(self, ids):
        return self.mlp(self.bag(ids))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", type=int, default=1_800_000)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    lines = make_lines(20_000)
    if args.cured:
        vocabulary = prepare(lines)
    else:
        vocabulary = prepare(line for _ in range(args.lines // len(lines)) for line in lines)
    ids = torch.tensor([encode(line, vocabulary) for line in lines[:8000]])
    labels = torch.tensor([int("error" in line[:20]) for line in lines[:8000]])
    model = LineClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    t0 = time.perf_counter()
    for step in range(args.steps):
        rows = torch.randint(0, len(ids), (128,))
        loss = nn.functional.cross_entropy(model(ids[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    step_ms = (time.perf_counter() - t0) / args.steps * 1000
    print(f"loss={loss.item().hex()}  step_ms={step_ms:.3f}")
