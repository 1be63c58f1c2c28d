# steps: 24
import random

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        x = torch.randn(8) + random.random() + float(np.random.rand())
        return x, index % 2


random.seed(1)
np.random.seed(1)
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.3), torch.nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters())
loader = DataLoader(Noisy(), batch_size=8, shuffle=True, num_workers=2)
for epoch in range(3):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(epoch, loss.item().hex())
print(random.random(), np.random.rand(), torch.rand(1).item())
