"""Batches of clicks as PERSIA takes them."""

from persia.embedding.data import IDTypeFeatureWithSingleID, Label, NonIDTypeFeature, PersiaBatch


def persia_batch(clicks, number, test=False):
    """The batch of a number, which travels with it so that an nn-worker can count."""
    user, item, dense, click, _ = clicks.batch(number, test)
    return PersiaBatch(
        [IDTypeFeatureWithSingleID("user", user), IDTypeFeatureWithSingleID("item", item)],
        non_id_type_features=[NonIDTypeFeature(dense, "page")],
        labels=[Label(click, "click")],
        requires_grad=not test,
        meta=str(number).encode(),
    )
