"""Instrument recognition: every sample is resampled, reverberated and turned into a log-mel image."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

RATE, SECONDS = 16_000, 2


def mel_filters(bins, bands=64):
    edges = np.linspace(0, bins - 1, bands + 2)
    k = np.arange(bins)
    rise = (k - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    fall = (edges[2:, None] - k) / (edges[2:] - edges[1:-1])[:, None]
    return np.clip(np.minimum(rise, fall), 0, None)


class Instruments(Dataset):
    def __init__(self, count):
        self.count = count
        self.filters = mel_filters(513)
        self.room = np.exp(-np.linspace(0, 8, 300)) * np.random.default_rng(0).standard_normal(300)

    def __len__(self):
        return self.count

    def note(self, i):
        t = np.arange(RATE * SECONDS * 2) / (RATE * 2)
        base = 110 * 2 ** ((i % 12) / 12)
        overtones = range(1, 3 + i % 4)
        return sum(np.sin(2 * np.pi * base * k * t) / k for k in overtones)

    def log_mel(self, audio):
        frames = np.lib.stride_tricks.sliding_window_view(audio, 1024)[::256]
        spectrum = np.abs(np.fft.rfft(frames * np.hanning(1024), axis=1)) ** 2
        return np.log1p(spectrum @ self.filters.T).T[:, :96]

    def __getitem__(self, i):
        audio = self.note(i)
        positions = np.arange(RATE * SECONDS) * 2.0
        audio = np.interp(positions, np.arange(len(audio)), audio)
        audio = audio + 0.3 * np.convolve(audio, self.room, mode="same")
        return torch.from_numpy(self.log_mel(audio).astype(np.float32)).unsqueeze(0), i % 4


def precompute(dataset):
    pairs = [dataset[i] for i in range(len(dataset))]
    return TensorDataset(torch.stack([x for x, _ in pairs]), torch.tensor([y for _, y in pairs]))


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--cured", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    args = parse()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dataset = Instruments(160)
    if args.cured:
        loader = DataLoader(precompute(dataset), batch_size=8, shuffle=True)
    else:
        loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=2, persistent_workers=True)
    model = nn.Sequential(
        nn.Conv2d(1, 24, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(24, 48, 3, stride=1, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(768, 4),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    t0 = time.perf_counter()
    while step < args.steps:
        for images, labels in loader:
            if step == args.steps:
                break
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
    step_ms = (time.perf_counter() - t0) / step * 1000
    print(f"loss={loss.item().hex()}  step_ms={step_ms:.3f}")
