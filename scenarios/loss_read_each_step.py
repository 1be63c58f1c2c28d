"""A GRU that adds numbers; the loss and the gradient norm are read at every step."""
import argparse
import time

import torch
import torch.nn as nn


class Adder(nn.Module):
    def __init__(self, hidden=160):
        super().__init__()
        self.rnn = nn.GRU(2, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        _, last = self.rnn(x)
        return self.out(last[0]).squeeze(1)


def problems(count, length=30):
    values = torch.rand(count, length)
    marks = torch.zeros(count, length).scatter_(1, torch.rand(count, length).topk(2, dim=1).indices, 1.0)
    return torch.stack([values, marks], dim=2), (values * marks).sum(dim=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=500)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    inputs, sums = problems(4000)
    net = Adder()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    losses, norms = [], []
    t0 = time.perf_counter()
    for step in range(args.steps):
        rows = torch.randint(0, 4000, (32,))
        loss = nn.functional.mse_loss(net(inputs[rows]), sums[rows])
        optimizer.zero_grad()
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(net.parameters(), 1.0).item())
        optimizer.step()
        losses.append(loss.item())
    step_ms = (time.perf_counter() - t0) / args.steps * 1000
    print(f"loss={losses[-1].hex()}  step_ms={step_ms:.3f}")


if __name__ == "__main__":
    main()
