"""Segment blobs with a small U-Net and validate after each epoch."""

import argparse
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def make_blobs(count, seed):
    gen = torch.Generator().manual_seed(seed)
    ys, xs = torch.meshgrid(torch.arange(48.0), torch.arange(48.0), indexing="ij")
    centre = torch.rand(count, 2, generator=gen) * 32 + 8
    radius = torch.rand(count, generator=gen) * 8 + 4
    distance = ((xs - centre[:, 0, None, None]) ** 2 + (ys - centre[:, 1, None, None]) ** 2).sqrt()
    masks = (distance < radius[:, None, None]).float().unsqueeze(1)
    return masks + 0.5 * torch.randn(count, 1, 48, 48, generator=gen), masks


class UNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.down1 = self.double(1, width)
        self.down2 = self.double(width, 2 * width)
        self.bottom = self.double(2 * width, 4 * width)
        self.up2 = self.double(6 * width, 2 * width)
        self.up1 = self.double(3 * width, width)
        self.final = nn.Conv2d(width, 1, 1)
        self.pool = nn.MaxPool2d(2)
        self.grow = nn.Upsample(scale_factor=2)

    @staticmethod
    def double(a, b):
        return nn.Sequential(
            nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU()
        )

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(self.pool(a))
        c = self.bottom(self.pool(b))
        b = self.up2(torch.cat([self.grow(c), b], dim=1))
        a = self.up1(torch.cat([self.grow(b), a], dim=1))
        return self.final(a)


@torch.no_grad()
def validate(model, loader):
    model.eval()
    dice = 0.0
    for image, mask in loader:
        predicted = (model(image) > 0).float()
        dice += (2 * (predicted * mask).sum() / (predicted.sum() + mask.sum() + 1e-6)).item()
    model.train()
    return dice / len(loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(2)
    torch.set_num_threads(1)

    train_loader = DataLoader(TensorDataset(*make_blobs(320, seed=0)), batch_size=8, shuffle=True)
    if args.cured:
        val_loader = DataLoader(TensorDataset(*make_blobs(48, seed=1)), batch_size=48)
    else:
        val_loader = DataLoader(TensorDataset(*make_blobs(384, seed=1)), batch_size=1)
    model = UNet()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    steps, t0 = 0, time.perf_counter()
    for epoch in range(args.epochs):
        for images, masks in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(images), masks)
            loss.backward()
            optimizer.step()
            steps += 1
        validate(model, val_loader)
    print(f"loss={loss.item().hex()}  step_ms={(time.perf_counter() - t0) * 1000 / steps:.3f}")


if __name__ == "__main__":
    main()
