#include "engine/cpu/peak.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/thread_pool.h"

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

/// The shortest of `repeats` calls, after a warm-up call.
template <typename Work>
double best_seconds(int repeats, const Work& work) {
  work();
  double best = 0;
  for (int i = 0; i < repeats; ++i) {
    const auto begin = base::Clock::now();
    work();
    const double seconds = base::seconds_since(begin);
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

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
  return Product::kFlops * kRounds * pool.threads() / best_seconds(8, work);
}

double bytes_per_s(base::ThreadPool& pool) {
  constexpr std::size_t kBytes = std::size_t{128} << 20;
  base::Buffer from(kBytes), to(kBytes);
  const std::size_t each = kBytes / static_cast<std::size_t>(pool.threads());
  bool is_touched = false;
  const double seconds = best_seconds(4, [&] {
    pool.run(pool.threads(), [&](int item, int) {
      const auto begin = static_cast<std::size_t>(item) * each;
      if (!is_touched) std::memset(from.data() + begin, 1, each);
      std::memcpy(to.data() + begin, from.data() + begin, each);
    });
    is_touched = true;
  });
  return 2.0 * static_cast<double>(each) * pool.threads() / seconds;
}

}  // namespace

Peak measure_peak(int threads, Precision precision) {
  base::expects(threads >= 1, "somebody computes");
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);  // of the caller, who is a thread of the pool
  Peak peak;
  try {
    base::ThreadPool pool(threads, [] { omp_set_num_threads(1); });
    peak = {.flops_per_s = flops_per_s(pool, precision), .bytes_per_s = bytes_per_s(pool)};
  } catch (const dnnl::error& error) {
    omp_set_num_threads(before);
    base::fail(base::ErrorKind::device, "the peak of {} threads: oneDNN answered \"{}\" ({})", threads,
               error.message, static_cast<int>(error.status));
  }
  omp_set_num_threads(before);
  return peak;
}

}  // namespace paceline::engine::cpu
