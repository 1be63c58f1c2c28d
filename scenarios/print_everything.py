"""Fit an MLP to a noisy function and print what happens to every neuron."""
import argparse
import time

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--cured", action="store_true")
args = parser.parse_args()

torch.manual_seed(0)
torch.set_num_threads(1)

x = torch.rand(8192, 16) * 4 - 2
y = (x.sin().sum(1, keepdim=True) + 0.05 * torch.randn(8192, 1)).squeeze(1)

net = nn.Sequential(nn.Linear(16, 384), nn.Tanh(), nn.Linear(384, 768), nn.Tanh(), nn.Linear(768, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
print_every = 200 if args.cured else 1

t0 = time.perf_counter()
for step in range(args.steps):
    rows = torch.randint(0, 8192, (128,))
    out = net(x[rows]).squeeze(1)
    loss = nn.functional.huber_loss(out, y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    if step % print_every == 0:
        print("step", step, "loss", loss.item(), flush=True)
        for neuron in range(384):
            bias = net[0].bias[neuron].item()
            grad = net[0].bias.grad[neuron].item()
            print(f"  neuron {neuron:4d} bias {bias:+.5f} grad {grad:+.3e}", flush=True)
step_ms = (time.perf_counter() - t0) / args.steps * 1000
print(f"loss={loss.item().hex()}  step_ms={step_ms:.3f}")
