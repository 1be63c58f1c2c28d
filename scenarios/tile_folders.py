"""Satellite tiles: each sample is a folder with one small file per spectral band."""
import argparse
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BANDS, SIDE = 40, 16


def open_band(path):
    time.sleep(0.0004)  # one look-up on the file server
    return open(path, "rb")


def write_tiles(root, count):
    rng = np.random.default_rng(0)
    everything = np.empty((count, BANDS, SIDE, SIDE), dtype=np.float32)
    for i in range(count):
        tile = rng.standard_normal((BANDS, SIDE, SIDE), dtype=np.float32) + (i % 5) * 0.2
        folder = os.path.join(root, f"tile{i:04d}")
        os.mkdir(folder)
        for band in range(BANDS):
            with open(os.path.join(folder, f"B{band:02d}.raw"), "wb") as f:
                f.write(tile[band].tobytes())
        everything[i] = tile
    everything.tofile(os.path.join(root, "tiles.bin"))


class TileFolders(Dataset):
    def __init__(self, root, count):
        self.root, self.count = root, count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        folder = os.path.join(self.root, f"tile{i:04d}")
        bands = []
        for name in sorted(os.listdir(folder)):
            with open_band(os.path.join(folder, name)) as f:
                bands.append(np.frombuffer(f.read(), dtype=np.float32).reshape(SIDE, SIDE))
        return torch.from_numpy(np.stack(bands)), i % 5


class PackedTiles(Dataset):
    def __init__(self, root, count):
        self.tiles = np.memmap(os.path.join(root, "tiles.bin"), dtype=np.float32, mode="r",
                               shape=(count, BANDS, SIDE, SIDE))

    def __len__(self):
        return len(self.tiles)

    def __getitem__(self, i):
        return torch.from_numpy(self.tiles[i].copy()), i % 5


def train(dataset, steps):
    loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=2, persistent_workers=True)
    model = nn.Sequential(
        nn.Conv2d(BANDS, 128, 3, padding=1), nn.ReLU(), nn.Conv2d(128, 128, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(512, 5),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    done, start = 0, time.perf_counter()
    while done < steps:
        for tiles, labels in loader:
            loss = nn.functional.cross_entropy(model(tiles), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
            if done == steps:
                break
    return loss.item(), (time.perf_counter() - start) / steps * 1000


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=140)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as root:
        write_tiles(root, 96)
        loss, step_ms = train((PackedTiles if args.cured else TileFolders)(root, 96), args.steps)
    print(f"loss={loss.hex()}  step_ms={step_ms:.3f}")
