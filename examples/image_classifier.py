"""A non-differentiable objective on a small image classifier: macro F1 on unbalanced classes.

Cross-entropy trains a small convolutional network; then evolution fine-tunes its last layer on the score itself, which
counts hard decisions and so has no gradient.

    python examples/image_classifier.py [iterations]
"""

import torch
from command import Command
from torch import nn

import esker

CLASSES, SIDE = 4, 8
options = Command(__doc__).number("iterations", 150, "generations of evolution").parse_args()


def images(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Noisy bars in one of four directions; the first direction is twenty times as common as the last."""
    rng = torch.Generator().manual_seed(seed)
    labels = torch.multinomial(torch.tensor([20.0, 5.0, 2.0, 1.0]), count, replacement=True, generator=rng)
    angles = labels * torch.pi / CLASSES + 0.3 * torch.randn(count, generator=rng)
    y, x = torch.meshgrid(torch.linspace(-1, 1, SIDE), torch.linspace(-1, 1, SIDE), indexing="ij")
    distance = (x * angles.sin()[:, None, None] - y * angles.cos()[:, None, None]).abs()
    return ((distance < 0.3).float() + 0.8 * torch.randn(count, SIDE, SIDE, generator=rng)).unsqueeze(1), labels


def macro_f1(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The mean over classes of 2·hits/(predicted + present), for outputs (…, count, classes)."""
    predicted = nn.functional.one_hot(outputs.argmax(-1), CLASSES).double()
    present = nn.functional.one_hot(labels, CLASSES).double()
    hits = (predicted * present).sum(-2)
    return (2 * hits / (predicted.sum(-2) + present.sum(-2)).clamp(min=1)).mean(-1)


torch.manual_seed(0)
train_x, train_y = images(2000, seed=1)
test_x, test_y = images(4000, seed=2)
features = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
head = nn.Linear(72, CLASSES)
model = nn.Sequential(features, head)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(60):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(train_x), train_y).backward()
    optimizer.step()


def report(when: str) -> None:
    train, test = macro_f1(model(train_x), train_y), macro_f1(model(test_x), test_y)
    print(f"after {when}: macro F1 {train:.3f}, held out {test:.3f}")


with torch.no_grad():
    report("cross-entropy")
    seen = features(train_x)  # they stay as they are, so they are computed once
    evolution = esker.Evolution(
        head, reward_batch=lambda members: macro_f1(members(seen), train_y), population=64, sigma=0.05, lr=0.01, seed=0
    )
    evolution.run(options.iterations, report_every=50)
    report("evolution")
