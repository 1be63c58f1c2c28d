"""Find fraud in a table; the area under the curve of the last 100 batches is kept up to date on the host."""

import argparse
import time
from collections import deque

import numpy as np
import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class RunningScore:
    def __init__(self, window=100):
        self.scores, self.labels = deque(maxlen=window), deque(maxlen=window)

    def add(self, logits, labels):
        self.scores.append(logits.detach().cpu().numpy())
        self.labels.append(labels.cpu().numpy())

    def area_under_curve(self):
        scores, labels = np.concatenate(self.scores), np.concatenate(self.labels)
        ranks = np.argsort(np.argsort(scores)) + 1
        frauds = int(labels.sum())
        honest = len(labels) - frauds
        wins = ranks[labels == 1].sum() - frauds * (frauds + 1) / 2
        return wins / max(1, frauds * honest)


def main(steps, score_every):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    table = torch.randn(20_000, 64, device=device)
    fraud = (table[:, 0] * table[:, 1] + table[:, 2] > 1.2).float()
    model = nn.Sequential(
        nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1)
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    score = RunningScore()
    start = time.perf_counter()
    for step in range(1, steps + 1):
        rows = torch.randint(0, len(table), (256,), device=device)
        logits = model(table[rows]).squeeze(1)
        loss = criterion(logits, fraud[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        score.add(logits, fraud[rows])
        if step % score_every == 0:
            area = score.area_under_curve()
    print(f"{steps} steps: area {area:.3f}, {steps / (time.perf_counter() - start):.0f} steps/s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=900)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    main(args.steps, score_every=100 if args.cured else 1)
