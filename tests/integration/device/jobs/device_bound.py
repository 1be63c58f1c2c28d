# finding: none
from rig import Net, Samples, diary, train
from torch.utils.data import DataLoader

train(DataLoader(Samples(16 * 120, sample_ms=0.05), batch_size=16), Net(5, 8))
diary.close()
