"""A GAN on two-dimensional swirls: discriminator and generator take turns."""

import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


def swirls(count):
    angle = torch.rand(count) * 9
    points = torch.stack([angle * angle.cos(), angle * angle.sin()], dim=1) / 9
    return points + 0.02 * torch.randn(count, 2)


def mlp(inputs, outputs, width=512):
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, outputs),
    )


class Gan:
    def __init__(self):
        self.generator, self.discriminator = mlp(16, 2), mlp(2, 1)
        self.g_optimizer = torch.optim.Adam(self.generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
        self.d_optimizer = torch.optim.Adam(self.discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))

    def discriminate(self, real):
        fake = self.generator(torch.randn(len(real), 16)).detach()
        real_score, fake_score = self.discriminator(real), self.discriminator(fake)
        loss = F.binary_cross_entropy_with_logits(
            real_score, torch.ones_like(real_score)
        ) + F.binary_cross_entropy_with_logits(fake_score, torch.zeros_like(fake_score))
        self.d_optimizer.zero_grad()
        loss.backward()
        self.d_optimizer.step()

    def generate(self, count):
        score = self.discriminator(self.generator(torch.randn(count, 16)))
        loss = F.binary_cross_entropy_with_logits(score, torch.ones_like(score))
        self.g_optimizer.zero_grad()
        loss.backward()
        self.g_optimizer.step()
        return loss


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    points = swirls(20_000)
    gan = Gan()
    t0 = time.perf_counter()
    for step in range(args.steps):
        gan.discriminate(points[torch.randint(0, len(points), (256,))])
        loss = gan.generate(256)
    step_ms = (time.perf_counter() - t0) / args.steps * 1000
    print(f"loss={loss.item().hex()}  step_ms={step_ms:.3f}")
