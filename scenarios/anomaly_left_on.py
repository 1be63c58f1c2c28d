"""A deep narrow network; the NaN of last week is gone."""
import argparse
import time

import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gate = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x):
        z = self.norm(x)
        return x + torch.sigmoid(self.gate(z)) * torch.tanh(self.value(z))


def train(steps):
    model = nn.Sequential(nn.Linear(32, 96), *[Residual(96) for _ in range(24)], nn.Linear(96, 1))
    optimizer = torch.optim.RAdam(model.parameters(), lr=1e-3)
    x = torch.randn(4096, 32)
    y = (x[:, :4].prod(dim=1) + x[:, 5]).unsqueeze(1)
    for step in range(steps):
        rows = torch.randint(0, 4096, (32,))
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=320)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.autograd.set_detect_anomaly(not args.cured)
    start = time.perf_counter()
    loss = train(args.steps)
    step_ms = (time.perf_counter() - start) / args.steps * 1000
    print(f"loss={loss.hex()}  step_ms={step_ms:.3f}")
