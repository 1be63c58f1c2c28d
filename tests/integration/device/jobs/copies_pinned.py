# finding: none
# As copies_pageable.py, from pinned memory.
import simgpu
from rig import HostBound, Samples, diary, train
from torch.utils.data import DataLoader

simgpu.configure(h2d_bytes_per_s=2e9)
train(DataLoader(Samples(16 * 100, features=65536), batch_size=16, pin_memory=True), HostBound(4, 6))
diary.close()
