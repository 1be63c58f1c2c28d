# finding: explicit_synchronize
import torch
from rig import Net, Samples, diary, during, train
from torch.utils.data import DataLoader


def after(step, loss):
    with during("sync"):
        torch.simgpu.synchronize()


train(DataLoader(Samples(16 * 100, sample_ms=0.2), batch_size=16), Net(4, 6), after=after)
diary.close()
