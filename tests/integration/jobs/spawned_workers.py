# steps: 8
import random

import torch
from torch.utils.data import DataLoader


def make(index):
    return torch.randn(4) * random.random()


class Made(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        return make(index)


def main():
    torch.manual_seed(3)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loader = DataLoader(Made(), batch_size=4, num_workers=2, multiprocessing_context="spawn")
    for x in loader:
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(loss.item().hex())


if __name__ == "__main__":
    main()
