#pragma once

/// The ops that take each element by itself: X(op of graph::Attributes, its kernels' name). The kernels
/// `name` and `name_backward` stand in elementwise.inc; the tables of kernels and the compiled ops follow
/// from this list.

#define PACELINE_MAP_OPS(X) \
  X(Relu, relu)             \
  X(Gelu, gelu)
