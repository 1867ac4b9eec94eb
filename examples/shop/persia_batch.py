"""Batches as PERSIA takes them."""

from persia.embedding.data import IDTypeFeature, Label, NonIDTypeFeature, PersiaBatch

import visits


def persia_batch(ids, numbers, bought, number, test=False):
    """A batch. Its number travels with it, so that an nn-worker knows which it is."""
    return PersiaBatch(
        [IDTypeFeature(name, ids[name]) for name in visits.FEATURES],
        non_id_type_features=[NonIDTypeFeature(numbers, "numbers")],
        labels=[Label(bought, "bought")],
        requires_grad=not test,
        meta=str(number).encode(),
    )
