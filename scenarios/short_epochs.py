"""Predict machine faults from sensor windows. The training set is small, so epochs are short."""
import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info


class SensorWindows(Dataset):
    def __init__(self, count=320, length=256, channels=12):
        rng = np.random.default_rng(1)
        self.windows = rng.standard_normal((count, channels, length), dtype=np.float32)
        self.targets = self.windows[:, :3].mean(axis=(1, 2)) * 20
        self.filters = None

    def open_filters(self):
        """Design the filter bank once per process."""
        frequencies = np.linspace(0.5, 60.0, 1500)
        t = np.arange(256)
        time.sleep(0.25)  # calibration file on the shared drive
        bank = np.stack([np.cos(f * t) * np.hanning(256) for f in frequencies])
        self.filters = bank[:32].astype(np.float32)

    def __len__(self):
        return len(self.windows)

    def __getitem__(self, index):
        window = self.windows[index]
        return torch.from_numpy(window), torch.tensor(self.targets[index], dtype=torch.float32)


def init_worker(worker_id):
    torch.set_num_threads(1)
    get_worker_info().dataset.open_filters()


class FaultNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.GRU(12, 96, batch_first=True)
        self.head = nn.Sequential(nn.Linear(96, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, x):
        states, _ = self.encoder(x.transpose(1, 2)[:, ::4])
        return self.head(states[:, -1]).squeeze(1)


def train(epochs, cured):
    torch.manual_seed(3)
    torch.set_num_threads(1)
    loader = DataLoader(SensorWindows(), batch_size=16, shuffle=True, num_workers=2,
                        worker_init_fn=init_worker, persistent_workers=cured)
    model = FaultNet()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    criterion = nn.MSELoss()
    steps = 0
    start = time.perf_counter()
    for _ in range(epochs):
        for windows, targets in loader:
            optimizer.zero_grad()
            loss = criterion(model(windows), targets)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            steps += 1
    return loss.item(), (time.perf_counter() - start) * 1000 / steps


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=16)
    p.add_argument("--cured", action="store_true")
    a = p.parse_args()
    final, step_ms = train(a.epochs, a.cured)
    print(f"loss={final.hex()}  step_ms={step_ms:.3f}")
