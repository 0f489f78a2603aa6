#pragma once

/// Lets a convolution compute a batch norm's sums over the rows that it writes (Epilogue in kernels.h), which
/// saves a pass over memory. The convolution in front computes the moments; the backward data of the
/// convolution behind computes the sums of the gradient.
///
/// The batch norm owns the sums, one array for each chunk of the convolution, and adds them in the order of
/// the chunks: any number of threads gives the same bits.

#include "engine/cpu/ops/compiled_op.h"

namespace paceline::engine::cpu {

/// The batch norm's side: it needs sums over the rows of its input, and of its output's gradient.
class FusedBatchNormStats {
 public:
  /// The convolution that offers to compute them.
  struct Writer {
    Pass pass = Pass::forward;  ///< forward: it writes the input; backward: the gradient's last term
    int chunks = 0;
    int samples = 0;  ///< in a chunk; the last may have fewer
    int moment = 0;   ///< when it runs, on the time axis of live buffers (engine/program.h)
  };

  virtual ~FusedBatchNormStats() = default;
  /// Accepts the offer if sums over such chunks add up to the sums that are needed, and requests memory for
  /// them. The convolution then calls epilogue() for each chunk.
  [[nodiscard]] virtual bool accept(const Writer& writer, MemoryRequests& memory) = 0;
  /// What the convolution computes with chunk `chunk`, and where it writes the sums.
  [[nodiscard]] virtual Epilogue epilogue(const ExecContext& exec, Pass pass, int chunk) const = 0;
};

/// Computes the sums of `rows` rows that were just written at `rows_written`. Sums of a gradient ignore this
/// address: the epilogue holds their arrays.
void take_sums(const Epilogue& epilogue, const TypedKernels& kernels, Storage storage,
               const std::byte* rows_written, std::int64_t rows, int channels);

/// The same in steps, for a convolution that writes rows in several runs: begin_sums(), add_sums() for each
/// run, then make_plain(). Moments are computed around a shift, an estimate of the mean from the first run,
/// so that squares do not cancel.
void begin_sums(const Epilogue& epilogue, const TypedKernels& kernels, Storage storage,
                const std::byte* first_run, std::int64_t rows, int channels);
/// Adds rows [first, first + rows) of the result, whose row 0 lies at `product`.
void add_sums(const Epilogue& epilogue, const TypedKernels& kernels, Storage storage,
              const std::byte* product, std::int64_t first, std::int64_t rows, int channels);

/// Turns moments around the epilogue's shift into plain sums, which can be added to others. Sums of a
/// gradient need no change.
void make_plain(const Epilogue& epilogue, std::int64_t rows, int channels);

}  // namespace paceline::engine::cpu
