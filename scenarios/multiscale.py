"""Multi-scale training: every twelfth batch is shown at a large resolution."""
import argparse
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Street(Dataset):
    """Crops of street scenes from a photo server."""

    def __len__(self):
        return 4000

    def __getitem__(self, i):
        time.sleep(0.005)
        crop = np.random.default_rng(i).random((3, 32, 32), dtype=np.float32)
        crop[i % 3] += 0.4
        return torch.from_numpy(crop), i % 3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 24, 3, padding=1)
        self.b = nn.Conv2d(24, 32, 3, stride=2, padding=1)
        self.c = nn.Linear(32, 3)

    def forward(self, x):
        return self.c(F.relu(self.b(F.relu(self.a(x)))).mean(dim=(2, 3)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=264)
    parser.add_argument("--large-every", type=int, default=12)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    loader = DataLoader(Street(), batch_size=8, shuffle=True, num_workers=2,
                        prefetch_factor=10 if args.cured else 1)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    t0 = time.perf_counter()
    for step, (images, labels) in enumerate(loader):
        if step % args.large_every == 0:
            images = F.interpolate(images, size=192, mode="bilinear")
        loss = F.cross_entropy(net(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step + 1 == args.steps:
            break
    step_ms = 1000 * (time.perf_counter() - t0) / args.steps
    print(f"loss={loss.item().hex()}  step_ms={step_ms:.3f}")


if __name__ == "__main__":
    main()
