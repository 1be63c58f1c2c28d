# finding: loader_without_workers
import torch
from rig import Net, Samples, diary, during, moved_async, train
from torch.utils.data import DataLoader

held_out = DataLoader(Samples(16 * 10, sample_ms=0.6), batch_size=16)
net = Net(3, 5)


def after(step, loss):
    if step % 25 == 0:
        with during("validation"), torch.no_grad():
            net.eval()
            for batch in held_out:
                inputs, _ = moved_async(batch)
                net(inputs)
            net.train()


train(DataLoader(Samples(16 * 100, sample_ms=0.6), batch_size=16), net, after=after)
diary.close()
