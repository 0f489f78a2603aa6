#pragma once

/// The ways to compute a convolution or a dense layer, and which of them a direction takes.
///
/// An ordered list: own kernels first, oneDNN, which can compute anything, last.

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/cpu/conv/kernel.h"

namespace paceline::engine::cpu {

enum class Method {
  amx,          ///< tile products by AMX-BF16
  avx512_bf16,  ///< by AVX512-BF16
  winograd,
  taps,
  turned,  ///< backward data as oneDNN's forward product of turned weights
  onednn,
  // In no list, for tests to ask for: the tile products with their unit emulated.
  emulated_amx,
  emulated_avx512,
};
inline constexpr std::array kMethods = {Method::amx,  Method::avx512_bf16, Method::winograd,
                                        Method::taps, Method::turned,      Method::onednn};

[[nodiscard]] std::string_view name_of(Method method);

/// Why `method` cannot compute `product`; empty when it can.
[[nodiscard]] std::optional<std::string> refusal(Method method, const ConvProblem& problem);

/// Whether Winograd can compute it, and fewer multiplications outweigh its transforms.
[[nodiscard]] bool suits_winograd(const ConvProblem& problem);

/// What the shape wants by rule, among those that can. The rules are measurements of one machine
/// (docs/decisions/cpu-layout.md, winograd.md, measured-kernels.md); tuning_cache.h has what was measured on
/// this one.
[[nodiscard]] Method usual_method(const ConvProblem& problem);

/// One sentence: why `chosen` and not each of the others; `measured`: their times on this machine said so.
[[nodiscard]] std::string why_not_others(Method chosen, const ConvProblem& problem, bool measured);

/// Samples of a chunk, for a direction of `batch` by `method`.
[[nodiscard]] int samples_of_chunk(Method method, const ConvShape& batch, Direction direction);

/// The kernel for one chunk; see make_onednn_kernel for `like`.
[[nodiscard]] std::unique_ptr<ConvKernel> make_kernel(Method method, const ConvShape& chunk,
                                                      Direction direction, const ConvKernel* like);

}  // namespace paceline::engine::cpu
