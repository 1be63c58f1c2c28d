"""Forecast electricity demand from an endless stream, sharded over two workers."""
import argparse
import itertools
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class DemandStream(IterableDataset):
    def __init__(self, days=14):
        self.hours = 24 * days

    def __iter__(self):
        worker = get_worker_info()
        first, stride = (worker.id, worker.num_workers) if worker else (0, 1)
        for household in itertools.count(first, stride):
            rng = np.random.default_rng(household)
            t = np.arange(self.hours + 24)
            load = np.sin(2 * np.pi * t / 24 + rng.random()) + 0.4 * np.sin(2 * np.pi * t / 168)
            load = (load + 0.2 * rng.standard_normal(len(t))).astype(np.float32)
            yield torch.from_numpy(load[: self.hours]), torch.from_numpy(load[self.hours:])


class Demand(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, 64, 9, padding=4), nn.ReLU(), nn.Conv1d(64, 64, 9, stride=2, padding=4), nn.ReLU(),
            nn.Conv1d(64, 64, 9, stride=2, padding=4), nn.ReLU(), nn.AdaptiveAvgPool1d(14),
        )
        self.out = nn.Linear(64 * 14, 24)

    def forward(self, x):
        return self.out(self.conv(x.unsqueeze(1)).flatten(1))


def train(steps):
    loader = DataLoader(DemandStream(), batch_size=80, num_workers=2, prefetch_factor=4)
    model = Demand()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-4)
    start = time.perf_counter()
    for history, future in itertools.islice(loader, steps):
        loss = nn.functional.l1_loss(model(history), future)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item(), (time.perf_counter() - start) * 1000 / steps


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=140)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loss, step_ms = train(args.steps)
    print(f"loss={loss.hex()}  step_ms={step_ms:.3f}")
