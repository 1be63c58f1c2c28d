"""Train a language model on sentences that stay in memory as Python objects."""
import argparse
import gc
import random
import time

import torch
from torch import nn


class Token:
    __slots__ = ("neighbours", "word")

    def __init__(self, word, neighbours):
        self.word, self.neighbours = word, neighbours


def load_corpus(sentences, length, words=3000):
    rng = random.Random(0)
    corpus = []
    for _ in range(sentences):
        ids = [rng.randrange(words)]
        while len(ids) < length:
            ids.append((ids[-1] * 7 + rng.randrange(3)) % words)
        corpus.append([Token(w, [w]) for w in ids])
    return corpus


class NextWord(nn.Module):
    def __init__(self, words=3000, width=128):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.out = nn.Linear(width, words)

    def forward(self, ids):
        h, _ = self.lstm(self.embed(ids))
        return self.out(h)


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--steps", type=int, default=38)
    cli.add_argument("--cured", action="store_true")
    args = cli.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rng = random.Random(1)

    corpus = load_corpus(sentences=28_000, length=24)
    model = NextWord()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()

    t0 = time.perf_counter()
    for step in range(args.steps):
        batch = torch.tensor([[token.word for token in rng.choice(corpus)] for _ in range(16)])
        logits = model(batch[:, :-1])
        loss = criterion(logits.transpose(1, 2), batch[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not args.cured:
            del logits
            gc.collect()
    step_ms = (time.perf_counter() - t0) * 1000 / args.steps
    print(f"loss={loss.item().hex()}  step_ms={step_ms:.3f}")


if __name__ == "__main__":
    main()
