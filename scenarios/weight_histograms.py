"""Digit-like images, a small ResNet, and TensorBoard."""
import argparse
import tempfile
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.tensorboard import SummaryWriter


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(x + self.bn2(self.conv2(y)))


class SmallResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 24, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(Block(24), Block(24))
        self.fc = nn.Linear(24, 10)

    def forward(self, x):
        return self.fc(self.blocks(self.stem(x)).mean(dim=(2, 3)))


def log_step(writer, model, loss, step):
    writer.add_scalar("train/loss", loss.item(), step)
    for name, p in model.named_parameters():
        writer.add_histogram(f"weights/{name}", p, step)
        if p.grad is not None:
            writer.add_histogram(f"grads/{name}", p.grad, step)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=220)
    ap.add_argument("--cured", action="store_true")
    args = ap.parse_args()
    log_every = 100 if args.cured else 1

    torch.manual_seed(0)
    torch.set_num_threads(1)
    labels = torch.randint(0, 10, (2000,))
    images = torch.randn(2000, 1, 28, 28) * 0.3
    for i, label in enumerate(labels.tolist()):
        images[i, 0, 2 * label:2 * label + 6, 4:20] += 1.0

    model = SmallResNet()
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.steps)
    with tempfile.TemporaryDirectory() as logdir:
        writer = SummaryWriter(logdir)
        t0 = time.perf_counter()
        for step in range(args.steps):
            pick = torch.randint(0, 2000, (32,))
            loss = F.cross_entropy(model(images[pick]), labels[pick])
            opt.zero_grad()
            loss.backward()
            opt.step()
            schedule.step()
            if step % log_every == 0:
                log_step(writer, model, loss, step)
        step_ms = (time.perf_counter() - t0) * 1000 / args.steps
        writer.close()
    print(f"loss={loss.item().hex()}  step_ms={step_ms:.3f}")
