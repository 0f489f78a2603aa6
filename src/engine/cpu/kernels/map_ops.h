#pragma once

/// The list of elementwise ops: X(op of graph::Attributes, name of its kernels). elementwise.inc defines the
/// kernels `name` and `name_backward`; the tables of kernels and the compiled ops are made from this list.

#define PACELINE_MAP_OPS(X) \
  X(Relu, relu)             \
  X(Gelu, gelu)
