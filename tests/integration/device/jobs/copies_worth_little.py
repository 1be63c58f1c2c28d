# finding: none
# Pageable copies in a job bound by its device: pinning them would gain next to nothing.
from rig import Net, Samples, diary, moved, train
from torch.utils.data import DataLoader

train(DataLoader(Samples(16 * 60), batch_size=16), Net(14, 20), move=moved)
diary.close()
