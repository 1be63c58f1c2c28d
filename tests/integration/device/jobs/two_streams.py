# finding: none
# Batches are copied on a stream of their own, a step ahead of the one that computes.
import simgpu
import torch
from rig import Net, Samples, diary, during, train
from torch.utils.data import DataLoader

simgpu.configure(h2d_bytes_per_s=2e9)
side = torch.simgpu.Stream()


class Ahead:
    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        waiting = None
        for batch in self.loader:
            with during("copy"), torch.simgpu.stream(side):
                batch = [tensor.to("simgpu", non_blocking=True) for tensor in batch]
            arrived = torch.simgpu.Event()
            arrived.record(side)
            if waiting is not None:
                yield waiting
            waiting = (*batch, arrived)
        yield waiting


def wait_for(batch):
    *tensors, arrived = batch
    arrived.wait()
    return tensors


loader = DataLoader(Samples(16 * 80, features=65536), batch_size=16, pin_memory=True)
train(Ahead(loader), Net(4, 6), move=wait_for)
diary.close()
