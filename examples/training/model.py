"""The dense part of the click model. PERSIA keeps the embeddings."""

import torch


class ClickModel(torch.nn.Module):
    """How likely a click is, from the page and the embeddings of user and item."""

    def __init__(self, dense, embedding_dim):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(dense + 2 * embedding_dim, 32),
            torch.nn.ReLU(),
            torch.nn.Linear(32, 1),
        )

    def forward(self, pages, embeddings):
        """The logits of a batch."""
        return self.layers(torch.cat([pages[0]] + [embedding.float() for embedding in embeddings], dim=1))
