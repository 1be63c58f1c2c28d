"""Foresee faults of a machine from its sensors: a small data set, so epochs are short."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = "cuda" if torch.cuda.is_available() else "cpu"


class Sensors(Dataset):
    def __init__(self, count=320):
        rng = np.random.default_rng(1)
        self.windows = rng.standard_normal((count, 64, 12), dtype=np.float32)
        self.faults = (self.windows[:, :, :3].mean(axis=(1, 2)) > 0).astype(np.float32)

    def __len__(self):
        return len(self.windows)

    def __getitem__(self, index):
        return self.windows[index], self.faults[index]


def read_calibration(worker):
    """Each worker reads the calibration from the shared drive before its first sample."""
    torch.set_num_threads(1)
    time.sleep(0.25)


class FaultNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.GRU(12, 96, batch_first=True)
        self.head = nn.Linear(96, 1)

    def forward(self, windows):
        states, _ = self.encoder(windows)
        return self.head(states[:, -1]).squeeze(1)


def main(epochs, cured):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Sensors(), batch_size=16, shuffle=True, num_workers=2,
                        worker_init_fn=read_calibration, persistent_workers=cured)
    model = FaultNet().to(device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    start = time.perf_counter()
    for _ in range(epochs):
        for windows, faults in loader:
            loss = criterion(model(windows.to(device)), faults.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    steps_per_s = epochs * len(loader) / (time.perf_counter() - start)
    print(f"{epochs} epochs: loss {loss.item():.3f}, {steps_per_s:.0f} steps/s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    main(args.epochs, args.cured)
