#pragma once

/// Convolution weights as [tap][in][out], the order of the products that go tap by tap.
///
/// Flat weights are PyTorch's: [out][in][tap].

#include "engine/cpu/conv/kernel.h"

namespace paceline::engine::cpu {

/// shape.weights() floats each.
void to_tap_order(const ConvShape& shape, const float* weights, float* packed);
/// The way back, on the pool's threads.
void from_tap_order(const ConvShape& shape, base::ThreadPool& pool, const float* packed, float* weights);

}  // namespace paceline::engine::cpu
