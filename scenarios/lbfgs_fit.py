"""A physics-informed network for a damped oscillator, fitted with L-BFGS."""
import argparse
import time

import torch
from torch import nn


class Wave(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                                 nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, t):
        return self.net(t)


def residual(model, t, damping=0.4, stiffness=9.0):
    u = model(t)
    du = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
    ddu = torch.autograd.grad(du.sum(), t, create_graph=True)[0]
    return ddu + damping * du + stiffness * u


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=80)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    t = torch.linspace(0, 4, 300).unsqueeze(1).requires_grad_()
    origin = torch.zeros(1, 1, requires_grad=True)
    model = Wave()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=20, history_size=20)

    def closure():
        optimizer.zero_grad()
        u0 = model(origin)
        v0 = torch.autograd.grad(u0.sum(), origin, create_graph=True)[0]
        loss = residual(model, t).pow(2).mean() + 10 * ((u0 - 1) ** 2 + v0**2).mean()
        loss.backward()
        return loss

    start = time.perf_counter()
    for _ in range(args.steps):
        loss = optimizer.step(closure)
    step_ms = (time.perf_counter() - start) / args.steps * 1000
    print(f"loss={loss.item().hex()}  step_ms={step_ms:.3f}")


if __name__ == "__main__":
    main()
