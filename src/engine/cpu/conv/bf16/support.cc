#include "engine/cpu/conv/bf16/support.h"

#include <cpuid.h>
#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/buffer.h"
#include "base/dtype.h"
#include "base/rng.h"
#include "engine/cpu/conv/bf16/algorithms.h"
#include "engine/program.h"

namespace paceline::engine::cpu::tiles {
namespace {

/// One register of the processor's description, leaf 7.
struct Leaf7 {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  explicit Leaf7(unsigned subleaf) {
    if (__get_cpuid_count(7, subleaf, &eax, &ebx, &ecx, &edx) == 0) eax = ebx = ecx = edx = 0;
  }
};

std::optional<std::string> absence_of(Unit unit) {
  constexpr unsigned kAmxBf16 = 1U << 22, kAmxTile = 1U << 24;  // subleaf 0, edx
  const bool is_amx = unit == Unit::amx;
  const bool is_here = has(Isa::avx512_bf16);  // as far as the system enables it
  if (!isa_limit().empty() && (is_amx || !is_here))
    return fmt::format("needs {}, and PACELINE_MAX_CPU_ISA is {}", is_amx ? "AMX-BF16" : "AVX512-BF16",
                       isa_limit());
  if (!is_amx)
    return is_here ? std::nullopt
                   : std::optional<std::string>("needs AVX512-BF16, which this processor does not have");
  if (!is_here || (Leaf7(0).edx & (kAmxBf16 | kAmxTile)) != (kAmxBf16 | kAmxTile))
    return "needs AMX-BF16, which this processor does not have";
  // Linux enables the large tile registers only for processes that request them
  // (Documentation/x86/xstate.rst).
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  if (::syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0)
    return fmt::format(
        "needs the tile registers, which the system refused ({}); Linux 5.16 and later offer "
        "them",
        std::strerror(errno));
  return std::nullopt;
}

/// A 3x3 convolution with padding 1 and a bias.
ConvShape small_convolution(int samples, const graph::Shape& src, int outs, int stride) {
  return {.samples = samples,
          .src = src,
          .dst = {.channels = outs,
                  .height = (src.height - 1) / stride + 1,
                  .width = (src.width - 1) / stride + 1},
          .kernel = 3,
          .stride = stride,
          .padding = 1,
          .bias = true,
          .type = Storage::bf16,
          .dst_type = Storage::bf16};
}

std::vector<float> random_values(std::int64_t count, std::uint64_t seed) {
  base::Rng rng(seed, base::Purpose::test);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = 4 * rng.uniform() - 2;  // normal ones would take most of a start's time
  return values;
}

/// The values of a shape's operands; every kernel gets the same.
struct Operands {
  std::vector<float> src, d_dst, weights, bias;
  explicit Operands(const ConvShape& s)
      : src(random_values(s.samples * s.src.elements(), 1)),
        d_dst(random_values(s.samples * s.dst.elements(), 2)),
        weights(random_values(s.weights(), 3)),
        bias(random_values(s.dst.channels, 4)) {}
};

std::vector<std::uint16_t> as_bf16(const std::vector<float>& values) {
  std::vector<std::uint16_t> rounded;
  for (const float value : values) rounded.push_back(base::to_bf16(value).bits);
  return rounded;
}

/// One direction's results, in float.
std::vector<float> results(const ConvShape& s, const Operands& of, Direction direction,
                           const TileKernels& kernels) {
  const auto src = as_bf16(of.src), d_dst = as_bf16(of.d_dst);
  const auto &weights = of.weights, &bias = of.bias;
  const Bf16Algorithm& algorithm = usual_bf16_algorithm(s, direction, kernels);
  const bool is_gradient = direction == Direction::backward_weights;
  const auto reader = is_gradient ? nullptr : algorithm.make_reader(s, direction, kernels);
  const auto wgrad = is_gradient ? algorithm.make_wgrad(s, kernels) : nullptr;
  const ConvKernel& kernel = is_gradient ? static_cast<const ConvKernel&>(*wgrad) : *reader;
  const auto buffer = [](std::int64_t bytes) {  // filled with NaN, so that reading anything unwritten shows
    base::Buffer made(static_cast<std::size_t>(whole_lines(std::max<std::int64_t>(bytes, 1))));
    std::ranges::fill(made.as<std::uint32_t>(), 0x7fffffffu);
    return made;
  };
  auto packed = buffer(kernel.packed_bytes());
  auto scratchpad = buffer(kernel.scratchpad_bytes());
  std::vector<std::uint16_t> written(direction == Direction::backward_data ? src.size() : d_dst.size(),
                                     0x7fff);
  std::vector<float> gradient(weights.size()), d_bias(bias.size());
  if (reader) reader->pack(weights.data(), packed.data());
  for (int part = 0; part < kernel.parts(); ++part)
    kernel.run({.src = src.data(),
                .dst = written.data(),
                .d_src = written.data(),
                .d_dst = d_dst.data(),
                .packed = packed.data(),
                .bias = bias.data(),
                .d_weight = packed.as<float>().data(),
                .d_bias = d_bias.data(),
                .scratchpad = scratchpad.data()},
               part);
  if (wgrad) {
    base::ThreadPool here(1);
    wgrad->unpack(here, packed.as<float>().data(), gradient.data());
    gradient.insert(gradient.end(), d_bias.begin(), d_bias.end());
    return gradient;
  }
  std::vector<float> values;
  for (const std::uint16_t bits : written) values.push_back(base::to_float({bits}));
  return values;
}

std::vector<float> through_bf16(std::vector<float> values) {
  for (float& value : values) value = base::to_float(base::to_bf16(value));
  return values;
}

/// The results that are right, by plain loops: sums of at most some thousand terms in float, whose error is a
/// tenth of what trouble_with() allows.
std::vector<float> plain_sums(const ConvShape& s, const Operands& of, Direction direction) {
  const auto src = through_bf16(of.src), d_dst = through_bf16(of.d_dst), weights = through_bf16(of.weights);
  const int ins = s.src.channels, outs = s.dst.channels, taps = s.kernel * s.kernel;
  const bool is_backward_data = direction == Direction::backward_data;
  // [tap][in][out], or [tap][out][in] for backward data: inner loops run over neighbours.
  const auto place = [&](int tap, int in, int out) {
    return static_cast<std::size_t>(is_backward_data ? (tap * outs + out) * ins + in
                                                     : (tap * ins + in) * outs + out);
  };
  const auto in_pytorch = [&](int tap, int in, int out) {
    return static_cast<std::size_t>((out * ins + in) * taps + tap);
  };
  const auto for_each_weight = [&](const auto& visit) {
    for (int tap = 0; tap < taps; ++tap)
      for (int in = 0; in < ins; ++in)
        for (int out = 0; out < outs; ++out) visit(place(tap, in, out), in_pytorch(tap, in, out));
  };
  const auto add = [](int count, float factor, const float* values, float* sums) {
    for (int i = 0; i < count; ++i) sums[i] += factor * values[i];
  };
  std::vector<float> turned(weights.size()), dst(d_dst.size()), d_src(src.size()), d_weight(weights.size()),
      d_bias(of.bias.size());
  for_each_weight([&](std::size_t to, std::size_t from) { turned[to] = weights[from]; });
  for (int n = 0; n < s.samples; ++n)
    for (int p = 0; p < s.dst.height; ++p)
      for (int q = 0; q < s.dst.width; ++q) {
        const std::int64_t o = ((std::int64_t{n} * s.dst.height + p) * s.dst.width + q) * outs;
        add(outs, 1, of.bias.data(), &dst[static_cast<std::size_t>(o)]);
        add(outs, 1, &d_dst[static_cast<std::size_t>(o)], d_bias.data());
        for (int tap = 0; tap < taps; ++tap) {
          const int y = p * s.stride - s.padding + tap / s.kernel;
          const int x = q * s.stride - s.padding + tap % s.kernel;
          if (y < 0 || y >= s.src.height || x < 0 || x >= s.src.width) continue;
          const std::int64_t i = ((std::int64_t{n} * s.src.height + y) * s.src.width + x) * ins;
          const float *from = &src[static_cast<std::size_t>(i)], *d = &d_dst[static_cast<std::size_t>(o)];
          if (is_backward_data)
            for (int k = 0; k < outs; ++k)
              add(ins, d[k], &turned[place(tap, 0, k)], &d_src[static_cast<std::size_t>(i)]);
          else if (direction == Direction::forward)
            for (int c = 0; c < ins; ++c)
              add(outs, from[c], &turned[place(tap, c, 0)], &dst[static_cast<std::size_t>(o)]);
          else
            for (int c = 0; c < ins; ++c) add(outs, from[c], d, &d_weight[place(tap, c, 0)]);
        }
      }
  if (direction == Direction::forward) return through_bf16(dst);
  if (is_backward_data) return through_bf16(d_src);
  for_each_weight([&](std::size_t from, std::size_t to) { turned[to] = d_weight[from]; });
  turned.insert(turned.end(), d_bias.begin(), d_bias.end());
  return turned;
}

}  // namespace

std::optional<std::string> trouble_with(const TileKernels& kernels) {
  for (const ConvShape& shape :
       {// Channels that fill no block, one and a half blocks of samples; rows of pixels, or single ones.
        small_convolution(37, {40, 5, 7}, 35, 1), small_convolution(37, {40, 5, 7}, 35, 2),
        // Strips of long rows: tall; two rows of three tiles in one strip.
        small_convolution(2, {32, 3, 37}, 64, 1), small_convolution(2, {32, 6, 74}, 64, 2),
        // Of short rows: two images side by side. Then whole tiles one below the other.
        small_convolution(2, {32, 3, 8}, 64, 1), small_convolution(2, {32, 6, 16}, 64, 2),
        small_convolution(2, {32, 6, 32}, 64, 2),
        // The gradient by pairs of samples: two pairs in each pixel, with one sample missing.
        small_convolution(3, {32, 5, 15}, 64, 2)}) {
    const Operands of(shape);
    for (const Direction direction :
         {Direction::forward, Direction::backward_data, Direction::backward_weights}) {
      const auto got = results(shape, of, direction, kernels), want = plain_sums(shape, of, direction);
      // Sums in float differ in their last bits, and then fall on the other side of a rounding to bf16.
      float largest = 0;
      for (const float value : want) largest = std::max(largest, std::abs(value));
      const float relative = direction == Direction::backward_weights ? 0.0F : 0x1p-7F;
      for (std::size_t i = 0; i < want.size(); ++i)
        if (!(std::abs(got[i] - want[i]) <= relative * std::abs(want[i]) + 1e-5F * largest))
          return fmt::format("computes wrong results: {} gives {} where {} is right (value {} of {})",
                             name_of(direction), got[i], want[i], i, want.size());
    }
  }
  return std::nullopt;
}

std::optional<std::string> refusal_of(Unit unit) {
  const auto find = [](Unit wanted) {
    auto refusal = absence_of(wanted);
    return refusal ? refusal : trouble_with(kernels_of(wanted));
  };
  static const std::array<std::optional<std::string>, kUnits.size()> refusals = {find(kUnits[0]),
                                                                                 find(kUnits[1])};
  return refusals[unit == kUnits[0] ? 0 : 1];
}

std::optional<std::string> refusal_to_multiply(std::optional<Unit> unit, const ConvShape& s) {
  if (s.type != Storage::bf16 && !s.in_blocks) return "is for bf16";
  if (unit)
    if (auto refused = refusal_of(*unit)) return refused;
  if (s.in_blocks) return "multiplies bf16, and this run multiplies float copies";
  return std::nullopt;
}

}  // namespace paceline::engine::cpu::tiles
