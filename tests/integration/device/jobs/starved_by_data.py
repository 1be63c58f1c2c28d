# finding: loader_without_workers
from rig import Net, Samples, diary, train
from torch.utils.data import DataLoader

train(DataLoader(Samples(16 * 100, sample_ms=0.6), batch_size=16), Net(2, 3))
diary.close()
