"""Loads a served model in a process where pipegen cannot be imported, and answers requests from a file: run by tests, without `PYTHONPATH`.

Arguments: the folder of the SavedModel, a JSON file of requests (each a list of base64 texts), and where to write what came out.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""


class NoPipegen:
    """Refuses to find pipegen."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pipegen":
            raise ImportError("pipegen is not to be had here")


sys.meta_path.insert(0, NoPipegen())
try:
    import pipegen
except ImportError:
    pass
else:
    raise SystemExit(f"pipegen was imported from {pipegen.__file__}")

import numpy as np  # noqa: E402 - only now is it sure what can be imported
import tensorflow as tf  # noqa: E402

folder, requests, out = sys.argv[1:4]
model = tf.saved_model.load(folder)
serve, preprocess = model.signatures["serving_default"], model.signatures["preprocess"]
found, arrays = {"inputs": [t.name for t in serve.structured_input_signature[1].values()], "answers": {}}, {}
for name, instances in json.loads(Path(requests).read_text(encoding="utf-8")).items():
    # As TensorFlow Serving does with `{"instances": [{"b64": "…"}, …]}`.
    contents = tf.constant([base64.b64decode(instance["b64"]) for instance in instances])
    try:
        for key, value in {**serve(image_bytes=contents), "input": next(iter(preprocess(image_bytes=contents).values()))}.items():
            arrays[f"{name}/{key}"] = value.numpy().astype("S") if value.dtype == tf.string else value.numpy()
        found["answers"][name] = "answered"
    except tf.errors.InvalidArgumentError as error:
        found["answers"][name] = error.message
np.savez(out, **arrays)
found["pipegen"] = sorted(m for m in sys.modules if m.partition(".")[0] == "pipegen")
print(json.dumps(found))
