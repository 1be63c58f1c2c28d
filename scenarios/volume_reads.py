"""CT volumes of two megabytes each, read from a mounted bucket."""

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SHAPE = (32, 128, 128)


class BucketFile:
    """A file on the bucket: reads arrive chunk by chunk."""

    def __init__(self, path, chunk=256 * 1024, seconds_per_chunk=0.006):
        self.file = open(path, "rb")
        self.chunk, self.seconds_per_chunk = chunk, seconds_per_chunk

    def read(self):
        parts = []
        while part := self.file.read(self.chunk):
            time.sleep(self.seconds_per_chunk)
            parts.append(part)
        return b"".join(parts)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.file.close()


class Volumes(Dataset):
    def __init__(self, folder, opener):
        self.paths = sorted(Path(folder).glob("*.raw"))
        self.opener = opener

    def __len__(self):
        return len(self.paths) * 4

    def __getitem__(self, index):
        path = self.paths[index % len(self.paths)]
        with self.opener(path) as f:
            volume = np.frombuffer(f.read(), dtype=np.float32).reshape(SHAPE)
        crop = volume[:, 32 * (index % 2) :, 16:][:, :48, :48].copy()
        return torch.from_numpy(crop), torch.tensor([crop.mean(), crop.std()])


class VolumeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv3d(1, 16, 3, stride=2, padding=1)
        self.conv2 = nn.Conv3d(16, 32, 3, stride=2, padding=1)
        self.fc = nn.Linear(32, 2)

    def forward(self, x):
        x = F.leaky_relu(self.conv1(x.unsqueeze(1)))
        x = F.leaky_relu(self.conv2(x))
        return self.fc(x.mean(dim=(2, 3, 4)))


def write_volumes(folder, count):
    rng = np.random.default_rng(0)
    for i in range(count):
        volume = rng.standard_normal(SHAPE, dtype=np.float32) * (1 + i % 3) + i % 7
        volume.tofile(Path(folder) / f"patient{i:03d}.raw")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as bucket, tempfile.TemporaryDirectory() as scratch:
        write_volumes(bucket, 32)
        opener = BucketFile
        if args.cured:
            shutil.copytree(bucket, scratch, dirs_exist_ok=True)
            bucket, opener = scratch, lambda path: open(path, "rb")
        loader = DataLoader(
            Volumes(bucket, opener), batch_size=4, shuffle=True, num_workers=2, persistent_workers=True
        )
        model = VolumeNet()
        optimizer = torch.optim.Adadelta(model.parameters())
        steps, t0 = 0, time.perf_counter()
        for epoch in range(args.epochs):
            for volumes, targets in loader:
                optimizer.zero_grad()
                loss = F.l1_loss(model(volumes), targets)
                loss.backward()
                optimizer.step()
                steps += 1
        step_ms = (time.perf_counter() - t0) / steps * 1e3
    print(f"loss={loss.item().hex()}  step_ms={step_ms:.3f}")


if __name__ == "__main__":
    main()
