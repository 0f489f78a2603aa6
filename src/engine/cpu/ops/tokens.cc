// Compiled position and class token. Their parameters' gradients are sums over samples: over those of a
// shard in their order, over shards in the tree.

#include <algorithm>
#include <array>

#include "base/summation_tree.h"
#include "engine/cpu/ops/factories.h"
#include "engine/cpu/parallel.h"
#include "graph/ops.h"

namespace paceline::engine::cpu {
namespace {

/// gradient[i] = the sum over the batch of d_dst[sample][i], for the first `count` elements of each sample.
void sum_over_batch(const ExecContext& exec, const void* d_dst, const Value& dst, std::int64_t count,
                    float* gradient) {
  constexpr std::int64_t kBlock = 256;
  constexpr int kLevels = 32;
  const std::int64_t stride = dst.shape.elements(), size = bytes_of(dst.gradient_storage);
  const int samples = exec.options.shard > 0 ? exec.options.shard : exec.options.batch;
  const int shards = exec.options.batch / samples;
  const auto sum = [&](int shard, std::int64_t first, std::int64_t elements, float* to) {
    const auto* from = static_cast<const std::byte*>(d_dst) + (shard * samples * stride + first) * size;
    exec.typed(dst.gradient_storage).sum_samples(from, stride, samples, to, elements);
  };
  parallel_ranges(
      exec.pool, count, std::max<std::int64_t>(16, least_of(exec.options.batch)), [&](int, Range part) {
        if (shards == 1) return sum(0, part.begin, part.size(), gradient + part.begin);
        alignas(64) std::array<std::array<float, kBlock>, kLevels> levels;
        for (std::int64_t first = part.begin; first < part.end; first += kBlock) {
          const std::int64_t elements = std::min(kBlock, part.end - first);
          base::TreeCounter counter;
          for (int shard = 0; shard < shards; ++shard) {
            const bool is_last = shard + 1 == shards;
            float* to =
                is_last ? gradient + first : levels[static_cast<std::size_t>(counter.next_level())].data();
            sum(shard, first, elements, to);
            const auto join = [&](int level) {
              exec.kernels.accumulate(levels[static_cast<std::size_t>(level)].data(), to, elements);
            };
            is_last ? counter.join_last(join) : counter.add(join);
          }
        }
      });
}

class PositionOp final : public OwnKernelOp {
 public:
  explicit PositionOp(const OpArguments& a)
      : OwnKernelOp(a),
        weight_at_(a.build.parameter(0)),
        learns_(graph::learns(a.build.graph, a.build.node)) {}

  void forward(ExecContext& exec) override {
    const std::int64_t places = dst_.pixels(), channels = dst_.shape.channels;
    const std::int64_t row_bytes = channels * bytes_of(dst_.storage);
    over_pixels(exec, dst_, [&](Range rows) {
      for (std::int64_t row = rows.begin, next = 0; row < rows.end; row = next) {
        const std::int64_t place = row % places;
        next = std::min(rows.end, row + places - place);
        exec.typed(dst_.storage)
            .add_floats(exec.memory.at(src_.buffer) + row * row_bytes,
                        exec.weights + weight_at_ + place * channels,
                        exec.memory.at(dst_.buffer) + row * row_bytes, (next - row) * channels);
      }
    });
  }
  void backward(ExecContext& exec) override {
    float* const gradient = exec.gradients + weight_at_;
    if (!learns_) std::fill_n(gradient, dst_.shape.elements(), 0.0f);
    if (!learns_ && !d_src_) return;
    const std::byte* d_dst = static_cast<const std::byte*>(merged_gradient(exec, dst_));
    if (learns_) sum_over_batch(exec, d_dst, dst_, dst_.shape.elements(), gradient);
    std::byte* d_src = exec.memory.at(d_src_);
    if (d_src == nullptr || d_src == d_dst) return;
    const std::int64_t row_bytes = dst_.shape.channels * bytes_of(dst_.gradient_storage);
    over_pixels(exec, dst_, [&](Range rows) {
      std::copy_n(d_dst + rows.begin * row_bytes, rows.size() * row_bytes, d_src + rows.begin * row_bytes);
    });
  }

 private:
  const std::int64_t weight_at_;
  const bool learns_;
};

class ClassTokenOp final : public OwnKernelOp {
 public:
  explicit ClassTokenOp(const OpArguments& a)
      : OwnKernelOp(a),
        weight_at_(a.build.parameter(0)),
        learns_(graph::learns(a.build.graph, a.build.node)) {}

  void forward(ExecContext& exec) override {
    const std::int64_t bytes = src_.shape.elements() * bytes_of(src_.storage);
    const std::int64_t token = dst_.shape.channels * bytes_of(dst_.storage);
    exec.pool.run(exec.options.batch, [&](int n, int) {
      std::byte* dst = exec.memory.at(dst_.buffer) + n * (token + bytes);
      exec.typed(dst_.storage).from_float(exec.weights + weight_at_, dst, false, dst_.shape.channels);
      std::copy_n(exec.memory.at(src_.buffer) + n * bytes, bytes, dst + token);
    });
  }
  void backward(ExecContext& exec) override {
    float* const gradient = exec.gradients + weight_at_;
    if (!learns_) std::fill_n(gradient, dst_.shape.channels, 0.0f);
    if (!learns_ && !d_src_) return;
    const auto* d_dst = static_cast<const std::byte*>(merged_gradient(exec, dst_));
    if (learns_) sum_over_batch(exec, d_dst, dst_, dst_.shape.channels, gradient);
    if (!d_src_) return;
    const std::int64_t size = bytes_of(dst_.gradient_storage);
    const std::int64_t bytes = src_.shape.elements() * size, token = dst_.shape.channels * size;
    exec.pool.run(exec.options.batch, [&](int n, int) {
      std::copy_n(d_dst + n * (token + bytes) + token, bytes, exec.memory.at(d_src_) + n * bytes);
    });
  }

 private:
  const std::int64_t weight_at_;
  const bool learns_;
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::Position&, const OpArguments& a) {
  return std::make_unique<PositionOp>(a);
}
std::unique_ptr<CompiledOp> make_op(const graph::ClassToken&, const OpArguments& a) {
  return std::make_unique<ClassTokenOp>(a);
}

}  // namespace paceline::engine::cpu
