# steps: 18
import copy
import inspect
import pickle
from collections import deque

import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset, get_worker_info

torch.manual_seed(0)
data = TensorDataset(torch.arange(12.0).unsqueeze(1))


class Subclass(DataLoader):
    def __iter__(self):
        print("subclass")
        return super().__iter__()


class Generated(DataLoader):
    def __iter__(self):
        for (x,) in super().__iter__():
            yield (x * 2,)

    def __eq__(self, other):  # and thereby unhashable
        return True


class Boxed(DataLoader):
    def _get_iterator(self):
        return iter([(torch.ones(2, 1),), (torch.zeros(2, 1),)])


model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.001)


def train(loader):
    for (x,) in loader:
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"{loss.item():.9f}")


train(Subclass(data, batch_size=6))
train(Generated(data, batch_size=6))
train(Boxed(data))
train(DataLoader(data, batch_sampler=BatchSampler(RandomSampler(data), 6, False)))
train(DataLoader(data, batch_size=None, sampler=[[0, 1], [2, 3]]))

loader = DataLoader(data, batch_size=6, num_workers=1, persistent_workers=True)
train(loader)
train(loader)
print(sorted(vars(loader)))
half = iter(DataLoader(data, batch_size=4))
next(half)
for copied in (copy.copy, copy.deepcopy, pickle.dumps):
    try:
        copied(half)
    except NotImplementedError as error:
        print(error)
train(pickle.loads(pickle.dumps(DataLoader(data, batch_size=6))))
train(copy.deepcopy(DataLoader(data, batch_size=6)))
print(len(pickle.dumps(model)), copy.deepcopy(model)(torch.ones(1)).item() == model(torch.ones(1)).item())


class Asks(torch.utils.data.Dataset):
    extra = "kept"

    def __len__(self):
        return 2

    def __getitem__(self, index):
        info = get_worker_info()
        return type(info.dataset).__name__, type(self).__name__, self.extra, info.num_workers


print(list(DataLoader(Asks(), num_workers=2)))
plain = DataLoader.__iter__


def patched(self):
    print("patched")
    return plain(self)


DataLoader.__iter__ = patched
print(len(deque(DataLoader(data, batch_size=6))))
DataLoader.__iter__ = plain
for function in (
    DataLoader.__iter__,
    torch.nn.Module.__call__,
    torch.autograd.backward,
    torch.autograd.grad,
    torch.save,
    torch.optim.Optimizer.zero_grad,
    torch.cuda.synchronize,
    torch.Tensor.to,
    torch.Tensor.item,
    print,
):
    try:
        print(function.__name__, function.__qualname__, function.__module__, inspect.signature(function))
    except (AttributeError, ValueError) as error:
        print(error)
print(pickle.loads(pickle.dumps(torch.save)) is torch.save, pickle.loads(pickle.dumps(print)) is print)
