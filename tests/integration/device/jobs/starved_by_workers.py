# finding: too_few_workers sample_waits_for_storage
from rig import Net, Samples, diary, train
from torch.utils.data import DataLoader

if __name__ == "__main__":
    loader = DataLoader(
        Samples(16 * 100, sample_ms=1.5), batch_size=16, num_workers=2, persistent_workers=True
    )
    train(loader, Net(2, 3))
    diary.close()
