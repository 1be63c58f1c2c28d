"""Regress one box per image; the boxes live in a COCO-like annotation file."""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def write_annotations(path, images, boxes_per_image=4):
    rng = np.random.default_rng(0)
    boxes = rng.uniform(0, 1, (images, boxes_per_image, 4)).round(4)
    records = [
        {
            "image_id": i,
            "id": i * boxes_per_image + j,
            "bbox": boxes[i, j].tolist(),
            "iscrowd": 0,
            "area": 1.0,
        }
        for i in range(images)
        for j in range(boxes_per_image)
    ]
    path.write_text(json.dumps({"info": {"version": "1.0"}, "annotations": records}))


class BoxDataset(Dataset):
    def __init__(self, annotation_file, images, keep_in_memory=False):
        self.annotation_file = annotation_file
        self.images = images
        self.boxes = None
        if keep_in_memory:
            self.boxes = self.load_boxes()

    def load_boxes(self):
        with open(self.annotation_file) as f:
            annotations = json.load(f)["annotations"]
        return {a["image_id"]: a["bbox"] for a in annotations}

    def __len__(self):
        return self.images

    def __getitem__(self, i):
        boxes = self.boxes if self.boxes is not None else self.load_boxes()
        box = np.asarray(boxes[i], dtype=np.float32)
        canvas = np.random.default_rng(i).random((3, 48, 48), dtype=np.float32) * 0.2
        x, y = int(box[0] * 40), int(box[1] * 40)
        canvas[:, y : y + 8, x : x + 8] += box[2] + 0.2
        return torch.from_numpy(canvas), torch.from_numpy(box)


def main(args):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        annotation_file = Path(folder) / "instances.json"
        write_annotations(annotation_file, 600)
        data = BoxDataset(annotation_file, 600, keep_in_memory=args.cured)
        loader = DataLoader(data, batch_size=12, shuffle=True, num_workers=2, persistent_workers=True)
        backbone = nn.Sequential(
            nn.Conv2d(3, 32, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, 1, 1),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, 2, 1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(64 * 144, 128),
            nn.ReLU(),
        )
        head = nn.Linear(128, 4)
        parameters = [*backbone.parameters(), *head.parameters()]
        optimizer = torch.optim.SGD(parameters, lr=0.02, momentum=0.9, nesterov=True)

        done, t0 = 0, time.perf_counter()
        while done < args.steps:
            for images, boxes in loader:
                predicted = head(backbone(images))
                loss = nn.functional.smooth_l1_loss(predicted, boxes)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                done += 1
                if done >= args.steps:
                    break
        step_ms = (time.perf_counter() - t0) * 1000 / done
    print(f"loss={loss.item().hex()}  step_ms={step_ms:.3f}")


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--steps", type=int, default=220)
    cli.add_argument("--cured", action="store_true")
    main(cli.parse_args())
