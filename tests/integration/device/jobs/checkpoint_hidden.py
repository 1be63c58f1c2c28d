# finding: none
# The device has 60 ms of work left when a checkpoint of 50 ms begins.
import torch
from rig import Net, Samples, diary, during, train
from slow_file import SlowFile
from torch.utils.data import DataLoader

averaged = {"weight": torch.zeros(32, 64)}  # lives on the host: reading it waits for nobody


def after(step, loss):
    if step % 10 == 0:
        with during("checkpoint"):
            torch.save(averaged, SlowFile(close_ms=50))


train(DataLoader(Samples(16 * 150), batch_size=16), Net(4, 6), after=after, queue_depth=8)
diary.close()
