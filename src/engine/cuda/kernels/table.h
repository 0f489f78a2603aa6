#pragma once

/// The table of all kernels. A kernel's number is its index in `Kernels`; host and device code find the
/// kernel by it.
///
/// A new kernel is a struct in a header of this folder and a line here.

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>

#include "engine/cuda/kernels/attention.h"
#include "engine/cuda/kernels/batch_norm.h"
#include "engine/cuda/kernels/batch_norm_backward.h"
#include "engine/cuda/kernels/channel_copies.h"
#include "engine/cuda/kernels/clip.h"
#include "engine/cuda/kernels/columns.h"
#include "engine/cuda/kernels/elementwise.h"
#include "engine/cuda/kernels/gather.h"
#include "engine/cuda/kernels/group_norm.h"
#include "engine/cuda/kernels/kernel.h"
#include "engine/cuda/kernels/layer_norm.h"
#include "engine/cuda/kernels/loss_scale.h"
#include "engine/cuda/kernels/pad.h"
#include "engine/cuda/kernels/pool.h"
#include "engine/cuda/kernels/products.h"
#include "engine/cuda/kernels/softmax_cross_entropy.h"
#include "engine/cuda/kernels/step_report.h"
#include "engine/cuda/kernels/tokens.h"
#include "engine/cuda/kernels/update.h"
#include "engine/cuda/kernels/weights.h"

namespace paceline::engine::cuda {

/// What BatchNormOp and its tests start: see with_ways_of().
template <typename T>
using BatchNormGradientKernels =
    std::tuple<BatchNormGradientSums<T, ReluMask::none, false, false>,
               BatchNormGradientSums<T, ReluMask::none, false, true>,
               BatchNormGradientSums<T, ReluMask::none, true, true>,
               BatchNormGradientSums<T, ReluMask::from_dst, false, true>,
               BatchNormGradientSums<T, ReluMask::from_dst, true, true>,
               BatchNormGradientSums<T, ReluMask::from_src, false, false>,
               BatchNormGradientSums<T, ReluMask::from_src, true, true>,
               BatchNormGradientApply<T, ReluMask::none>, BatchNormGradientApply<T, ReluMask::from_src>>;

/// Kernels that exist for each storage type T.
template <typename T>
using StorageKernels =
    std::tuple<InputImages<T>, BatchNormSums<T>, BatchNormApply<T>,
#define PACELINE_KERNELS(Op, name) Op<T>, Op##Backward<T>,
               PACELINE_ELEMENTWISE_OPS(PACELINE_KERNELS)
#undef PACELINE_KERNELS
                   Add<T>,
               AddRelu<T>, BiasAdd<T>, BiasGradientSums<T>, MaxPoolForward<T>, MaxPoolBackward<T>,
               AveragePoolForward<T>, AveragePoolBackward<T>, GlobalAveragePoolForward<T>,
               GlobalAveragePoolBackward<T>, Dropout<T>, Scale<T>, ScaleGradient<T>, StochasticDepth<T>,
               CopyChannels<T>, PlaceImage<T>, SoftmaxLoss<T>, SoftmaxBackward<T>, PackWeights<T>,
               UnpackGradient<T>, GatherImages<T>, LayerNormForward<T>, LayerNormGradient<T>,
               RowGradientSums<T>, ScaleChannels<T>, AddPosition<T>, SumSamples<T>, PutToken<T>, DropToken<T>,
               AttentionForward<T>, AttentionGradientOfQueries<T>, AttentionGradientOfKeys<T>>;

template <typename T, typename... Rules>
std::tuple<Update<Rules, T>...> updates_by(std::tuple<Rules...>);  // declared only

using Kernels = decltype(std::tuple_cat(
    StorageKernels<float>{}, StorageKernels<Bf16>{}, StorageKernels<Half>{},
    BatchNormGradientKernels<float>{}, BatchNormGradientKernels<Bf16>{}, BatchNormGradientKernels<Half>{},
    updates_by<float>(UpdateRules{}), updates_by<Bf16>(UpdateRules{}), updates_by<Half>(UpdateRules{}),
    std::tuple<SumFold, BatchNormStatistics, BatchNormRunning, BatchNormGradients, BiasGradient, LossFold,
               WriteVotes, JudgeVotes, LarsNorms, LambNorms, LarsRates, GradientSquares, AddSquares,
               ClipFactor, ClipGradients, UnscaleGradients, JudgeLossScale, RunningStatistics, ArrayFill,
               ArrayCopy, ArrayAdd, ArrayMix, ArrayTreeLevel, RowGradients, GroupNormStatistics,
               GroupNormCoefficients, GroupNormGradients>{}));

// A class with a base for each row of the table: the compiler finds a kernel's number among the bases of this
// one class. A recursion through the table would instantiate thousands of tuples for each kernel.
template <typename Kernel, std::size_t number>
struct KernelRow {};
template <typename Table, typename Numbers = std::make_index_sequence<std::tuple_size_v<Table>>>
struct KernelRows;
template <typename... Kernel, std::size_t... number>
struct KernelRows<std::tuple<Kernel...>, std::index_sequence<number...>> : KernelRow<Kernel, number>... {};
template <typename Kernel, std::size_t number>
std::integral_constant<int, static_cast<int>(number)> number_in(
    const KernelRow<Kernel, number>*);  // declared only

/// The number of `Kernel`. Does not compile for a kernel that is not in the table.
template <typename Kernel>
constexpr int kKernelNumber =
    decltype(number_in<Kernel>(static_cast<const KernelRows<Kernels>*>(nullptr)))::value;
constexpr int kKernelCount = static_cast<int>(std::tuple_size_v<Kernels>);

template <typename Table>
struct KernelSizes;
template <typename... Kernel>
struct KernelSizes<std::tuple<Kernel...>> {
  static constexpr std::array<std::size_t, sizeof...(Kernel)> value{sizeof(Kernel)...};
};
/// The size of each kernel, by its number.
constexpr auto kKernelBytes = KernelSizes<Kernels>::value;

}  // namespace paceline::engine::cuda
