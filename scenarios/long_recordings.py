"""Detect birds in field recordings: most are a few seconds long, some run for many minutes."""
import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SECONDS_TO_FETCH_ONE_MINUTE = 0.02


class Recordings(Dataset):
    def __init__(self, count, seed=5):
        rng = np.random.default_rng(seed)
        self.minutes = np.full(count, 0.15)
        long_ones = rng.choice(count, count // 40, replace=False)
        self.minutes[long_ones] = rng.uniform(7.2, 7.5, len(long_ones))
        self.labels = rng.integers(0, 2, count)

    def __len__(self):
        return len(self.minutes)

    def __getitem__(self, i):
        # the archive streams a recording front to back; its best second is at the end
        time.sleep(self.minutes[i] * SECONDS_TO_FETCH_ONE_MINUTE)
        rng = np.random.default_rng(i)
        mel = rng.standard_normal((1, 64, 64), dtype=np.float32)
        if self.labels[i]:
            mel[0, 20:24] += 1.5
        return torch.from_numpy(mel), torch.tensor(float(self.labels[i]))


def conv_block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.GELU(), nn.MaxPool2d(2))


class Trainer:
    def __init__(self, cured):
        self.loader = DataLoader(Recordings(640), batch_size=4, shuffle=True, num_workers=2,
                                 persistent_workers=True, in_order=not cured)
        self.model = nn.Sequential(conv_block(1, 16), conv_block(16, 64), conv_block(64, 96),
                                   nn.Flatten(), nn.Linear(96 * 8 * 8, 1))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=5e-4)
        self.criterion = nn.BCEWithLogitsLoss()

    def run(self, max_steps):
        step = 0
        while True:
            for mel, label in self.loader:
                loss = self.criterion(self.model(mel).squeeze(1), label)
                loss.backward()
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=True)
                step += 1
                if step >= max_steps:
                    return loss.item(), step


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=360)
    ap.add_argument("--cured", action="store_true")
    ns = ap.parse_args()
    torch.manual_seed(11)
    torch.set_num_threads(1)
    trainer = Trainer(ns.cured)
    t0 = time.perf_counter()
    loss, steps = trainer.run(ns.steps)
    print(f"loss={loss.hex()}  step_ms={(time.perf_counter() - t0) / steps * 1e3:.3f}")
