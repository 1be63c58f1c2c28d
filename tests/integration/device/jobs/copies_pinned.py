# finding: none
# As in copies_pageable.py, from pinned memory.
import simgpu
from rig import Net, Samples, diary, train
from torch.utils.data import DataLoader

simgpu.configure(h2d_bytes_per_s=400e6)
loader = DataLoader(Samples(16 * 80, features=16384, sample_ms=0.2), batch_size=16, pin_memory=True)
train(loader, Net(3, 5, features=16384))
diary.close()
