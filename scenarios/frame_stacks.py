"""Action recognition on short clips: eight grey frames are stacked into one sample."""
import argparse
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class FrameStacks(Dataset):
    def __init__(self, videos=40, frames=60, size=40, stack=8, one_copy=False):
        rng = np.random.default_rng(9)
        self.videos = rng.random((videos, frames, size, size), dtype=np.float32)
        self.videos[: videos // 2, :, :, ::3] *= 0.4
        self.half, self.stack, self.one_copy = videos // 2, stack, one_copy
        self.starts = [(v, f) for v in range(videos) for f in range(0, frames - stack, 2)]

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, index):
        video, first = self.starts[index]
        frames = [self.videos[video, first + k] for k in range(self.stack)]
        if self.one_copy:
            clip = torch.from_numpy(np.stack(frames))
        else:
            clip = torch.tensor(frames)
        return clip, int(video < self.half)


class ClipNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv3d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2),
            nn.Conv3d(12, 24, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool3d((1, 4, 4)),
        )
        self.classifier = nn.Linear(24 * 16, 2)

    def forward(self, clip):
        return self.classifier(self.features(clip.unsqueeze(1)).flatten(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()

    import warnings
    warnings.filterwarnings("ignore", category=UserWarning)

    torch.manual_seed(1)
    loader = DataLoader(FrameStacks(one_copy=args.cured), batch_size=8, shuffle=True, drop_last=True)
    torch.set_num_threads(1)
    net = ClipNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, weight_decay=1e-4)

    begin = time.perf_counter()
    step = 0
    for epoch in range(1000):
        for clip, label in loader:
            optimizer.zero_grad()
            loss = criterion(net(clip), label)
            loss.backward()
            optimizer.step()
            step += 1
            if step == args.steps:
                break
        if step == args.steps:
            break
    elapsed = time.perf_counter() - begin
    print(f"loss={loss.item().hex()}  step_ms={1000 * elapsed / step:.3f}")


if __name__ == "__main__":
    main()
