"""Denoise sine waves with a 1-d autoencoder under one ordinary progress bar."""
import argparse
import time

import torch
from torch import nn
from tqdm import tqdm, trange


def waves(count):
    t = torch.linspace(0, 6.28, 256)
    return torch.sin(t * (1 + 5 * torch.rand(count, 1)) + 6 * torch.rand(count, 1)).unsqueeze(1)


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=900)

if __name__ == "__main__":
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    clean = waves(2000)
    model = nn.Sequential(
        nn.Conv1d(1, 32, 9, stride=2, padding=4), nn.ReLU(), nn.Conv1d(32, 64, 9, padding=4), nn.ReLU(),
        nn.ConvTranspose1d(64, 1, 8, stride=2, padding=3),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    bar = trange(args.steps, desc="denoise")
    t0 = time.perf_counter()
    for step in bar:
        target = clean[torch.randint(0, 2000, (48,))]
        loss = nn.functional.mse_loss(model(target + 0.3 * torch.randn_like(target)), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            bar.set_postfix(loss=loss.item())
    step_ms = (time.perf_counter() - t0) / args.steps * 1000
    tqdm.write("finished", file=bar.fp)
    print(f"loss={loss.item().hex()}  step_ms={step_ms:.3f}")
