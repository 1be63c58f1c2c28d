# finding: python_bound_step
import simgpu
import torch
from rig import FEATURES, Net, diary, train
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

simgpu.configure(launch_us=60)


class Deep(Net):
    def __init__(self):
        super().__init__(0.01, 0.01)
        self.layers = nn.Sequential(*[nn.Linear(FEATURES, FEATURES) for _ in range(6)])


samples = TensorDataset(torch.randn(8 * 700, FEATURES), torch.arange(8 * 700) % 10)
train(DataLoader(samples, batch_size=8), Deep())
diary.close()
