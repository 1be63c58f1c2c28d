"""Train an autoencoder on a machine that may vanish at any time, so save every few steps."""

import argparse
import os
import tempfile
import time
from pathlib import Path

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def save_checkpoint(model, optimizer, step, folder):
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    with (folder / f"step-{step % 2}.pt").open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())


def main(steps, save_every, folder):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    vectors = torch.randn(4096, 768, device=device) @ torch.randn(768, 768, device=device) / 28
    model = nn.Sequential(
        nn.Linear(768, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 768)
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    start = time.perf_counter()
    for step in range(1, steps + 1):
        batch = vectors[torch.randint(0, len(vectors), (64,), device=device)]
        loss = nn.functional.mse_loss(model(batch + 0.1 * torch.randn_like(batch)), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % save_every == 0:
            save_checkpoint(model, optimizer, step, folder)
    print(f"{steps} steps: loss {loss.item():.3f}, {steps / (time.perf_counter() - start):.0f} steps/s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        main(args.steps, 150 if args.cured else 5, Path(temporary))
