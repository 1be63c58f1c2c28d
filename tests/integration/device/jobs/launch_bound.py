# finding: python_bound_step
import torch
from rig import Net, Samples, diary, train
from torch import nn
from torch.utils.data import DataLoader


class Deep(Net):
    def __init__(self):
        super().__init__(0.01, 0.01)
        self.layers = nn.Sequential(*[nn.Linear(64, 64) for _ in range(40)])


samples = torch.utils.data.TensorDataset(torch.randn(8 * 150, 64), torch.arange(8 * 150) % 10)
train(DataLoader(samples, batch_size=8), Deep())
diary.close()
