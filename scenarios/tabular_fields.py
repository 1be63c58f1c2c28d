"""Click prediction on a table that already sits in memory, one tensor per field."""
import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

FIELDS = [f"field_{i:02d}" for i in range(24)]


class Clicks(Dataset):
    def __init__(self, rows=60_000):
        gen = torch.Generator().manual_seed(2)
        self.columns = {name: torch.randint(0, 500, (rows,), generator=gen) for name in FIELDS}
        signal = sum(self.columns[name] % 7 for name in FIELDS[:5])
        self.clicked = (signal > 15).float()

    def __len__(self):
        return len(self.clicked)

    def __getitem__(self, index):
        return {name: column[index] for name, column in self.columns.items()}, self.clicked[index]


class ClickModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = nn.ModuleDict({name: nn.Embedding(500, 8) for name in FIELDS})
        self.mlp = nn.Sequential(nn.Linear(8 * len(FIELDS), 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(),
                                 nn.Linear(128, 1))

    def forward(self, fields):
        parts = [self.embeddings[name](ids) for name, ids in fields.items()]
        return self.mlp(torch.cat(parts, dim=1)).squeeze(1)


def make_loader(dataset, cured):
    if cured:
        batches = BatchSampler(RandomSampler(dataset), batch_size=128, drop_last=True)
        return DataLoader(dataset, sampler=batches, batch_size=None)
    return DataLoader(dataset, batch_size=128, shuffle=True, drop_last=True, num_workers=4)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=450)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    model = ClickModel()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
    batches = iter(make_loader(Clicks(), args.cured))
    start = time.perf_counter()
    for _ in range(args.steps):
        fields, clicked = next(batches)
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(fields), clicked)
        loss.backward()
        optimizer.step()
    print(f"loss={loss.item().hex()}  step_ms={(time.perf_counter() - start) * 1000 / args.steps:.3f}")


if __name__ == "__main__":
    main()
