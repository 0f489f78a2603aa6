#pragma once

/// The ops that compute each element by itself and have no attributes: X(op, its name). Each is
/// graph::<op> in the graph and `name` in model files; the engines' functions, tables of kernels and compiled
/// ops follow from this list. It is a header of its own because device code reads it too.
#define PACELINE_ELEMENTWISE_OPS(X)                            \
  X(Relu, relu)                /* max(x, 0) */                 \
  X(Relu6, relu6)              /* min(max(x, 0), 6) */         \
  X(Gelu, gelu)                /* exact: x * Phi(x) */         \
  X(Silu, silu)                /* x * sigmoid(x) */            \
  X(Sigmoid, sigmoid)          /* 1 / (1 + exp(-x)) */         \
  X(Tanh, tanh)                /* tanh(x) */                   \
  X(HardSigmoid, hard_sigmoid) /* min(max(x + 3, 0), 6) / 6 */ \
  X(HardSwish, hard_swish)     /* x * hard_sigmoid(x) */
