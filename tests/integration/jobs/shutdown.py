# steps: -
import atexit
import gc
import logging
import sys
import threading

import torch


class Farewell:
    def __init__(self, name):
        self.name = name
        self.tensor = torch.ones(1)

    def __del__(self):
        print("farewell", self.name, self.tensor.item(), self.tensor.to(torch.float64).sum().item())
        logging.getLogger("farewell").warning("%s", self.name)


logging.basicConfig()
atexit.register(print, "first registered")
atexit.register(print, "last registered")
kept = Farewell("global")
cycle = [Farewell("cycle")]
cycle.append(cycle)
print(sys.argv, __name__, __file__, threading.active_count())
print(gc.isenabled(), gc.get_threshold(), gc.collect.__doc__)
print([name for name in sys.modules if name.startswith(("pynvml", "psutil", "wcwidth"))])
del cycle


class Net(torch.nn.Module):
    def forward(self, x):
        raise SystemExit(4)


Net()(kept.tensor)
