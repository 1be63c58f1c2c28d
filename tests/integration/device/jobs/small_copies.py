# finding: many_small_copies
import torch
from rig import Net, Samples, diary, during, train
from torch.utils.data import DataLoader


def copied(row):
    with during("copy"):
        return row.to("simgpu")


def one_by_one(batch):
    with during("other"):
        return [torch.stack([copied(row) for row in rows]) for rows in batch]


train(DataLoader(Samples(48 * 200), batch_size=48), Net(1, 1), move=one_by_one)
diary.close()
