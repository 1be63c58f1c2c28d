"""Train an autoencoder on a spot instance that may vanish at any time, so save often."""
import argparse
import os
import tempfile
import time

import torch
from torch import nn


def save_checkpoint(model, optimizer, step, folder):
    path = os.path.join(folder, f"step{step % 2}.pt")
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    with open(path, "wb") as f:
        torch.save(state, f)
        f.flush()
        os.fsync(f.fileno())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--save-every", type=int, default=5)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    save_every = 125 if args.cured else args.save_every

    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(768, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
        nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 768),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    vectors = torch.randn(4096, 768) @ torch.randn(768, 768) / 28

    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        for step in range(1, args.steps + 1):
            batch = vectors[torch.randint(0, len(vectors), (64,))]
            loss = nn.functional.mse_loss(model(batch + 0.1 * torch.randn_like(batch)), batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % save_every == 0:
                save_checkpoint(model, optimizer, step, folder)
        step_ms = (time.perf_counter() - start) / args.steps * 1000
    print(f"loss={loss.item().hex()}  step_ms={step_ms:.3f}")


if __name__ == "__main__":
    main()
