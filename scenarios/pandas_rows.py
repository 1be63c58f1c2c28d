"""House prices from a pandas table."""

import argparse
import time

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset


def make_table(rows=20_000, columns=40):
    rng = np.random.default_rng(4)
    table = pd.DataFrame(rng.standard_normal((rows, columns)), columns=[f"x{i}" for i in range(columns)])
    table["rooms"] = rng.integers(1, 9, rows)
    table["price"] = table["x0"] * 2 - table["x1"] + 0.3 * table["rooms"]
    return table


class HousePrices(Dataset):
    def __init__(self, table):
        self.table = table
        self.features = [c for c in table.columns if c != "price"]

    def __len__(self):
        return len(self.table)

    def __getitem__(self, idx):
        row = self.table.iloc[idx]
        x = row[self.features].to_numpy(dtype=np.float32)
        return torch.from_numpy(x), torch.tensor(row["price"], dtype=torch.float32)


def as_tensors(table):
    x = torch.from_numpy(table.drop(columns="price").to_numpy(dtype=np.float32))
    return TensorDataset(x, torch.from_numpy(table["price"].to_numpy(dtype=np.float32)))


def train(model, loader, optimizer, steps):
    it = iter(loader)
    for _ in range(steps):
        try:
            x, y = next(it)
        except StopIteration:
            it = iter(loader)
            x, y = next(it)
        pred = model(x).squeeze(-1)
        loss = ((pred - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=350)
parser.add_argument("--cured", action="store_true")

if __name__ == "__main__":
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    table = make_table()
    dataset = as_tensors(table) if args.cured else HousePrices(table)
    loader = DataLoader(dataset, batch_size=64, shuffle=True)
    model = nn.Sequential(
        nn.Linear(41, 1024), nn.SiLU(), nn.Linear(1024, 1024), nn.SiLU(), nn.Linear(1024, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    t = time.perf_counter()
    loss = train(model, loader, optimizer, args.steps)
    step_ms = (time.perf_counter() - t) / args.steps * 1000
    print(f"loss={loss.hex()}  step_ms={step_ms:.3f}")
