"""Keyword spotting on audio clips that come from a remote feature store."""
import argparse
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class FeatureStore:
    """Stands for the HTTP client: every request takes one round trip."""

    def __init__(self, latency_s=0.009):
        self.latency_s = latency_s

    def get(self, key):
        time.sleep(self.latency_s)
        rng = np.random.default_rng(key)
        label = key % 6
        t = np.linspace(0.0, 1.0, 4000, dtype=np.float32)
        clip = np.sin(2 * np.pi * (40 + 25 * label) * t) + 0.5 * rng.standard_normal(4000, dtype=np.float32)
        return clip.astype(np.float32), label


class Clips(Dataset):
    def __init__(self, store, count):
        self.store, self.count = store, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        clip, label = self.store.get(index)
        return torch.from_numpy(clip).unsqueeze(0), label


class KeywordNet(nn.Module):
    def __init__(self, classes=6):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 32, 64, stride=8)
        self.conv2 = nn.Conv1d(32, 64, 16, stride=2)
        self.conv3 = nn.Conv1d(64, 64, 8, stride=2)
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.relu(self.conv3(x))
        return self.head(x.mean(dim=2))


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--cured", action="store_true")
    opt = ap.parse_args()

    torch.manual_seed(7)
    torch.set_num_threads(1)
    net = KeywordNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    loader = DataLoader(
        Clips(FeatureStore(), 800), batch_size=16, shuffle=True,
        num_workers=8 if opt.cured else 2, persistent_workers=True,
    )

    steps = 0
    begin = time.perf_counter()
    for epoch in range(opt.epochs):
        for clips, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(clips), labels)
            loss.backward()
            optimizer.step()
            steps += 1
    mean_ms = 1000 * (time.perf_counter() - begin) / steps
    print(f"loss={loss.item().hex()}  step_ms={mean_ms:.3f}")
