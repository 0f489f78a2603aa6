#pragma once

/// Converts convolution weights between PyTorch's order [out][in][tap] and [tap][in][out], the order of the
/// algorithms that compute tap by tap.

#include "engine/cpu/conv/kernel.h"

namespace paceline::engine::cpu {

/// PyTorch's order to tap order. Both arrays have shape.weights() floats.
void to_tap_order(const ConvShape& shape, const float* weights, float* packed);
/// Tap order to PyTorch's order, on the pool's threads.
void from_tap_order(const ConvShape& shape, base::ThreadPool& pool, const float* packed, float* weights);

}  // namespace paceline::engine::cpu
