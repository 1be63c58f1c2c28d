"""Fraud detection on a table; the recent AUC, F1 and confusion matrix are kept up to date."""

import argparse
import time
from collections import deque

import numpy as np
import torch
from torch import nn


def roc_auc(labels, scores):
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    positives = labels == 1
    n_pos, n_neg = positives.sum(), (~positives).sum()
    if n_pos == 0 or n_neg == 0:
        return 0.5
    return (ranks[positives].sum() - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg)


def best_f1(labels, scores):
    best = 0.0
    for threshold in np.linspace(0.05, 0.95, 37):
        predicted = scores > threshold
        tp = np.sum(predicted & (labels == 1))
        fp = np.sum(predicted & (labels == 0))
        fn = np.sum(~predicted & (labels == 1))
        best = max(best, 2 * tp / max(1, 2 * tp + fp + fn))
    return best


def confusion(labels, scores):
    matrix = np.zeros((2, 2), dtype=np.int64)
    np.add.at(matrix, (labels.astype(int), (scores > 0.5).astype(int)), 1)
    return matrix


class RunningMetrics:
    def __init__(self, window=80):
        self.labels, self.scores = deque(maxlen=window), deque(maxlen=window)

    def add(self, logits, labels):
        self.scores.append(torch.sigmoid(logits).detach().cpu().numpy())
        self.labels.append(labels.cpu().numpy())

    def compute(self):
        labels, scores = np.concatenate(self.labels), np.concatenate(self.scores)
        return {
            "auc": roc_auc(labels, scores),
            "f1": best_f1(labels, scores),
            "cm": confusion(labels, scores),
        }


class FraudNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, 512),
            nn.BatchNorm1d(512),
            nn.ReLU(),
            nn.Linear(512, 512),
            nn.BatchNorm1d(512),
            nn.ReLU(),
            nn.Linear(512, 1),
        )

    def forward(self, x):
        return self.layers(x).squeeze(1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=900)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(8)
    torch.set_num_threads(1)

    x = torch.randn(20_000, 64)
    y = ((x[:, 0] * x[:, 1] + x[:, 2] + 0.3 * torch.randn(20_000)) > 1.2).float()
    net = FraudNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    metrics = RunningMetrics()
    metrics_every = 100 if args.cured else 1

    start = time.perf_counter()
    for step in range(1, args.steps + 1):
        rows = torch.randint(0, len(x), (256,))
        logits = net(x[rows])
        loss = criterion(logits, y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        metrics.add(logits, y[rows])
        if step % metrics_every == 0:
            summary = metrics.compute()
    step_ms = 1e3 * (time.perf_counter() - start) / args.steps
    print(f"loss={loss.item().hex()}  step_ms={step_ms:.3f}")
