# steps: -
import torch
import torch.fx


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 2)

    def forward(self, x):
        if x.sum().item() > 1e9:
            print("large")
        return torch.relu(self.linear(x)).to(torch.float64)


class Plain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 2)

    def forward(self, x):
        return torch.relu(self.linear(x)).to(torch.float64)


torch.manual_seed(0)
x = torch.ones(3, 4)
print(torch.jit.script(Net()).code)
print(torch.jit.script(Net())(x).sum().item())
traced = torch.jit.trace(Plain(), x)
print(traced.code, traced.graph, traced(x).sum().item(), sep="\n")
traced = torch.jit.trace(lambda x: x * int(x.sum()) if bool(x.sum() > 0) else x, x)
print(traced.code)
graph = torch.fx.symbolic_trace(Plain())
print(graph.code, graph.graph, graph(x).sum().item(), sep="\n")
exported = torch.export.export(Plain(), (x,))
print(exported.graph_module.code, exported.module()(x).sum().item(), sep="\n")


class Talkative(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        known = [name for name in ("to", "item", "cpu", "tolist") if function is getattr(torch.Tensor, name)]
        print(getattr(function, "__name__", "?"), known)
        return super().__torch_function__(function, types, args, kwargs)


class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        print("mode", torch.overrides.resolve_name(function))
        return function(*args, **(kwargs or {}))


tensor = torch.ones(1).as_subclass(Talkative)
print(
    type(tensor.to(torch.float64)), tensor.item(), float(tensor), tensor.tolist(), bool(tensor), tensor.cpu()
)
with Mode():
    torch.ones(1).to(torch.float64).item()
print(torch.func.vmap(lambda x: x.to(torch.float64) * 2)(torch.ones(3)))
print(torch.func.grad(lambda x: x.cpu().sum() ** 2)(torch.ones(3)))
meta = torch.ones(2, device="meta")
print(meta.to("meta").device, callable(meta.cpu))
