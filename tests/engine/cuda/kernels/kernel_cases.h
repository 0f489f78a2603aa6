#pragma once

/// Cases that a device must compute as the host does: each kernel of table.h with arrays of its own. They are
/// made twice from the same random numbers, for the host's memory and for the device's.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/cuda/kernels/kernel_runs.h"

namespace paceline::engine::cuda {

/// Whether an element of the device's is as good as the host's.
using IsNear = bool (*)(const std::byte* device, const std::byte* host);

/// The bits of a NaN differ between devices: a processor keeps those of an operand, and a GPU has one NaN.
template <typename T>
bool are_both_nan(const std::byte* device, const std::byte* host) {
  T a, b;
  std::memcpy(&a, device, sizeof a);
  std::memcpy(&b, host, sizeof b);
  if constexpr (std::is_same_v<T, Bf16>)
    return std::isnan(load(a)) && std::isnan(load(b));
  else
    return std::isnan(a) && std::isnan(b);
}

/// The same bits, but that any two NaNs are equal.
template <typename T>
bool has_same_bits(const std::byte* device, const std::byte* host) {
  if (std::memcmp(device, host, sizeof(T)) == 0) return true;
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, Bf16>)
    return are_both_nan<T>(device, host);
  else if constexpr (std::is_same_v<T, LossResult> ||
                     std::is_same_v<T, StepReport>)  // they begin with a loss
    return are_both_nan<double>(device, host) &&
           std::memcmp(device + sizeof(double), host + sizeof(double), sizeof(T) - sizeof(double)) == 0;
  else
    return false;
}

/// The arrays of one kernel, collected on the host for memory at `base`, which may be a device's. They begin
/// at multiples of 256 bytes, and between them lie at least as many that nobody may write.
class KernelArrays {
 public:
  explicit KernelArrays(std::byte* base) : base_(base), contents_(kUnit, kPoison) {}

  template <typename T>
  const T* input(const std::vector<T>& values) {
    return put(values.data(), values.size());
  }
  /// What the kernel reads and writes.
  template <typename T>
  T* in_place(const std::vector<T>& values, IsNear is_near = has_same_bits<T>) {
    return listed(put(values.data(), values.size()), values.size(), is_near);
  }
  /// What the kernel writes: NaN before.
  template <typename T>
  T* output(std::size_t count, IsNear is_near = has_same_bits<T>) {
    return listed(put<T>(nullptr, count), count, is_near);
  }

  struct Output {
    std::size_t begin, end, element;  ///< bytes
    IsNear is_near;
  };
  [[nodiscard]] const std::vector<std::byte>& contents() const { return contents_; }
  [[nodiscard]] const std::vector<Output>& outputs() const { return outputs_; }

 private:
  static constexpr std::size_t kUnit = 256;
  static constexpr std::byte kPoison{0xff};

  /// Null: poison.
  template <typename T>
  T* put(const T* values, std::size_t count) {
    const std::size_t begin = contents_.size(), bytes = count * sizeof(T);
    contents_.resize((begin + bytes + kUnit - 1) / kUnit * kUnit + kUnit, kPoison);
    if (values != nullptr && bytes > 0) std::memcpy(contents_.data() + begin, values, bytes);
    return reinterpret_cast<T*>(base_ + begin);
  }
  template <typename T>
  T* listed(T* array, std::size_t count, IsNear is_near) {
    const auto begin = static_cast<std::size_t>(reinterpret_cast<std::byte*>(array) - base_);
    outputs_.push_back({begin, begin + count * sizeof(T), sizeof(T), is_near});
    return array;
  }

  std::byte* base_;
  std::vector<std::byte> contents_;
  std::vector<Output> outputs_;
};

struct KernelCase {
  struct Launch {
    std::vector<std::byte> arguments;
    Grid grid;
  };
  std::string name;  ///< "ReluBackward f32"
  int kernel;
  std::function<Launch(KernelArrays&)> make;
};

/// small: a few elements each, for tools that make kernels very slow.
enum class CaseSize { small, usual };

class KernelCases {
 public:
  explicit KernelCases(CaseSize size) : is_small(size == CaseSize::small) {}

  /// `make(KernelArrays&, std::mt19937&)` gives a kernel, from the same random numbers each time.
  template <typename Make>
  void add(std::string name, Make make) {
    using Kernel = std::invoke_result_t<Make, KernelArrays&, std::mt19937&>;
    cases.push_back({std::move(name), kKernelNumber<Kernel>, [make = std::move(make)](KernelArrays& arrays) {
                       std::mt19937 generator(29);
                       const Kernel kernel = make(arrays, generator);
                       KernelCase::Launch launch{std::vector<std::byte>(sizeof kernel), kernel.grid()};
                       std::memcpy(launch.arguments.data(), &kernel, sizeof kernel);
                       return launch;
                     }});
  }

  const bool is_small;
  std::vector<KernelCase> cases;
};

/// Kernels that are tested together.
struct KernelFamily {
  std::string name;
  void (*add_cases)(KernelCases&);
  [[nodiscard]] std::vector<KernelCase> cases(CaseSize size) const {
    KernelCases cases(size);
    add_cases(cases);
    return std::move(cases.cases);
  }
};

void add_elementwise_cases(KernelCases& cases);
void add_bias_cases(KernelCases& cases);
void add_product_cases(KernelCases& cases);
void add_dropout_cases(KernelCases& cases);
void add_pool_cases(KernelCases& cases);
void add_token_cases(KernelCases& cases);
void add_batch_norm_cases(KernelCases& cases);
void add_batch_norm_backward_cases(KernelCases& cases);
void add_sample_norm_cases(KernelCases& cases);
void add_softmax_cases(KernelCases& cases);
void add_flat_cases(KernelCases& cases);
void add_update_cases(KernelCases& cases);

/// Together they have every kernel of table.h, in both sizes.
inline const std::vector<KernelFamily>& kernel_families() {
  static const std::vector<KernelFamily> all = {
      {"Elementwise", add_elementwise_cases},
      {"Bias", add_bias_cases},
      {"Product", add_product_cases},
      {"Dropout", add_dropout_cases},
      {"Pool", add_pool_cases},
      {"Token", add_token_cases},
      {"BatchNorm", add_batch_norm_cases},
      {"BatchNormBackward", add_batch_norm_backward_cases},
      {"SampleNorm", add_sample_norm_cases},
      {"Softmax", add_softmax_cases},
      {"Flat", add_flat_cases},
      {"Update", add_update_cases},
  };
  return all;
}

template <typename T>
std::string named(const char* kernel) {
  return std::string(kernel) + (sizeof(T) == sizeof(float) ? " f32" : " bf16");
}

/// Calls add(T{}) for both storages.
template <typename Add>
void for_each_storage(const Add& add) {
  add(float{});
  add(Bf16{});
}

/// Random images with padding of 0.
template <typename T>
std::vector<T> random_images(std::mt19937& generator, const ImageShape& shape) {
  return to_storage<T>(shape, random_values<T>(generator, shape.elements())).values();
}

/// With all their digits: sums of rounded ones would be exact in any order.
inline std::vector<double> random_doubles(std::mt19937& generator, std::size_t count, double mean = 0,
                                          double deviation = 1) {
  std::normal_distribution<double> draw(mean, deviation);
  std::vector<double> values(count);
  for (double& value : values) value = draw(generator);
  return values;
}
inline std::vector<float> random_floats(std::mt19937& generator, std::size_t count) {
  return floats(random_values<float>(generator, count));
}
inline std::vector<float> positive_floats(std::mt19937& generator, std::size_t count, float least = 0.01f) {
  std::vector<float> values = random_floats(generator, count);
  for (float& value : values) value = std::abs(value) + least;
  return values;
}

}  // namespace paceline::engine::cuda
