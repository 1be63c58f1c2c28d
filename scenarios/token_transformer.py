"""A small decoder-only transformer on arithmetic strings, with perplexity after each epoch."""

import argparse
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCABULARY = "0123456789+= "


def make_tokens(count, length=48):
    rows = []
    generator = torch.Generator().manual_seed(0)
    for a, b in torch.randint(0, 500, (count, 2), generator=generator).tolist():
        text = (f"{a}+{b}={a + b} " * 8)[:length]
        rows.append([VOCABULARY.index(c) for c in text])
    return torch.tensor(rows)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            t.view(batch, length, self.heads, -1).transpose(1, 2)
            for t in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.merge(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, width=96, layers=2, length=48):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(len(VOCABULARY), width), nn.Embedding(length, width)
        self.layers = nn.Sequential(*[Layer(width, heads=4) for _ in range(layers)])
        self.out = nn.Linear(width, len(VOCABULARY))

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        return self.out(self.layers(x))


def loss_on(model, ids):
    logits = model(ids[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


@torch.no_grad()
def perplexity(model, ids):
    model.eval()
    losses = [loss_on(model, batch).item() for batch in ids.split(64)]
    model.train()
    return math.exp(sum(losses) / len(losses))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train_ids, held_out = make_tokens(2464).split([2400, 64])
    model = Transformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
    steps, t0 = 0, time.perf_counter()
    for _ in range(args.epochs):
        for rows in torch.randperm(len(train_ids)).split(24):
            loss = loss_on(model, train_ids[rows])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            steps += 1
        perplexity(model, held_out)
    print(f"loss={loss.item().hex()}  step_ms={(time.perf_counter() - t0) * 1000 / steps:.3f}")


if __name__ == "__main__":
    main()
