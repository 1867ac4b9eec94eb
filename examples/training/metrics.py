"""Pushes figures of the model to the metrics gateway of the job."""

import http.client
import os
import urllib.request


def push(values, part=""):
    """Replace the figures pushed before of the model, or of a part. A training does not fail without its gateway."""
    address = os.environ.get("PERSIA_METRICS_GATEWAY_ADDR")
    if not address:
        return
    body = "".join(f"# TYPE persia_model_{name} gauge\npersia_model_{name} {value}\n" for name, value in values.items())
    request = urllib.request.Request(f"http://{address}/metrics/job/model{part}", body.encode(), method="PUT")
    try:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5).close()
    except (OSError, http.client.HTTPException) as error:
        print(f"cannot push to the metrics gateway at {address}: {error}", flush=True)
