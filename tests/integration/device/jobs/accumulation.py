# finding: loader_without_workers
from rig import Net, Samples, diary, train
from torch.utils.data import DataLoader

train(DataLoader(Samples(16 * 160, sample_ms=0.4), batch_size=16), Net(1, 2), accumulate=4)
diary.close()
