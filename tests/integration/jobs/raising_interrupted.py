# steps: -
import os
import signal
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, index):
        if index == 3:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        return torch.ones(1)


for batch in DataLoader(Slow(), batch_size=2):
    print(batch.sum().item())
