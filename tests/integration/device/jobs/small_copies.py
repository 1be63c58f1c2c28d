# finding: many_small_copies
import torch
from rig import Net, Samples, diary, train
from torch.utils.data import DataLoader


def one_by_one(batch):
    inputs, targets = batch
    return torch.stack([row.to("simgpu") for row in inputs]), torch.stack([t.to("simgpu") for t in targets])


train(DataLoader(Samples(48 * 200), batch_size=48), Net(1, 1), move=one_by_one)
diary.close()
