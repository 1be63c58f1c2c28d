"""A CNN on a small image set that fits in memory."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def striped_images(count):
    labels = torch.randint(0, 4, (count,))
    images = torch.randn(count, 3, 32, 32) * 0.5
    for k in range(4):
        images[labels == k, :, k::4] += 0.7
    return TensorDataset(images, labels)


def vgg(widths):
    layers, previous = [], 3
    for width in widths:
        layers += [
            nn.Conv2d(previous, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
        previous = width
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(previous * 16, 4))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(striped_images(1600), batch_size=32, shuffle=True)
    model = vgg([24, 64, 96])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    criterion = nn.CrossEntropyLoss()

    step, start = 0, time.perf_counter()
    while step < args.steps:
        for images, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            step += 1
            if step == args.steps:
                break
    step_ms = (time.perf_counter() - start) / step * 1000
    print(f"loss={loss.item().hex()}  step_ms={step_ms:.3f}")


if __name__ == "__main__":
    main()
