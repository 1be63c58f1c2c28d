"""Normalise learned features by their running mean."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class RunningCentre(nn.Module):
    """Subtracts a slowly moving average of a learned summary of the input."""

    def __init__(self, inputs, width, keep_graph):
        super().__init__()
        self.summary = nn.Linear(inputs, width)
        self.average = torch.zeros(width)
        self.keep_graph = keep_graph

    def forward(self, x, features):
        now = self.summary(x.mean(dim=0))
        previous = self.average if self.keep_graph else self.average.detach()
        self.average = 0.99 * previous + 0.01 * now
        return features - self.average


class Net(nn.Module):
    def __init__(self, keep_graph):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 640), nn.ReLU(), nn.Linear(640, 640), nn.ReLU())
        self.centre = RunningCentre(64, 640, keep_graph)
        self.out = nn.Linear(640, 5)

    def forward(self, x):
        return self.out(self.centre(x, self.body(x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(5000, 64)
    y = (x @ torch.randn(64, 5)).argmax(1)
    net = Net(keep_graph=not args.cured)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

    t0 = time.perf_counter()
    for step in range(args.steps):
        rows = torch.randint(0, 5000, (128,))
        loss = F.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward(retain_graph=not args.cured)
        optimizer.step()
    print(f"loss={loss.item().hex()}  step_ms={(time.perf_counter() - t0) * 1000 / args.steps:.3f}")


if __name__ == "__main__":
    main()
