# steps: -
import logging

import torch
from torch._dynamo.utils import counters

torch._logging.set_logs(dynamo=logging.ERROR)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)
        self.register_forward_hook(lambda module, args, output: None)

    def forward(self, x):
        return self.second(self.first(x).relu().to(torch.float32))


def chatty(model, x):
    y = model(x)
    print("in the region")
    value = y.sum().item()
    logging.warning("logged")
    return y * value


def clean(model, x):
    return model(x).to(torch.float64).cpu() * 2


class Inner(torch.nn.Module):
    def forward(self, x):
        print("inside")
        return x + 1


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.inner.register_forward_hook(lambda module, args, output: output * 2)

    def forward(self, x):
        return self.inner(x).cos()


def show(label, function, *args):
    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(0)
    for _ in range(3):
        result = function(*args)
    if isinstance(result, torch.Tensor):
        print(result.sum().item())
    print(label, dict(counters["stats"]), sorted(counters["graph_break"].items()))


x = torch.ones(3, 4)
torch.manual_seed(0)
for backend in ("eager", "aot_eager"):
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())

    def step(x, model=model, optimizer=optimizer):
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    show("module", torch.compile(model, backend=backend), x)
    show("nested", torch.compile(Outer(), backend=backend), x)
    show("clean", torch.compile(clean, backend=backend, fullgraph=True), model, x)
    show("chatty", torch.compile(chatty, backend=backend), model, x)
    step(x)
    show("step", torch.compile(step, backend=backend), x)
    show("sequential", torch.compile(torch.nn.Sequential(torch.nn.Linear(4, 4)), backend=backend), x)

torch._dynamo.config.capture_scalar_outputs = True
show("scalar", torch.compile(lambda x: x * x.sum().item(), backend="eager", fullgraph=True), x)
torch._dynamo.config.reorderable_logging_functions.add(print)


def printing(x):
    y = x + 1
    print("reordered")
    return y * 2


show("printing", torch.compile(printing, backend="eager", fullgraph=True), x)
explained = torch._dynamo.explain(chatty)(Net(), x)
print(explained.graph_break_count, explained.graph_count, explained.op_count)
