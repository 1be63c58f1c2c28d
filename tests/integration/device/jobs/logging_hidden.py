# finding: none
import io
import time

from rig import Net, Samples, diary, during, train
from torch.utils.data import DataLoader


class Console(io.StringIO):
    """A terminal over a slow line."""

    def write(self, text):
        time.sleep(0.004)
        return len(text)


console = Console()


def after(step, loss):
    with during("logging"):
        print(f"step {step}", file=console)


train(DataLoader(Samples(16 * 100), batch_size=16), Net(6, 10), after=after)
diary.close()
