"""Synthetic clicks: who sees what, and whether they click.

The rule is known, so the best AUC that any model can reach is known too. Every user
and every item has a hidden appeal; the two, and what the page looks like, decide how
likely a click is. A model has to find the appeals of all users and items.
"""

import os

import numpy as np

USERS = 1000
ITEMS = 300
DENSE = 4  # numbers that describe the page

# A batch is a pure function of the rule and its number: each dataloader makes its
# own, and a job that starts again makes the same ones.
RULE = int(os.environ.get("CLICKS_RULE", "1"))
BATCHES = int(os.environ.get("CLICKS_BATCHES", "600"))
BATCH_SIZE = int(os.environ.get("CLICKS_BATCH_SIZE", "512"))
TEST_BATCHES = 20


class Clicks:
    """The clicks of one rule."""

    def __init__(self, rule=RULE):
        hidden = np.random.default_rng([rule, 0])
        self.rule = rule
        self.user_appeal = 1.5 * hidden.standard_normal(USERS)
        self.item_appeal = 1.5 * hidden.standard_normal(ITEMS)
        self.dense_weight = 0.5 * hidden.standard_normal(DENSE)

    def batch(self, number, test=False):
        """The users, items, pages, clicks and true click rates of a batch."""
        random = np.random.default_rng([self.rule, 2 if test else 1, number])
        user = random.integers(USERS, size=BATCH_SIZE)
        item = random.integers(ITEMS, size=BATCH_SIZE)
        dense = random.standard_normal((BATCH_SIZE, DENSE))
        appeal = self.user_appeal[user] + self.item_appeal[item] + dense @ self.dense_weight
        rate = 1 / (1 + np.exp(-appeal))
        click = random.random(BATCH_SIZE) < rate
        return (
            user.astype(np.uint64),
            item.astype(np.uint64),
            dense.astype(np.float32),
            click.astype(np.float32).reshape(-1, 1),
            rate,
        )

    def best_auc(self):
        """The AUC of a model that knows the rule."""
        batches = [self.batch(number, test=True) for number in range(TEST_BATCHES)]
        return auc(
            np.concatenate([click.ravel() for _, _, _, click, _ in batches]),
            np.concatenate([rate for _, _, _, _, rate in batches]),
        )


def auc(clicks, scores):
    """The area under the ROC curve: how often a click scores above a non-click."""
    _, place, ties = np.unique(scores, return_inverse=True, return_counts=True)
    last = np.cumsum(ties)
    rank = (last - (ties - 1) / 2)[place]
    positive = clicks > 0.5
    hits, misses = positive.sum(), (~positive).sum()
    return float((rank[positive].sum() - hits * (hits + 1) / 2) / (hits * misses))
