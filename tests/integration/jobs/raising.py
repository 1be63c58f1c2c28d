# steps: -
import io
import logging
import threading
import traceback
import warnings

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset


class Broken(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        raise KeyError(index)


class BrokenStream(IterableDataset):
    def __iter__(self):
        yield 1
        raise ValueError("dry")


class BrokenForward(torch.nn.Module):
    def forward(self, x):
        return x @ torch.ones(7, 7)


class WithoutInit(torch.nn.Module):
    def __init__(self):
        pass

    def forward(self, x):
        return x


class BrokenText:
    def __str__(self):
        raise RuntimeError("no text")


class BrokenStep(torch.optim.SGD):
    def step(self, closure=None):
        raise RuntimeError("no step")


class BrokenCollate:
    def __call__(self, samples):
        raise TypeError("cannot collate")


class BrokenFile(io.BytesIO):
    def write(self, data):
        raise OSError(28, "full")


def raise_from_hook(module, args, output):
    raise RuntimeError("hook")


def closure():
    raise RuntimeError("closure")


def attempt(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except BaseException:
        traceback.print_exc()


def stop_iteration():
    iterator = iter(DataLoader([1]))
    next(iterator)
    next(iterator)


linear = torch.nn.Linear(2, 2)
hooked = torch.nn.Linear(2, 2)
hooked.register_forward_hook(raise_from_hook)
optimizer = torch.optim.SGD(linear.parameters(), 0.1)
x = torch.ones(1, 2, requires_grad=True)

attempt(BrokenForward(), torch.ones(2, 2))
attempt(torch.nn.Sequential(linear, BrokenForward()), torch.ones(1, 2))
attempt(WithoutInit(), x)
attempt(hooked, x)
attempt(optimizer.step, closure)
attempt(BrokenStep(linear.parameters(), 0.1).step)
attempt(print, BrokenText())
attempt(logging.getLogger().error, "%d %d", 1)
attempt(list, DataLoader(Broken()))
attempt(list, DataLoader(Broken(), num_workers=1))
attempt(list, DataLoader(BrokenStream()))
attempt(list, DataLoader(BrokenStream(), num_workers=1))
attempt(list, DataLoader([1, 2], collate_fn=BrokenCollate()))
attempt(iter, DataLoader(Broken(), sampler=7))
attempt(stop_iteration)
attempt(x.backward)
attempt(torch.ones(2).backward)
attempt(torch.autograd.grad, x.sum(), torch.ones(1))
attempt(x.item)
attempt(x.numpy)
attempt(x.to, "nowhere")
attempt(torch.ones(2).__bool__)
attempt(torch.save, {"a": threading.Lock()}, io.BytesIO())
attempt(torch.save, x, BrokenFile())
attempt(__import__, "torch.no_such_module")
with warnings.catch_warnings():
    warnings.simplefilter("error")
    attempt(float, x.sum())
BrokenForward()(torch.ones(2, 2))
