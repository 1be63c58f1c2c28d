"""Q-learning on a toy grid world; transitions are dictionaries in a replay memory."""

import argparse
import gc
import random
import time
from collections import deque

import torch
import torch.nn as nn

ACTIONS = [(0, 1), (1, 0), (0, -1), (-1, 0)]


class GridWorld:
    def __init__(self, size, seed):
        self.rng = random.Random(seed)
        self.size = size
        self.reset()

    def reset(self):
        self.x, self.y = self.rng.randrange(self.size), self.rng.randrange(self.size)

    def step(self, action):
        before = [self.x, self.y]
        dx, dy = ACTIONS[action]
        self.x = min(max(self.x + dx, 0), self.size - 1)
        self.y = min(max(self.y + dy, 0), self.size - 1)
        reward = 1.0 if (self.x, self.y) == (self.size - 1, self.size - 1) else -0.01
        transition = {"state": before, "action": [action], "reward": [reward], "next": [self.x, self.y]}
        if reward > 0:
            self.reset()
        return transition


class Agent:
    def __init__(self, size=16, capacity=260_000):
        self.world = GridWorld(size, seed=0)
        self.rng = random.Random(1)
        self.memory = deque(maxlen=capacity)
        self.q = nn.Sequential(
            nn.Linear(2, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 4)
        )
        self.optimizer = torch.optim.Adam(self.q.parameters(), lr=5e-4)

    def explore(self, moves):
        self.memory.extend([self.world.step(self.rng.randrange(4)) for _ in range(moves)])

    def learn(self, batch_size=256):
        batch = [self.memory[self.rng.randrange(len(self.memory))] for _ in range(batch_size)]
        state = torch.tensor([t["state"] for t in batch], dtype=torch.float32) / 16
        following = torch.tensor([t["next"] for t in batch], dtype=torch.float32) / 16
        action = torch.tensor([t["action"] for t in batch])
        reward = torch.tensor([t["reward"] for t in batch]).squeeze(1)
        with torch.no_grad():
            target = reward + 0.95 * self.q(following).max(dim=1).values
        loss = nn.functional.smooth_l1_loss(self.q(state).gather(1, action).squeeze(1), target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=260)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    agent = Agent()
    agent.explore(260_000)
    if args.cured:
        gc.freeze()
        gc.disable()
    begin = time.perf_counter()
    for _ in range(args.steps):
        agent.explore(6000)
        loss = agent.learn()
    step_ms = (time.perf_counter() - begin) / args.steps * 1e3
    print(f"loss={loss.item().hex()}  step_ms={step_ms:.3f}")
