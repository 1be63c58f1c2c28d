# What the jobs here share: a model whose kernels take set times, a training loop, and a diary of the truth.
from __future__ import annotations

import json
import os
import time
from collections import deque
from contextlib import contextmanager
from pathlib import Path

import simgpu
import torch
from torch import nn
from torch.utils.data import Dataset

FEATURES, CLASSES = 64, 10

torch.manual_seed(0)
torch.set_num_threads(1)


class Diary:
    """Which phase the host was in, when: turns of (nanoseconds, phase from here on)."""

    def __init__(self):
        self.turns = []
        self.open = ["other"]
        self.losses = []

    @contextmanager
    def during(self, phase):
        self.begin(phase)
        try:
            yield
        finally:
            self.end()

    def begin(self, phase):
        self.open.append(phase)
        self.turns.append((time.perf_counter_ns(), phase))

    def end(self):
        self.open.pop()
        self.turns.append((time.perf_counter_ns(), self.open[-1]))

    def close(self):
        """Print what a run must not change, and leave the truth where the test wants it."""
        torch.simgpu.synchronize()
        for loss in self.losses:
            print(loss.item().hex())
        if "TRUTH" in os.environ:
            truth = {"busy": simgpu.truth(), "turns": self.turns}
            Path(os.environ["TRUTH"]).write_text(json.dumps(truth))


diary = Diary()
during = diary.during


class Samples(Dataset):
    """Random features; making one takes `sample_ms`, as if it were read from somewhere."""

    def __init__(self, count, sample_ms=0.0, features=FEATURES):
        self.count, self.sample_ms, self.features = count, sample_ms, features

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.sample_ms:
            time.sleep(self.sample_ms / 1e3)
        return torch.full((self.features,), index % 97 / 97), index % CLASSES


class Kernel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, forward_ms, backward_ms):
        ctx.backward_ms = backward_ms
        simgpu.busy(forward_ms, "forward")
        return values.clone()

    @staticmethod
    def backward(ctx, gradient):
        simgpu.busy(ctx.backward_ms, "backward")
        return gradient, None, None


class Net(nn.Module):
    """A small network with two kernels that take `forward_ms` and `backward_ms` of device time."""

    def __init__(self, forward_ms, backward_ms):
        super().__init__()
        self.times_ms = (forward_ms, backward_ms)
        self.layers = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, CLASSES))

    def forward(self, values):
        return Kernel.apply(self.layers(values[:, :FEATURES]), *self.times_ms)


class HostBound(Net):
    """A network that does 3 ms of Python before its first kernel."""

    def forward(self, values):
        time.sleep(0.003)
        return super().forward(values)


class Queue:
    """A launch queue of finite depth: the host waits while the device is so many steps behind."""

    def __init__(self, depth):
        self.depth, self.events = depth, deque()

    def step(self):
        event = torch.simgpu.Event()
        event.record()
        self.events.append(event)
        if len(self.events) > self.depth:
            self.events.popleft().synchronize()


def moved(batch):
    return [tensor.to("simgpu") for tensor in batch]


def moved_async(batch):
    return [tensor.to("simgpu", non_blocking=True) for tensor in batch]


def nothing(step, loss):
    pass


def train(loader, model, *, move=moved_async, after=nothing, accumulate=1, queue_depth=8, epochs=1):
    model = model.to("simgpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    optimizer.register_step_pre_hook(lambda *_: diary.begin("optimizer"))
    optimizer.register_step_post_hook(lambda *_: diary.end())
    criterion = nn.CrossEntropyLoss()
    queue = Queue(queue_depth)
    step = 0
    for _ in range(epochs):
        model.train()
        with during("data"):
            batches = iter(loader)
        while True:
            with during("data"):
                batch = next(batches, None)
            if batch is None:
                break
            with during("copy"):
                inputs, targets = move(batch)
            with during("forward"):
                outputs = model(inputs)
            with during("loss"):
                loss = criterion(outputs, targets)
                if accumulate > 1:
                    loss = loss / accumulate
            with during("backward"):
                loss.backward()
            diary.losses.append(loss.detach())
            step += 1
            if step % accumulate == 0:
                optimizer.step()  # its hooks write the diary: torch's wrapper around them is no part of it
                with during("optimizer"):
                    optimizer.zero_grad()
            after(step, loss)
            queue.step()
    return model
