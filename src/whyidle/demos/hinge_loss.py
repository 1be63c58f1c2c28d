"""Sort texts into ten topics with the hinge loss of the lecture notes, written out as loops."""

import argparse
import time

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def hinge_loss(scores, labels):
    total = 0.0
    for row, label in zip(scores, labels.tolist(), strict=True):
        for topic in range(len(row)):
            if topic != label:
                total = total + torch.relu(row[topic] - row[label] + 1)
    return total / len(scores)


def hinge_loss_at_once(scores, labels):
    gaps = torch.relu(scores - scores.gather(1, labels[:, None]) + 1)
    return gaps.scatter(1, labels[:, None], 0.0).sum() / len(scores)


def main(steps, loss_function):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    texts = torch.randn(3000, 1500, device=device).relu()
    topics = (texts @ torch.randn(1500, 10, device=device)).argmax(dim=1)
    model = nn.Sequential(nn.Linear(1500, 1200), nn.ReLU(), nn.Dropout(0.1), nn.Linear(1200, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    start = time.perf_counter()
    for _ in range(steps):
        rows = torch.randint(0, len(texts), (48,), device=device)
        loss = loss_function(model(texts[rows]), topics[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{steps} steps: loss {loss.item():.3f}, {steps / (time.perf_counter() - start):.0f} steps/s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    main(args.steps, hinge_loss_at_once if args.cured else hinge_loss)
