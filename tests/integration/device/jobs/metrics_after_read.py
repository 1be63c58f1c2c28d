# finding: metrics_on_host scalar_read_each_step
# The host works on predictions while the device waits; no probe names what it does.
from rig import CLASSES, Net, Samples, diary, during, train
from torch.utils.data import DataLoader

counts = [[0] * CLASSES for _ in range(CLASSES)]


def confusion_metric(values):
    for repeat in range(6000):
        for at, value in enumerate(values):
            counts[(at + repeat) % CLASSES][int(value * 1e3) % CLASSES] += 1


def after(step, loss):
    with during("sync"):
        values = [loss.item()] * 16
    with during("metrics"):
        confusion_metric(values)


train(DataLoader(Samples(16 * 140), batch_size=16), Net(2, 3), after=after)
diary.close()
