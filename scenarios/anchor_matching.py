"""A one-stage detector on coloured rectangles. Anchors are matched to boxes by IoU."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

GRID, SIZE = 10, 80


def make_anchors():
    centres = (torch.arange(GRID) + 0.5) * (SIZE / GRID)
    cy, cx = torch.meshgrid(centres, centres, indexing="ij")
    anchors = []
    for side in (12.0, 24.0):
        anchors.append(torch.stack([cx - side / 2, cy - side / 2, cx + side / 2, cy + side / 2], dim=-1))
    return torch.stack(anchors, dim=2).reshape(-1, 4)


def draw_batch(batch_size, generator):
    images = torch.rand(batch_size, 3, SIZE, SIZE, generator=generator) * 0.3
    all_boxes = []
    for image in images:
        boxes = []
        for _ in range(3):
            x, y = torch.randint(0, SIZE - 28, (2,), generator=generator).tolist()
            w, h = torch.randint(10, 28, (2,), generator=generator).tolist()
            image[:, y:y + h, x:x + w] += torch.rand(3, 1, 1, generator=generator)
            boxes.append([float(x), float(y), float(x + w), float(y + h)])
        all_boxes.append(boxes)
    return images, all_boxes


def iou(a, b):
    left, top = max(a[0], b[0]), max(a[1], b[1])
    right, bottom = min(a[2], b[2]), min(a[3], b[3])
    overlap = max(0.0, right - left) * max(0.0, bottom - top)
    area_a = (a[2] - a[0]) * (a[3] - a[1])
    area_b = (b[2] - b[0]) * (b[3] - b[1])
    return overlap / (area_a + area_b - overlap)


def assign_targets(anchors, boxes_per_image):
    """For each anchor: is it an object, and which box does it regress to?"""
    anchors = anchors.tolist()
    objectness, regression = [], []
    for boxes in boxes_per_image:
        for anchor in anchors:
            best, best_box = 0.0, anchor
            for box in boxes:
                overlap = iou(anchor, box)
                if overlap > best:
                    best, best_box = overlap, box
            objectness.append(1.0 if best > 0.35 else 0.0)
            regression.append([(g - a) / SIZE for g, a in zip(best_box, anchor)])
    shape = (len(boxes_per_image), len(anchors))
    return torch.tensor(objectness).view(shape), torch.tensor(regression).view(*shape, 4)


def assign_targets_vectorised(anchors, boxes_per_image):
    boxes = torch.tensor(boxes_per_image)
    a, b = anchors[None, :, None], boxes[:, None]
    wh = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0)
    overlap = wh.prod(-1)
    areas = (a[..., 2:] - a[..., :2]).prod(-1) + (b[..., 2:] - b[..., :2]).prod(-1)
    best, index = (overlap / (areas - overlap)).max(dim=2)
    matched = boxes.gather(1, index.unsqueeze(-1).expand(-1, -1, 4))
    matched = torch.where(best.unsqueeze(-1) > 0, matched, anchors)
    return (best > 0.35).float(), (matched - anchors) / SIZE


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(64, 96, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(96, 96, 3, padding=1), nn.ReLU(),
        )
        self.predict = nn.Conv2d(96, 2 * 5, 1)

    def forward(self, images):
        out = self.predict(self.body(images))
        out = out.permute(0, 2, 3, 1).reshape(images.shape[0], -1, 5)
        return out[..., 0], out[..., 1:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    batches = [draw_batch(16, generator) for _ in range(20)]
    anchors = make_anchors()
    detector = Detector()
    optimizer = torch.optim.SGD(detector.parameters(), lr=0.01, momentum=0.9)
    assign = assign_targets_vectorised if args.cured else assign_targets

    started = time.perf_counter()
    for step in range(args.steps):
        images, boxes = batches[step % len(batches)]
        scores, offsets = detector(images)
        objectness, regression = assign(anchors, boxes)
        score_loss = F.binary_cross_entropy_with_logits(scores, objectness)
        box_loss = (F.smooth_l1_loss(offsets, regression, reduction="none").sum(-1) * objectness).mean()
        loss = score_loss + 5 * box_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    elapsed = time.perf_counter() - started
    print(f"loss={loss.item().hex()}  step_ms={elapsed / args.steps * 1000:.3f}")


if __name__ == "__main__":
    main()
