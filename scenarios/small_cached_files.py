"""Point clouds, three little files each, fresh in the page cache."""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Clouds(Dataset):
    def __init__(self, folder, count):
        self.folder, self.count = Path(folder), count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        axes = []
        for axis in "xyz":
            with open(self.folder / f"{i}.{axis}", "rb") as f:
                axes.append(np.frombuffer(f.read(), dtype=np.float32))
        return torch.from_numpy(np.stack(axes)), i % 2


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.points = nn.Sequential(
            nn.Conv1d(3, 96, 1), nn.ReLU(), nn.Conv1d(96, 192, 1), nn.ReLU(), nn.Conv1d(192, 384, 1)
        )
        self.shape = nn.Sequential(nn.Linear(384, 128), nn.ReLU(), nn.Linear(128, 2))

    def forward(self, cloud):
        return self.shape(self.points(cloud).amax(dim=2))


def write_clouds(folder, count):
    rng = np.random.default_rng(0)
    for i in range(count):
        cloud = rng.standard_normal((3, 256), dtype=np.float32)
        if i % 2:
            cloud /= np.linalg.norm(cloud, axis=0)
        for axis, values in zip("xyz", cloud):
            values.tofile(Path(folder) / f"{i}.{axis}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=140)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        write_clouds(folder, 400)
        loader = DataLoader(
            Clouds(folder, 400), batch_size=32, shuffle=True, num_workers=2, persistent_workers=True
        )
        net = PointNet()
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
        step, start = 0, time.perf_counter()
        while step < args.steps:
            for clouds, labels in loader:
                loss = nn.functional.cross_entropy(net(clouds), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                step += 1
                if step == args.steps:
                    break
        step_ms = (time.perf_counter() - start) / step * 1000
    print(f"loss={loss.item().hex()}  step_ms={step_ms:.3f}")
