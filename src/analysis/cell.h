#pragma once

/// One set-up with all its repeats.

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/interval.h"
#include "analysis/setup.h"
#include "measure/record.h"

namespace paceline::analysis {

/// Whether other programs used the cores while a cell was measured.
enum class Others : std::uint8_t {
  unknown,  ///< most of the time was measured in windows too short to tell
  none,
  busy,  ///< in every repeat; where some were not disturbed, those that were are set aside (`lost`)
};

struct Cell {
  /// As in the record. `scaling` is "both" of one that is a row of weak and of strong scaling.
  std::string kind, scaling, variant;
  bool is_in_sweep = false;  ///< of kind "sweep", or of another and measured for the sweep too
  std::string label;  ///< "b 128, N 2": local batch and workers, for tables and plots; "B 32, N 3" where the
                      ///< workers do not divide the global batch; and the settings that alone tell it from
                      ///< another: "b 128, N 2, lr 0.2"
  Setup setup;        ///< of its first record: of what was not run less is known than of what was
  int workers = 1;
  int threads_per_worker = 1;
  std::int64_t local_batch = 0, global_batch = 0;
  bool oversubscribed = false;
  bool debug_build = false;
  bool synthetic = false;
  std::string emulated;  ///< what the records say was emulated, "link of 1000 us, 1 GB/s; straggler: ...";
                         ///< empty: nothing was

  /// "complete" when at least one repeat is; else that of the records, or "left out", with `reason`
  std::string status;
  std::string reason;
  std::vector<const measure::Record*> records;  ///< the measured repeats; without any, the one that says why
  std::vector<const measure::Record*> lost;     ///< all other records: repeats without figures
  std::vector<std::string> lost_repeats;        ///< their reasons, as far as `reason` does not say them
  /// Of those, the ones that were tried and failed, no rank having been lost.
  std::vector<const measure::Record*> failed_repeats;

  Others others = Others::unknown;
  std::int64_t steps_per_epoch = 0;
  std::int64_t train_samples = 0;
  std::int64_t steps_measured = 0;  ///< of all repeats

  /// One step: median over the steps of all repeats, a step's time being the mean over ranks (they leave it
  /// together; the mean counts no wait twice). See pooled() for its interval.
  Estimate step_s;
  Estimate images_per_s;  ///< global batch / step
  /// Of all D images, whatever the batch: measured epochs scaled to full_steps(), or full_steps() x step_s.
  Estimate epoch_s;
  bool epoch_measured = false;
  std::string epoch_basis;  ///< "median of 3 epochs", "from 20 steps"

  [[nodiscard]] bool is_measured() const { return step_s.n > 0; }
  /// D / B, not rounded. An epoch drops the tail that fills no global batch, up to half the data for a large
  /// one: only times of the same images can be compared.
  [[nodiscard]] double full_steps() const;
  [[nodiscard]] const measure::Record& record() const { return *records.front(); }
  /// What it is part of: "sweep", "scale weak", "scale" (both), "converge large batch".
  [[nodiscard]] std::string part() const;
  /// Part and label: "scale weak b 32, N 2".
  [[nodiscard]] std::string name() const;
  /// Its time was measured for its own sake, and not while a training ran to its end.
  [[nodiscard]] bool is_timed() const { return kind == "sweep" || kind == "scale"; }
};

/// Of `scaling`: the sizes are those of a row of weak and of a row of strong scaling.
inline constexpr const char* kBothScalings = "both";

/// What a run had to name EMULATED: by its device "GPU (no GPU: ...)"; in its communicator's name and in what
/// its data is described as: "link of 1000 us, 1 GB/s; straggler: ...". Of a record that was not run, what
/// its options ask for. Empty where nothing was: one worker talks to nobody, whatever its options ask for.
[[nodiscard]] std::string emulated(const measure::Record& record);

}  // namespace paceline::analysis
