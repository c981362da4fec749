"""Products of matrices of float32, in float32 wherever they are computed.

An accelerator may round what enters a product to fewer bits (TF32 has 11), which is far more than E1 allows. A product that is to run
there says that it may not.
"""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.lowering.target import target


def product(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Returns the product of matrices, of which one is alone and the other may be several: `(rows, inner)` and `(..., inner, columns)`, or
    `(..., rows, inner)` and `(inner, columns)`; all bits of float32 count, on an accelerator too."""
    if target() != "device" or a.dtype != tf.float32:
        return tf.linalg.matmul(a, b)
    from tensorflow.compiler.tf2xla.python import xla

    dimensions, precision = xla.DotDimensionNumbers(), xla.PrecisionConfig()
    dimensions.lhs_contracting_dimensions.append(a.shape.rank - 1)
    dimensions.rhs_contracting_dimensions.append(b.shape.rank - 2)
    precision.operand_precision.extend([xla.PrecisionConfig.HIGHEST] * 2)
    found = xla.dot_general(a, b, dimensions, precision)
    several = b.shape.rank - 2  # whose dimensions stand behind the rows now
    return tf.transpose(found, [*range(1, several + 1), 0, several + 1]) if several else found
