#pragma once

/// The ops that compute each element by itself and have no attributes: X(op, its name). Each is
/// graph::<op> in the graph and `name` in model files; the engines' functions, tables of kernels and compiled
/// ops follow from this list. It is a header of its own because device code reads it too.
#define PACELINE_ELEMENTWISE_OPS(X) \
  X(Relu, relu)                     \
  X(Relu6, relu6)                   \
  X(Gelu, gelu)                     \
  X(Silu, silu)                     \
  X(Sigmoid, sigmoid)               \
  X(Tanh, tanh)                     \
  X(HardSigmoid, hard_sigmoid)      \
  X(HardSwish, hard_swish)
