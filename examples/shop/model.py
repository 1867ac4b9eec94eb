"""The dense part of the model. PERSIA keeps the embeddings."""

from typing import List

import torch

DIMENSIONS = {"user": 16, "item": 8, "category": 4, "recent": 8}  # as in embedding_config.yml


class ShopModel(torch.nn.Module):
    """How likely a purchase is: a tower for the numbers, and one for it and the embeddings."""

    def __init__(self, numbers: int):
        super().__init__()
        self.tower = torch.nn.Sequential(torch.nn.Linear(numbers, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))
        self.top = torch.nn.Sequential(
            torch.nn.Linear(8 + sum(DIMENSIONS.values()), 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    def forward(self, numbers: List[torch.Tensor], embeddings: List[torch.Tensor]) -> torch.Tensor:
        """The logits of a batch."""
        parts = [self.tower(numbers[0])]
        for embedding in embeddings:
            parts.append(embedding.float())
        return self.top(torch.cat(parts, dim=1))
