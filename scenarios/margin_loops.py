"""Multi-class SVM on text features: the hinge loss of the lecture notes, written out."""
import argparse
import time

import torch
from torch import nn

CLASSES = 10


def hinge_loss(scores, labels, margin=1.0):
    total = 0.0
    for i in range(scores.shape[0]):
        correct = scores[i, labels[i]]
        for c in range(scores.shape[1]):
            if c == labels[i]:
                continue
            gap = scores[i, c] - correct + margin
            if gap > 0:
                total = total + gap
    return total / scores.shape[0]


def hinge_loss_whole_batch(scores, labels, margin=1.0):
    gaps = scores - scores.gather(1, labels[:, None]) + margin
    gaps = gaps.scatter(1, labels[:, None], 0.0)
    return gaps.clamp(min=0).sum() / scores.shape[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    documents = torch.randn(3000, 1500).relu()
    topics = (documents @ torch.randn(1500, CLASSES)).argmax(dim=1)
    model = nn.Sequential(nn.Linear(1500, 1200), nn.ReLU(), nn.Dropout(0.1), nn.Linear(1200, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    loss_function = hinge_loss_whole_batch if args.cured else hinge_loss

    t = time.perf_counter()
    for _ in range(args.steps):
        rows = torch.randint(0, 3000, (48,))
        scores = model(documents[rows])
        loss = loss_function(scores, topics[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    t = time.perf_counter() - t
    print(f"loss={loss.item().hex()}  step_ms={t * 1000 / args.steps:.3f}")


if __name__ == "__main__":
    main()
