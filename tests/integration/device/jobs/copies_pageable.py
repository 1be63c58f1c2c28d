# finding: copy_blocks_host
# 4 MiB a batch at 1 GB/s, and the host waits for it although it asked not to: then the device waits for
# the host, which takes 3 ms to get to its first kernel.
import simgpu
from rig import HostBound, Samples, diary, train
from torch.utils.data import DataLoader

simgpu.configure(h2d_bytes_per_s=2e9)
train(DataLoader(Samples(16 * 100, features=65536), batch_size=16), HostBound(4, 6))
diary.close()
