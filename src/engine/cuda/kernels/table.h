#pragma once

/// The table of kernels: each has a number, its place in `Kernels`, by which host and device find it.
///
/// A new kernel is a struct in a header of this folder and a line here.

#include <tuple>
#include <type_traits>

#include "engine/cuda/kernels/kernel.h"

namespace paceline::engine::cuda {

using Kernels = std::tuple<>;

template <typename Kernel, typename Table>
struct KernelNumber;
template <typename Kernel, typename... Rest>
struct KernelNumber<Kernel, std::tuple<Kernel, Rest...>> {
  static constexpr int value = 0;
};
template <typename Kernel, typename First, typename... Rest>
struct KernelNumber<Kernel, std::tuple<First, Rest...>> {
  static constexpr int value = 1 + KernelNumber<Kernel, std::tuple<Rest...>>::value;
};

/// The place of `Kernel` in the table. A kernel that is not in it does not compile.
template <typename Kernel>
constexpr int kKernelNumber = KernelNumber<Kernel, Kernels>::value;
constexpr int kKernelCount = static_cast<int>(std::tuple_size_v<Kernels>);

}  // namespace paceline::engine::cuda
