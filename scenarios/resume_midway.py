"""Continue an interrupted epoch of sentiment training on batch 600."""
import argparse
import random
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, Subset

GOOD = ["great", "lovely", "superb", "fun", "clever"]
BAD = ["dull", "awful", "boring", "weak", "silly"]
FILLER = ["the", "movie", "was", "a", "plot", "and", "actor", "scene", "with", "of", "music", "very"]
INDEX = {w: i + 1 for i, w in enumerate(GOOD + BAD + FILLER)}


class Reviews(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        rng = random.Random(i)
        label = rng.random() < 0.5
        words = rng.choices(FILLER, k=600) + rng.choices(GOOD if label else BAD, k=20)
        rng.shuffle(words)
        text = " ".join(words).title()
        ids = [INDEX[w.lower()] for w in text.split() if w.isalpha()][:150]
        return torch.tensor(ids), float(label)


class Sentiment(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(INDEX) + 1, 64)
        self.conv = nn.Sequential(nn.Conv1d(64, 128, 5), nn.ReLU(), nn.Conv1d(128, 128, 3), nn.ReLU())
        self.fc = nn.Linear(128, 1)

    def forward(self, ids):
        x = self.conv(self.embed(ids).transpose(1, 2))
        return self.fc(x.amax(dim=2)).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--start-batch", type=int, default=600)
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    batch_size, start_batch = 32, args.start_batch
    reviews = Reviews((start_batch + args.steps) * batch_size)
    if args.cured:
        reviews = Subset(reviews, range(start_batch * batch_size, len(reviews)))
        start_batch = 0
    loader = DataLoader(reviews, batch_size=batch_size, num_workers=2)
    model = Sentiment()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    trained = 0
    t0 = time.perf_counter()
    for batch_index, (ids, labels) in enumerate(loader):
        if batch_index < start_batch:
            continue
        optimizer.zero_grad()
        loss = criterion(model(ids), labels.float())
        loss.backward()
        optimizer.step()
        trained += 1
    step_ms = (time.perf_counter() - t0) * 1000 / trained
    print(f"loss={loss.item().hex()}  step_ms={step_ms:.3f}")


if __name__ == "__main__":
    main()
