"""Multi-task regression; every task gets a progress bar of its own."""
import argparse
import time

import torch
from torch import nn
from tqdm import tqdm

TASKS = ["energy", "dipole", "gap", "homo", "lumo"]


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(200, 256), nn.ELU(), nn.Linear(256, 256), nn.ELU())
        self.heads = nn.ModuleDict({t: nn.Linear(256, 1) for t in TASKS})

    def forward(self, x):
        z = self.trunk(x)
        return {t: head(z).squeeze(1) for t, head in self.heads.items()}


def make_data(rows=6000):
    x = torch.randn(rows, 200)
    w = torch.randn(200, len(TASKS)) / 14
    return x, dict(zip(TASKS, (x @ w).tanh().unbind(1)))


def run(epochs, steps_per_epoch, calm):
    bar_options = {"mininterval": 0.5} if calm else {"mininterval": 0, "miniters": 1, "dynamic_ncols": True}
    x, targets = make_data()
    model = MultiTask()
    optimizer = torch.optim.Adamax(model.parameters(), lr=1e-3)
    total = epochs * steps_per_epoch
    overall = tqdm(total=total, desc="all", position=0, **bar_options)
    bars = {t: tqdm(total=total, desc=t, position=i + 1, **bar_options) for i, t in enumerate(TASKS)}
    for _ in range(epochs):
        order = torch.randperm(len(x))
        for b in range(steps_per_epoch):
            rows = order[b * 96:(b + 1) * 96]
            outputs = model(x[rows])
            losses = {t: nn.functional.mse_loss(outputs[t], targets[t][rows]) for t in TASKS}
            loss = sum(losses.values())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            overall.update(1)
            overall.set_postfix(loss=loss.item(), lr=1e-3, refresh=not calm)
            for task, bar in bars.items():
                bar.update(1)
                bar.set_postfix(loss=losses[task].item(), best=0.0, refresh=not calm)
    for bar in (overall, *bars.values()):
        bar.close()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(4)
    torch.set_num_threads(1)
    start = time.perf_counter()
    loss = run(args.epochs, 60, args.cured)
    step_ms = (time.perf_counter() - start) / (args.epochs * 60) * 1000
    print(f"loss={loss.hex()}  step_ms={step_ms:.3f}")


if __name__ == "__main__":
    main()
