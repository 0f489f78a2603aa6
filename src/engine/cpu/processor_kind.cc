#include "engine/cpu/processor_kind.h"

#include <cpuid.h>
#include <fmt/core.h>
#include <fmt/format.h>
#include <omp.h>

#include <array>
#include <cstring>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "engine/cpu/conv/bf16/support.h"
#include "engine/cpu/kernels/isa.h"
#include "engine/cpu/ops/compiled_op.h"
#include "engine/cpu/parallel.h"

namespace paceline::engine::cpu {
namespace {

using dnnl::memory;

/// One thread's matrix product, [kSide][kSide] times [kSide][kSide], in the layouts that oneDNN prefers.
class Product {
 public:
  static constexpr memory::dim kSide = 512;
  static constexpr double kFlops = 2.0 * kSide * kSide * kSide;

  Product(const dnnl::engine& engine, Precision precision) : engine_(engine), stream_(engine) {
    const auto type = precision == Precision::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
    const memory::desc any({kSide, kSide}, type, memory::format_tag::any);
    const dnnl::inner_product_forward::desc wanted(dnnl::prop_kind::forward_inference, any, any, any);
    const dnnl::inner_product_forward::primitive_desc found(wanted, engine_);
    product_ = dnnl::inner_product_forward(found);
    for (const auto& desc : {found.src_desc(), found.weights_desc(), found.dst_desc()}) {
      arrays_.emplace_back(desc, engine_);
      std::memset(arrays_.back().get_data_handle(), 0, desc.get_size());
    }
  }
  void run() {
    product_.execute(
        stream_, {{DNNL_ARG_SRC, arrays_[0]}, {DNNL_ARG_WEIGHTS, arrays_[1]}, {DNNL_ARG_DST, arrays_[2]}});
    stream_.wait();
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::inner_product_forward product_;
  std::vector<memory> arrays_;
};

double flops_per_s(base::ThreadPool& pool, Precision precision) {
  constexpr int kRounds = 4;  // of a thread between two readings of the clock
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  std::vector<std::unique_ptr<Product>> products(static_cast<std::size_t>(pool.threads()));
  const auto work = [&] {
    pool.run(pool.threads(), [&](int item, int) {
      auto& product = products[static_cast<std::size_t>(item)];
      if (!product) product = std::make_unique<Product>(engine, precision);
      for (int i = 0; i < kRounds; ++i) product->run();
    });
  };
  return Product::kFlops * kRounds * pool.threads() / seconds_of(work, 8);
}

double bytes_per_s(base::ThreadPool& pool) {
  constexpr std::size_t kBytes = std::size_t{128} << 20;
  base::Buffer from(kBytes), to(kBytes);
  const std::size_t each = kBytes / static_cast<std::size_t>(pool.threads());
  bool is_touched = false;
  const auto copy = [&] {
    pool.run(pool.threads(), [&](int item, int) {
      const auto begin = static_cast<std::size_t>(item) * each;
      if (!is_touched) std::memset(from.data() + begin, 1, each);
      std::memcpy(to.data() + begin, from.data() + begin, each);
    });
    is_touched = true;
  };
  const double seconds = seconds_of(copy, 4);
  return 2.0 * static_cast<double>(each) * pool.threads() / seconds;
}

constexpr std::array kMeasured = {
    PrecisionRow{.vendor = "GenuineIntel",
                 .units = "amx",
                 .family = 6,
                 .model = 167,
                 .bf16_over_fp32 = 0.27,
                 .record = "bf16-over-fp32-amx.json"},
    PrecisionRow{.vendor = "GenuineIntel",
                 .units = "avx512-bf16",  // the same held to it by the environment
                 .family = 6,
                 .model = 167,
                 .bf16_over_fp32 = 1.03,
                 .record = "bf16-over-fp32-without-tiles-amx.json"},
    PrecisionRow{.vendor = "AuthenticAMD",
                 .units = "avx512-bf16",
                 .family = 25,
                 .model = 17,  // Zen 4
                 .bf16_over_fp32 = 0.87,
                 .record = "step-vs-pytorch-zen4-batch128.json"},
    PrecisionRow{.vendor = "AuthenticAMD",
                 .units = "avx512-bf16",
                 .family = 26,
                 .model = 2,  // Zen 5
                 .bf16_over_fp32 = 0.86,
                 .record = "bf16-over-fp32-zen5.json"},
};

bool is_bf16_faster(const PrecisionRow& row) { return row.bf16_over_fp32 < 1; }

ProcessorKind found() {
  ProcessorKind kind;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(0, &eax, &ebx, &ecx, &edx) != 0) {
    char vendor[13] = {};
    std::memcpy(vendor, &ebx, 4);
    std::memcpy(vendor + 4, &edx, 4);
    std::memcpy(vendor + 8, &ecx, 4);
    kind.vendor = vendor;
  }
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0) {
    // Intel's manual, CPUID leaf 1: the extended parts count from family 15 on; Intel's model also in
    // family 6.
    const unsigned family = eax >> 8 & 0xf, model = eax >> 4 & 0xf;
    const unsigned more_family = eax >> 20 & 0xff, more_model = eax >> 16 & 0xf;
    kind.family = static_cast<int>(family == 0xf ? family + more_family : family);
    kind.model = static_cast<int>(family == 0xf || family == 6 ? more_model << 4 | model : model);
  }
  kind.units = tiles::refusal_of(tiles::Unit::amx) ? name_of(isas_here().back()) : "amx";
  return kind;
}

}  // namespace

Peak measure_peak(int threads, Precision precision) {
  base::expects(threads >= 1, "somebody computes");
  const OneThread one_thread;  // of the caller, who is a thread of the pool
  try {
    base::ThreadPool pool(threads, [] { omp_set_num_threads(1); });
    return {.flops_per_s = flops_per_s(pool, precision), .bytes_per_s = bytes_per_s(pool)};
  } catch (const dnnl::error& error) {
    base::fail(base::ErrorKind::device, "the peak of {} threads: oneDNN answered \"{}\" ({})", threads,
               error.message, static_cast<int>(error.status));
  }
}

std::span<const PrecisionRow> precision_table() { return kMeasured; }

AutoPrecision prefers(const ProcessorKind& kind, std::span<const PrecisionRow> table) {
  bool is_known = false, are_all_faster = true;
  for (const PrecisionRow& row : table) {
    if (row.units != kind.units) continue;
    if (row.vendor == kind.vendor && row.family == kind.family && row.model == kind.model)
      return {is_bf16_faster(row) ? Precision::bf16 : Precision::f32,
              fmt::format("a step in bf16 takes {:.2f} of fp32's time on this kind of processor ({})",
                          row.bf16_over_fp32, row.record)};
    is_known = true;
    are_all_faster = are_all_faster && is_bf16_faster(row);
  }
  if (is_known && are_all_faster)
    return {Precision::bf16,
            fmt::format("this kind of processor ({}) was not measured; all that were, with the "
                        "same units, are faster in bf16",
                        name_of(kind))};
  return {Precision::f32,
          fmt::format("the units for bf16 are there, but no measurement of this kind of processor "
                      "({}) says that bf16 is faster; --precision bf16 tries it",
                      name_of(kind))};
}

const ProcessorKind& processor_here() {
  static const ProcessorKind kind = found();
  return kind;
}

std::string name_of(const ProcessorKind& kind) {
  return fmt::format("{}-{}-{}-{}", kind.vendor.empty() ? "unknown" : kind.vendor, kind.family, kind.model,
                     kind.units);
}

}  // namespace paceline::engine::cpu
