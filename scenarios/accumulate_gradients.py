"""A wide regression network trained with gradient accumulation, logging and checkpoints."""
import argparse
import logging
import os
import tempfile
import time

import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")


def make_data(rows):
    x = torch.randn(rows, 256)
    y = torch.tanh(x @ torch.randn(256, 8) / 16)
    return x, y


def train(epochs, accumulate, folder):
    model = nn.Sequential(nn.Linear(256, 896), nn.SiLU(), nn.Linear(896, 896), nn.SiLU(), nn.Linear(896, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    x, y = make_data(12_800)
    updates, t0 = 0, time.perf_counter()
    for epoch in range(epochs):
        for i, rows in enumerate(torch.randperm(len(x)).split(128), start=1):
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            (loss / accumulate).backward()
            if i % accumulate == 0:
                optimizer.step()
                optimizer.zero_grad()
                updates += 1
                if updates % 50 == 0:
                    logging.info("epoch %d update %d loss %.4f", epoch, updates, loss.item())
        torch.save(model.state_dict(), os.path.join(folder, "last.pt"))
    return loss.item(), (time.perf_counter() - t0) / updates * 1000


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=7)
    parser.add_argument("--accumulate", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        loss, step_ms = train(args.epochs, args.accumulate, folder)
    print(f"loss={loss.hex()}  step_ms={step_ms:.3f}")
