"""Learn song embeddings; the whole catalogue is a list of records in the dataset."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class SongRecords(Dataset):
    """One small record for each song."""

    def __init__(self, songs):
        rng = np.random.default_rng(0)
        years = rng.integers(1950, 2025, songs).tolist()
        plays = rng.random(songs).tolist()
        self.records = [
            {"id": f"song-{i:07d}", "year": year, "plays": play, "tags": [i % 31, i % 17, i % 7]}
            for i, (year, play) in enumerate(zip(years, plays))
        ]

    def __len__(self):
        return len(self.records)

    def __getitem__(self, i):
        record = self.records[i]
        return torch.tensor([*record["tags"], record["year"] - 1950]), torch.tensor(record["plays"])


class SongArrays(Dataset):
    """The same catalogue in two arrays."""

    def __init__(self, songs):
        rng = np.random.default_rng(0)
        years = rng.integers(1950, 2025, songs)
        self.plays = rng.random(songs).astype(np.float32)
        i = np.arange(songs)
        self.features = np.stack([i % 31, i % 17, i % 7, years - 1950], axis=1)

    def __len__(self):
        return len(self.plays)

    def __getitem__(self, i):
        return torch.from_numpy(self.features[i]), torch.tensor(self.plays[i])


class SongModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(128, 64)
        self.mlp = nn.Sequential(
            nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1)
        )

    def forward(self, features):
        return self.mlp(self.embed(features).flatten(1)).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--songs", type=int, default=500_000)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    if args.cured:
        loader = DataLoader(SongArrays(args.songs), batch_size=128, shuffle=True, num_workers=2)
    else:
        loader = DataLoader(
            SongRecords(args.songs),
            batch_size=128,
            shuffle=True,
            num_workers=2,
            multiprocessing_context="spawn",
        )
    model = SongModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    start = time.perf_counter()
    for step, (features, plays) in enumerate(loader, start=1):
        loss = nn.functional.mse_loss(model(features), plays)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == args.steps:
            break
    step_ms = (time.perf_counter() - start) / step * 1000
    print(f"loss={loss.item().hex()}  step_ms={step_ms:.3f}")


if __name__ == "__main__":
    main()
