"""Learn an embedding with a contrastive loss, then report nearest neighbours of every item."""

import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(100, 1024), nn.GELU(), nn.Linear(1024, 512), nn.GELU(), nn.Linear(512, 64)
        )

    def forward(self, x):
        return F.normalize(self.layers(x), dim=1)


def contrastive(a, b, temperature=0.1):
    similarity = a @ b.T / temperature
    return F.cross_entropy(similarity, torch.arange(len(a)))


def recall_at_5(embeddings, groups):
    vectors, hits = embeddings.tolist(), 0
    for i, query in enumerate(vectors):
        scored = []
        for j, other in enumerate(vectors):
            if i != j:
                scored.append((sum(p * q for p, q in zip(query, other)), j))
        nearest = sorted(scored, reverse=True)[:5]
        hits += any(groups[j] == groups[i] for _, j in nearest)
    return hits / len(vectors)


def recall_at_5_matrix(embeddings, groups):
    similarity = embeddings @ embeddings.T
    similarity.fill_diagonal_(-2)
    nearest = similarity.topk(5, dim=1).indices
    groups = torch.tensor(groups)
    return (groups[nearest] == groups[:, None]).any(dim=1).float().mean().item()


def train(items, steps):
    encoder = Encoder()
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-3)
    start = time.perf_counter()
    for _ in range(steps):
        rows = torch.randint(0, len(items), (96,))
        first = encoder(items[rows] + 0.2 * torch.randn(96, 100))
        second = encoder(items[rows] + 0.2 * torch.randn(96, 100))
        loss = contrastive(first, second)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return encoder, loss.item(), (time.perf_counter() - start) / steps * 1000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    groups = [i % 250 for i in range(args.items)]
    items = torch.randn(250, 100)[groups] + 0.5 * torch.randn(args.items, 100)
    encoder, loss, step_ms = train(items, args.steps)
    with torch.no_grad():
        embeddings = encoder(items)
    if args.cured:
        recall_at_5_matrix(embeddings, groups)
    else:
        recall_at_5(embeddings, groups)
    print(f"loss={loss.hex()}  step_ms={step_ms:.3f}")


if __name__ == "__main__":
    main()
