"""Count coins on a table; two workers crop and normalise the pictures."""
import argparse
import time

import numpy as np
import torch
import torch.nn as nn
from PIL import Image, ImageDraw
from torch.utils.data import DataLoader, Dataset


class Coins(Dataset):
    def __init__(self, count):
        self.pictures, self.amounts = [], []
        rng = np.random.default_rng(0)
        for _ in range(count):
            picture, coins = Image.new("RGB", (72, 72), (40, 60, 50)), int(rng.integers(1, 9))
            draw = ImageDraw.Draw(picture)
            for x, y in rng.integers(5, 60, (coins, 2)):
                draw.ellipse((int(x), int(y), int(x) + 8, int(y) + 8), fill=(200, 180, 60))
            self.pictures.append(picture)
            self.amounts.append(coins / 8)

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, i):
        picture = self.pictures[i].crop((i % 8, i % 7, i % 8 + 64, i % 7 + 64))
        if i % 2:
            picture = picture.transpose(Image.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(np.asarray(picture, dtype=np.float32) / 127.5 - 1)
        return pixels.permute(2, 0, 1), torch.tensor(self.amounts[i])


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 5, stride=2, padding=2), nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
        )
        self.head = nn.Linear(64, 1)

    def forward(self, x):
        return self.head(self.features(x).mean(dim=(2, 3))).squeeze(1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Coins(1440), batch_size=32, shuffle=True, num_workers=2, persistent_workers=True)
    model = Counter()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    steps, t0 = 0, time.perf_counter()
    for epoch in range(args.epochs):
        for pictures, amounts in loader:
            loss = nn.functional.mse_loss(model(pictures), amounts)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            steps += 1
    print(f"loss={loss.item().hex()}  step_ms={(time.perf_counter() - t0) / steps * 1000:.3f}")
