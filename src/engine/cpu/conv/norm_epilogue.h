#pragma once

/// Sums over rows that a product takes while it writes them (kernels.h, Epilogue), instead of a pass of their
/// own over memory: a batch norm's moments with the convolution in front of it, its gradient's sums with the
/// backward product behind it.
///
/// The batch norm owns the sums, one array for each chunk of the product, and joins them in the order of the
/// chunks: the same bits for any number of threads.

#include "engine/cpu/ops/compiled_op.h"

namespace paceline::engine::cpu {

/// Who wants the sums: over rows of its input, and of its value's gradient.
class FusedBatchNormStats {
 public:
  /// The product that can take them.
  struct Writer {
    Pass pass = Pass::forward;  ///< forward writes the value itself, backward the last term of its gradient
    int chunks = 0;
    int samples = 0;  ///< of a chunk; the last may be shorter
    int moment = 0;   ///< on the time axis of live buffers
  };

  virtual ~FusedBatchNormStats() = default;
  /// Whether sums of such chunks can be joined to what is wanted; if so epilogue() will be asked for.
  [[nodiscard]] virtual bool accept(const Writer& writer, MemoryRequests& memory) = 0;
  [[nodiscard]] virtual Epilogue epilogue(const ExecContext& exec, Pass pass, int chunk) const = 0;
};

/// The sums of `rows` rows that were just written from `rows_written` on (moments; a gradient knows where it
/// lies).
void take_sums(const Epilogue& epilogue, const TypedKernels& kernels, Storage storage,
               const std::byte* rows_written, std::int64_t rows, int channels);

/// The same run by run, by a product that has written only some rows when it takes their sums. Moments are
/// taken around a guess from the first run; make_plain() ends them.
void begin_sums(const Epilogue& epilogue, const TypedKernels& kernels, Storage storage,
                const std::byte* first_run, std::int64_t rows, int channels);
/// `product` is where the product's first row lies, `first` the number of the run's.
void add_sums(const Epilogue& epilogue, const TypedKernels& kernels, Storage storage,
              const std::byte* product, std::int64_t first, std::int64_t rows, int channels);

/// Moments around the epilogue's shift -> plain ones, which can be joined with others. Of a gradient:
/// nothing.
void make_plain(const Epilogue& epilogue, std::int64_t rows, int channels);

}  // namespace paceline::engine::cpu
