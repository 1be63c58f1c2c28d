"""Plankton counts from images; a held-out batch is checked at the end of each epoch."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def plankton(count):
    images = torch.rand(count, 1, 40, 40) * 0.4
    counts = torch.randint(0, 6, (count,))
    for image, n in zip(images, counts.tolist()):
        for y, x in torch.randint(0, 36, (n, 2)).tolist():
            image[0, y : y + 4, x : x + 4] += 0.8
    return TensorDataset(images, counts)


class Trainer:
    def __init__(self, data):
        train, held_out = random_split(data, [1600, 64])
        self.train_loader = DataLoader(train, batch_size=32, shuffle=True)
        self.valid_loader = DataLoader(held_out, batch_size=64)
        self.model = nn.Sequential(
            nn.Conv2d(1, 24, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(24, 64, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(64, 64, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(6400, 6),
        )
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.02, momentum=0.9)
        self.steps = 0

    def train_epoch(self):
        self.model.train()
        for images, counts in self.train_loader:
            loss = self.criterion(self.model(images), counts)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.steps += 1
        return loss.item()

    def validate(self):
        self.model.eval()
        with torch.no_grad():
            right = sum((self.model(x).argmax(1) == y).sum().item() for x, y in self.valid_loader)
        return right / len(self.valid_loader.dataset)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    trainer = Trainer(plankton(1664))
    start = time.perf_counter()
    for epoch in range(args.epochs):
        loss = trainer.train_epoch()
        trainer.validate()
    step_ms = (time.perf_counter() - start) / trainer.steps * 1000
    print(f"loss={loss.hex()}  step_ms={step_ms:.3f}")
