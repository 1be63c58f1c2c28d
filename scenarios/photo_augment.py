"""Classify synthetic photos: JPEG bytes are decoded and augmented sample by sample."""
import argparse
import io
import random
import time

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import nn
from torch.utils.data import DataLoader, Dataset


def make_jpegs(count, size=160):
    rng = np.random.default_rng(0)
    jpegs, labels = [], []
    for i in range(count):
        label = i % 4
        grid = rng.integers(0, 255, (4 + 2 * label, 4 + 2 * label, 3), dtype=np.uint8)
        image = Image.fromarray(grid).resize((size, size), Image.BICUBIC)
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=92)
        jpegs.append(buffer.getvalue())
        labels.append(label)
    return jpegs, labels


class Photos(Dataset):
    def __init__(self, jpegs, labels):
        self.jpegs, self.labels = jpegs, labels

    def __len__(self):
        return len(self.jpegs)

    def __getitem__(self, i):
        rng = random.Random(i)
        image = Image.open(io.BytesIO(self.jpegs[i])).convert("RGB")
        image = image.rotate(rng.uniform(-15, 15), Image.BILINEAR)
        image = image.resize((64, 64), Image.BICUBIC)
        if rng.random() < 0.5:
            image = ImageOps.mirror(image)
        image = ImageEnhance.Color(image).enhance(rng.uniform(0.7, 1.3))
        pixels = np.asarray(image, dtype=np.float32) / 255.0
        return torch.from_numpy(pixels).permute(2, 0, 1), self.labels[i]


def build_model():
    return nn.Sequential(
        nn.Conv2d(3, 24, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(24, 48, 3, stride=2, padding=1), nn.BatchNorm2d(48), nn.ReLU(),
        nn.Conv2d(48, 96, 3, stride=2, padding=1), nn.BatchNorm2d(96), nn.ReLU(),
        nn.Conv2d(96, 96, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, 4),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    workers = 2 if args.cured else 0
    loader = DataLoader(Photos(*make_jpegs(960)), batch_size=16, shuffle=True, drop_last=True,
                        num_workers=workers, persistent_workers=workers > 0)
    model = build_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    step, started = 0, time.perf_counter()
    while step < args.steps:
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step == args.steps:
                break
    step_ms = (time.perf_counter() - started) / step * 1000
    print(f"loss={loss.item().hex()}  step_ms={step_ms:.3f}")


if __name__ == "__main__":
    main()
