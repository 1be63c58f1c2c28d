# steps: -
import inspect
import logging
import sys
import warnings

import torch
from torch.utils.data import DataLoader, Dataset


class Intercept(logging.Handler):
    """Walks out of logging as programs do that hand records to another logger."""

    def emit(self, record):
        frame = inspect.currentframe().f_back
        while frame and frame.f_code.co_filename == logging.__file__:
            frame = frame.f_back
        print("intercepted", frame.f_code.co_name, frame.f_lineno, record.getMessage())


def warn_caller():
    warnings.warn("from here", stacklevel=2)


class Warns(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        warnings.warn(f"sample {index}", stacklevel=1)
        return index


logging.basicConfig(format="%(filename)s:%(lineno)d %(funcName)s %(message)s", level=logging.INFO)
logging.getLogger().addHandler(Intercept())


def log():
    logging.info("plain")
    logging.getLogger("named").warning("deeper", stacklevel=2)
    try:
        print(1 / 0)
    except ZeroDivisionError:
        logging.exception("caught", stack_info=True)


log()
warn_caller()
x = torch.ones(1, requires_grad=True)
print(float(x * 2))
torch.ones(2, dtype=torch.complex64).to(torch.float32)
list(DataLoader(Warns(), num_workers=0))
print(sys.stdout.encoding, print.__name__, print.__doc__)
print("no", "newline", sep="-", end="")
print(file=sys.stderr)
