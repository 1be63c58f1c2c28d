"""Wine quality from a table in memory; the loader runs in the main process."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Wines(Dataset):
    def __init__(self, rows=6000):
        self.features = torch.randn(rows, 64)
        self.quality = (self.features[:, :6].abs().sum(1) + self.features[:, 7]).unsqueeze(1)

    def __len__(self):
        return len(self.features)

    def __getitem__(self, index):
        return self.features[index], self.quality[index]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 1)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    loader = DataLoader(Wines(), batch_size=48, shuffle=True, num_workers=0)
    steps, start = 0, time.perf_counter()
    for epoch in range(args.epochs):
        for features, quality in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(features), quality)
            loss.backward()
            optimizer.step()
            steps += 1
    print(f"loss={loss.item().hex()}  step_ms={(time.perf_counter() - start) / steps * 1000:.3f}")
