#pragma once

/// Computes the learning rate as a pure function of the update; UpdateCount keeps the number of updates in a
/// file.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/descriptor.h"
#include "train/given/options.h"

namespace paceline::train {

// UpdateCount keeps the number of updates done in a small file in --out that survives a kill. The run that
// continues from the checkpoint reads in it how much work was lost.

/// The file's name in --out: one line, a number.
inline constexpr const char* kUpdatesDone = "updates-done";

/// Threads  one at a time
class UpdateCount {
 public:
  /// An existing file is not changed before the first set(). There is no file if `out` is empty. A file that
  /// cannot be written is ignored: the figure is not worth failing a run.
  explicit UpdateCount(const std::filesystem::path& out);

  /// Cost     a write of 20 bytes into the page cache: a microsecond
  void set(std::int64_t updates);
  /// Removes the file, once the record has the number.
  void forget();

 private:
  std::filesystem::path path_;
  base::Descriptor file_;
};

/// The count that a lost run has left in `out`.
[[nodiscard]] std::optional<std::int64_t> counted_updates(const std::filesystem::path& out);

/// The length of a training in updates.
struct Length {
  std::int64_t updates = 0;  ///< of the whole training
  std::int64_t updates_per_epoch = 1;
};

/// The learning rate of update `update` (from 0) with the given peak.
///
/// Every kind of schedule may begin with a warm-up of `warmup_epochs`. Its rate is linear:
/// peak * (update + 1) / (updates of the warm-up), which is above 0 for the first update. If `warmup_start`
/// (a rate) is above 0, the first update has that rate instead, and the rate rises linearly to the peak.
///
/// After the warm-up, by kind:
/// - constant: the peak.
/// - step: the peak times `step_factor` for each `step_epochs` since the start of training.
/// - cosine: half a cosine from the peak to peak * `final_factor` at the end of training.
/// - one-cycle: half a cosine from peak * `one_cycle_start` to the peak, which is reached after the fraction
///   `one_cycle_peak` of the updates that follow the warm-up; then half a cosine to peak * `final_factor`.
/// - polynomial: from the peak to peak * `final_factor`, with the power `polynomial_power` of the part that
///   is left of the updates after the warm-up. (LARS is usually given with power 2.)
/// - plateau: the peak. The caller multiplies it by the factor from validation (ValidationWatch).
///
/// Source   Loshchilov & Hutter, ICLR 2017 (cosine); Smith & Topin, 2018 (one-cycle); You et al., 2017
///          (polynomial)
[[nodiscard]] double learning_rate(const ScheduleOptions& options, double peak, std::int64_t update,
                                   const Length& length);

/// The peak after scaling with the global batch, and how it was computed.
struct ScaledRate : measure::Record::LearningRate {
  std::string sentence;  ///< "learning rate 0.1 x 4 = 0.4 (linear: global batch 512 / 128)"
};
[[nodiscard]] ScaledRate scaled_rate(const Options& options, std::int64_t global_batch);

}  // namespace paceline::train
