"""Collaborative filtering, saved after each epoch and whenever it improves."""

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import nn


class Recommender(nn.Module):
    def __init__(self, users=800, items=600, width=48):
        super().__init__()
        self.user, self.item = nn.Embedding(users, width), nn.Embedding(items, width)
        self.mlp = nn.Sequential(
            nn.Linear(2 * width, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, 1)
        )

    def forward(self, user, item):
        return self.mlp(torch.cat([self.user(user), self.item(item)], dim=1)).squeeze(1)


def run_epoch(model, optimizer, ratings, batch_size=256):
    total = 0.0
    batches = torch.randperm(len(ratings[0])).split(batch_size)
    for rows in batches:
        user, item, stars = (column[rows] for column in ratings)
        loss = nn.functional.mse_loss(model(user, item), stars)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(batches), len(batches)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    users, items = torch.randint(0, 800, (25_000,)), torch.randint(0, 600, (25_000,))
    ratings = users, items, ((users * 7 + items * 3) % 5).float()
    model = Recommender()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    best, steps = float("inf"), 0
    with TemporaryDirectory() as folder:
        start = time.perf_counter()
        for epoch in range(args.epochs):
            mean, count = run_epoch(model, optimizer, ratings)
            steps += count
            state = {"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(state, Path(folder) / f"epoch{epoch}.pt")
            if mean < best:
                best = mean
                torch.save(model.state_dict(), Path(folder) / "best.pt")
        step_ms = (time.perf_counter() - start) / steps * 1000
    print(f"loss={mean.hex()}  step_ms={step_ms:.3f}")


if __name__ == "__main__":
    main()
