"""The backend: plans as `tf.data` pipelines. Importing it imports TensorFlow."""

from __future__ import annotations

from pipegen.backend.process.quiet import import_tensorflow

import_tensorflow()
