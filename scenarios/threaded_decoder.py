"""Read run-length encoded masks with a hand-made prefetcher."""
import argparse
import random
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 40


def encode_mask(seed):
    rng = random.Random(seed)
    x, y, w, h = rng.randrange(16), rng.randrange(16), rng.randrange(6, 22), rng.randrange(6, 22)
    runs, value, length = [], 0, 0
    for row in range(SIDE):
        for column in range(SIDE):
            inside = int(y <= row < y + h and x <= column < x + w)
            if inside == value:
                length += 1
            else:
                runs.append(f"{value}x{length}")
                value, length = inside, 1
    runs.append(f"{value}x{length}")
    return " ".join(runs), (w * h) / SIDE**2


def decode_mask(text):
    pixels = []
    for run in text.split():
        value, length = run.split("x")
        for _ in range(int(length)):
            pixels.append(float(value))
    return torch.tensor([pixels, distance_along_rows(pixels)]).view(2, SIDE, SIDE)


def distance_along_rows(pixels):
    """How far into the object each pixel is, counted from the left."""
    distances = []
    for row in range(SIDE):
        depth = 0.0
        for column in range(SIDE):
            inside = pixels[row * SIDE + column]
            depth = depth + 1.0 / SIDE if inside else 0.0
            distances.append(depth)
    return distances


class Masks(Dataset):
    def __init__(self, encoded):
        self.encoded = encoded

    def __len__(self):
        return len(self.encoded)

    def __getitem__(self, i):
        text, area = self.encoded[i]
        return decode_mask(text), torch.tensor(area)


class ThreadedBatches:
    """Keeps a few batches in flight on a thread pool."""

    def __init__(self, dataset, batch_size, threads=4, ahead=6):
        self.dataset, self.batch_size, self.ahead = dataset, batch_size, ahead
        self.pool = ThreadPoolExecutor(threads)

    def load(self, rows):
        masks, areas = zip(*(self.dataset[i] for i in rows))
        return torch.stack(masks), torch.stack(areas)

    def __iter__(self):
        batches = iter(torch.randperm(len(self.dataset)).split(self.batch_size))
        waiting = deque()
        for rows in batches:
            waiting.append(self.pool.submit(self.load, rows.tolist()))
            if len(waiting) >= self.ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    masks = Masks([encode_mask(i) for i in range(640)])
    if args.cured:
        batches = DataLoader(masks, batch_size=16, shuffle=True, num_workers=2, persistent_workers=True)
    else:
        batches = ThreadedBatches(masks, batch_size=16)
    model = nn.Sequential(
        nn.Conv2d(2, 32, 5, stride=2, padding=2), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(1024, 1),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    steps, t0 = 0, time.perf_counter()
    for epoch in range(args.epochs):
        for images, areas in batches:
            loss = nn.functional.mse_loss(model(images).squeeze(1), areas)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
    step_ms = (time.perf_counter() - t0) / steps * 1000
    print(f"loss={loss.item().hex()}  step_ms={step_ms:.3f}")


if __name__ == "__main__":
    main()
