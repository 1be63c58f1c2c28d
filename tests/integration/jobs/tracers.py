# steps: -
import sys
import threading

import torch

events = []


def tracer(frame, event, arg):
    if frame.f_code.co_filename == __file__:
        events.append(("trace", threading.current_thread().name, event, frame.f_code.co_name, frame.f_lineno))
    return tracer


def profiler(frame, event, arg):
    if frame.f_code.co_filename == __file__ and event in ("call", "return"):
        events.append(("profile", event, frame.f_code.co_name))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 1)

    def forward(self, x):
        return self.linear(x)


def train(steps):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(steps):
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()


def idle():
    return threading.current_thread().name


threading.settrace(tracer)
threading.setprofile(profiler)
thread = threading.Thread(target=idle, name="mine")
thread.start()
thread.join()
threading.settrace(None)
threading.setprofile(None)
sys.settrace(tracer)
train(1)
sys.settrace(None)
sys.setprofile(profiler)
train(1)
print(sys.getprofile() is profiler)
sys.setprofile(None)
train(1)
print(*events, sep="\n")
print(sys.gettrace(), sys.getprofile(), threading.active_count(), [t.name for t in threading.enumerate()])
