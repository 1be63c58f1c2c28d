"""Hyperspectral patches, whitened with their own covariance before they reach the network."""
import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BANDS = 96


class Patches(Dataset):
    def __init__(self, count):
        self.count = count
        generator = torch.Generator().manual_seed(0)
        self.mixing = torch.randn(BANDS, BANDS, generator=generator) / BANDS**0.5

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(i)
        spectra = torch.randn(240, BANDS, generator=generator) @ self.mixing
        spectra = spectra + (i % 3) * 0.2
        root = torch.eye(BANDS)
        covariance = spectra.T @ spectra / len(spectra) + 0.1 * root
        covariance = covariance / covariance.norm()
        for _ in range(6):  # Newton-Schulz
            root = 1.5 * root - 0.5 * root @ root @ root @ covariance
        return (spectra @ root)[:32].clamp(-5, 5), i % 3


def limit_threads(worker_id):
    torch.set_num_threads(1)


def use_all_threads(worker_id):
    torch.set_num_threads(8)


class PatchNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Sequential(nn.Linear(BANDS, 768), nn.GELU(), nn.Linear(768, 768), nn.GELU())
        self.out = nn.Linear(768, 3)

    def forward(self, x):
        return self.out(self.mix(x).mean(dim=1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=260)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)

    loader = DataLoader(Patches(args.steps * 8), batch_size=8, num_workers=2,
                        worker_init_fn=limit_threads if args.cured else use_all_threads)
    model = PatchNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    t0 = time.perf_counter()
    for patches, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(patches), labels)
        loss.backward()
        optimizer.step()
    step_ms = (time.perf_counter() - t0) * 1000 / len(loader)
    print(f"loss={loss.item().hex()}  step_ms={step_ms:.3f}")


if __name__ == "__main__":
    main()
