# steps: 20
import gc
import threading
import time
import weakref

import torch

torch.manual_seed(0)


def train(steps=20):
    model = torch.nn.DataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(steps):
        loss = model(torch.randn(16, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.005)
        print(loss.item().hex())


def functional():
    weight = torch.zeros(3, requires_grad=True)
    for _ in range(3):
        (gradient,) = torch.autograd.grad(((weight - 1) ** 2).sum(), weight)
        weight = (weight - 0.1 * gradient).detach().requires_grad_()
    print(weight.tolist())


class Alive:
    def __del__(self):
        print("gone", threading.current_thread() is threading.main_thread())


def released():
    gc.collect()
    gc.disable()
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(10):
        x = torch.randn(32, 64)
        output = model(x)
        loss = output.mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    references = [weakref.ref(value) for value in (x, output, loss, model, optimizer)]
    alive = Alive()
    del x, output, loss, model, optimizer, alive
    print([reference() is None for reference in references])
    gc.enable()


thread = threading.Thread(target=train)
thread.start()
thread.join()
functional()
released()
