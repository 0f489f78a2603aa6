// Compiled pad: the input lies somewhere in the output, between zeros. The gradient is the pad by the
// negative numbers.

#include <algorithm>
#include <cstring>

#include "engine/cpu/ops/factories.h"
#include "engine/cpu/parallel.h"

namespace paceline::engine::cpu {
namespace {

class PadOp final : public OwnKernelOp {
 public:
  PadOp(const graph::Pad& pad, const OpArguments& a) : OwnKernelOp(a), pad_(pad) {}

  void forward(ExecContext& exec) override {
    place(exec, exec.memory.at(src_.buffer), src_.shape, exec.memory.at(dst_.buffer), dst_.shape,
          {pad_.front, pad_.top, pad_.left}, bytes_of(dst_.storage));
  }
  void backward(ExecContext& exec) override {
    if (!d_src_) return;
    place(exec, merged_gradient(exec, dst_), dst_.shape, exec.memory.at(d_src_), src_.shape,
          {-pad_.front, -pad_.top, -pad_.left}, bytes_of(dst_.gradient_storage));
  }

 private:
  /// Where the first element of `from` lies in `to`.
  struct Offset {
    int channel, row, column;
  };

  /// to[i] = from[i - offset], or 0 where there is none; `from` may be null.
  static void place_run(const std::byte* from, std::int64_t count_from, std::byte* to, std::int64_t count,
                        std::int64_t offset, std::int64_t size) {
    const std::int64_t begin = from == nullptr ? count : std::clamp<std::int64_t>(offset, 0, count);
    const std::int64_t end = std::clamp(offset + count_from, begin, count);
    std::fill_n(to, begin * size, std::byte{0});
    if (end > begin)
      std::memcpy(to + begin * size, from + (begin - offset) * size,
                  static_cast<std::size_t>((end - begin) * size));
    std::fill_n(to + end * size, (count - end) * size, std::byte{0});
  }

  static void place(const ExecContext& exec, const void* src, const graph::Shape& from, std::byte* to,
                    const graph::Shape& shape, Offset offset, std::int64_t size) {
    const std::int64_t row_from = std::int64_t{1} * from.width * from.channels * size;
    const std::int64_t row_to = std::int64_t{1} * shape.width * shape.channels * size;
    parallel_ranges(exec.pool, std::int64_t{1} * exec.options.batch * shape.height,
                    least_of(std::int64_t{1} * shape.width * shape.channels), [&](int, Range rows) {
                      for (std::int64_t row = rows.begin; row < rows.end; ++row) {
                        const std::int64_t y = row % shape.height - offset.row, sample = row / shape.height;
                        const std::byte* const line =
                            y < 0 || y >= from.height
                                ? nullptr
                                : static_cast<const std::byte*>(src) + (sample * from.height + y) * row_from;
                        std::byte* const out = to + row * row_to;
                        if (from.channels == shape.channels && offset.channel == 0) {
                          place_run(line, from.width, out, shape.width, offset.column, size * shape.channels);
                          continue;
                        }
                        for (int column = 0; column < shape.width; ++column) {
                          const int x = column - offset.column;
                          const bool is_there = line != nullptr && x >= 0 && x < from.width;
                          place_run(is_there ? line + std::int64_t{1} * x * from.channels * size : nullptr,
                                    from.channels, out + std::int64_t{1} * column * shape.channels * size,
                                    shape.channels, offset.channel, size);
                        }
                      }
                    });
  }

  const graph::Pad pad_;
};

}  // namespace

std::unique_ptr<CompiledOp> make_op(const graph::Pad& op, const OpArguments& a) {
  return std::make_unique<PadOp>(op, a);
}
std::unique_ptr<CompiledOp> make_op(const graph::FirstPlace&, const OpArguments& a) {
  return std::make_unique<PadOp>(graph::first_place_of(a.src[0]->shape), a);
}

}  // namespace paceline::engine::cpu
