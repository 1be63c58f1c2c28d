"""Forecast the next reading of a sensor array; windows are batched by a custom collate function."""
import argparse
import time
import warnings

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

warnings.simplefilter("ignore")


def make_windows(count, length=96, sensors=24):
    rng = np.random.default_rng(12)
    series = np.cumsum(rng.standard_normal((count + length + 1, sensors)), axis=0).astype(np.float32)
    series /= series.std()
    return [(series[i:i + length], series[i + length]) for i in range(count)]


def collate_windows(batch):
    inputs = torch.tensor([window for window, _ in batch])
    targets = torch.tensor([target for _, target in batch])
    return inputs, targets


def collate_stacked(batch):
    inputs = torch.from_numpy(np.stack([window for window, _ in batch]))
    targets = torch.from_numpy(np.stack([target for _, target in batch]))
    return inputs, targets


class Forecaster(nn.Module):
    def __init__(self, sensors=24, hidden=80):
        super().__init__()
        self.rnn = nn.LSTM(sensors, hidden, batch_first=True)
        self.out = nn.Linear(hidden, sensors)

    def forward(self, x):
        h, _ = self.rnn(x[:, ::2])
        return self.out(h[:, -1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=350)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(21)
    torch.set_num_threads(1)
    collate = collate_stacked if args.cured else collate_windows
    loader = DataLoader(make_windows(5000), batch_size=32, shuffle=True, collate_fn=collate, drop_last=True)
    model = Forecaster()
    optimizer = torch.optim.NAdam(model.parameters(), lr=2e-3)

    n = 0
    clock = time.perf_counter()
    while n < args.steps:
        for inputs, targets in loader:
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            n += 1
            if n == args.steps:
                break
    clock = time.perf_counter() - clock
    print(f"loss={loss.item().hex()}  step_ms={clock / n * 1000:.3f}")
