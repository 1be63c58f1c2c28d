"""Tell four kinds of photo apart: JPEG files are decoded and augmented one by one as they are needed."""

import argparse
import random
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = "cuda" if torch.cuda.is_available() else "cpu"


def make_photos(folder, count=640, size=144):
    """Patterns of four grains, as a camera would leave them on the disk."""
    rng = np.random.default_rng(0)
    for i in range(count):
        grain = 4 + 4 * (i % 4)
        colours = rng.integers(0, 255, (grain, grain, 3), dtype=np.uint8)
        photo = Image.fromarray(colours).resize((size, size), Image.Resampling.BICUBIC)
        photo.save(folder / f"{i:04}-{i % 4}.jpg", quality=90)


class Photos(Dataset):
    def __init__(self, folder):
        self.paths = sorted(folder.glob("*.jpg"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        path = self.paths[index]
        rng = random.Random(index)
        photo = Image.open(path).convert("RGB")
        photo = photo.rotate(rng.uniform(-15, 15), Image.Resampling.BICUBIC)
        photo = photo.resize((72, 72), Image.Resampling.LANCZOS)
        left, top = rng.randint(0, 8), rng.randint(0, 8)
        photo = photo.crop((left, top, left + 64, top + 64))
        if rng.random() < 0.5:
            photo = ImageOps.mirror(photo)
        photo = ImageEnhance.Color(photo).enhance(rng.uniform(0.7, 1.3))
        pixels = np.asarray(photo, dtype=np.float32) / 255
        return torch.from_numpy(pixels).permute(2, 0, 1), int(path.stem[-1])


def make_model():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
        nn.Conv2d(64, 128, 3, stride=2, padding=1), nn.BatchNorm2d(128), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 4),
    )


def train(folder, epochs, num_workers):
    photos = Photos(folder)
    loader = DataLoader(photos, batch_size=16, shuffle=True, drop_last=True,
                        num_workers=num_workers, persistent_workers=num_workers > 0)
    model = make_model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(epochs):
        start = time.perf_counter()
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        rate = len(loader) * 16 / (time.perf_counter() - start)
        print(f"epoch {epoch + 1}/{epochs}: loss {loss.item():.3f}, {rate:.0f} photos/s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        make_photos(Path(temporary))
        train(Path(temporary), args.epochs, num_workers=2 if args.cured else 0)
