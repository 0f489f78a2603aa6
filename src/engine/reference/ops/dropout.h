#pragma once

/// Dropout of the reference engine: keeps an element with probability 1 - p and scales it by 1 / (1 - p).
/// engine/dropout_mask.h decides which elements are kept.
///
/// `mask_of(n)` returns the DropoutMask of sample n of the batch.

#include "engine/dropout_mask.h"
#include "engine/reference/ops/op_shapes.h"

namespace paceline::engine::reference {

template <typename T, typename MaskOf>
void dropout_forward(const OpShapes& shapes, const graph::Dropout& dropout, MaskOf mask_of, const T* src,
                     T* dst) {
  const T scale = static_cast<T>(1 / (1 - dropout.probability));
  const std::int64_t elements = shapes.src.elements();
  for (int n = 0; n < shapes.batch; ++n, src += elements, dst += elements)
    mask_of(n).for_each(elements, [&](std::int64_t i, bool kept) { dst[i] = kept ? src[i] * scale : T{0}; });
}

/// d_src += d_dst * scale for the elements that forward kept.
template <typename T, typename MaskOf>
void dropout_backward(const OpShapes& shapes, const graph::Dropout& dropout, MaskOf mask_of, const T* d_dst,
                      T* d_src) {
  const T scale = static_cast<T>(1 / (1 - dropout.probability));
  const std::int64_t elements = shapes.src.elements();
  for (int n = 0; n < shapes.batch; ++n, d_dst += elements, d_src += elements)
    mask_of(n).for_each(elements, [&](std::int64_t i, bool kept) {
      if (kept) d_src[i] += d_dst[i] * scale;
    });
}

}  // namespace paceline::engine::reference
