#pragma once

/// Cell: one configuration ("set-up") that was measured, with the records and figures of all its repeats.

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/interval.h"
#include "analysis/compare/setup.h"
#include "measure/disturbance.h"
#include "measure/record.h"

namespace paceline::analysis {

/// The steps of a record that have times, each the mean over ranks.
[[nodiscard]] std::vector<double> step_seconds(const measure::Record& record);
/// Seconds of the rank's ledger in one phase, or in several, added in their order.
[[nodiscard]] double seconds_in(const measure::RankRecord& rank, measure::Phase phase);
[[nodiscard]] double seconds_in(const measure::RankRecord& rank,
                                std::initializer_list<measure::Phase> phases);
/// Sum over all steps of the rank's window, those without a time of their own included.
[[nodiscard]] double seconds_of_steps(const measure::RankRecord& rank);
/// Training time of each whole epoch (steps_per_epoch updates), without evaluation and checkpoints: the
/// epochs that the record lists, else a window of that length; empty for any other window. An epoch that was
/// timed only in part is left out.
[[nodiscard]] std::vector<double> epoch_seconds(const measure::Record& record);
/// Training time until the end of each epoch, without evaluation and checkpoints. Empty if the record lacks
/// the seconds of a part, as after a resume when the earlier record is missing.
[[nodiscard]] std::vector<double> seconds_to_epochs(const measure::Record& record);

/// Epochs of training until the end of `epoch`: half of one is 0.5, though its entry is the first.
[[nodiscard]] double epochs_done(const measure::Record& record, const measure::EpochRecord& epoch);

/// Bytes that one step reduces in its buckets: the gradients, and on devices its votes. 0 without buckets.
[[nodiscard]] std::int64_t bucket_bytes(const measure::Record& record);

struct Cell {
  /// As in the record. `scaling` is "both" if the cell is a row of weak and of strong scaling.
  std::string kind, scaling, variant;
  bool is_in_sweep = false;  ///< of kind "sweep", or of another kind and measured for the sweep too
  std::string label;  ///< for tables and plots, "b 128, N 2": local batch and workers; "B 32, N 3" if the
                      ///< workers do not divide the global batch; with settings that distinguish it from
                      ///< other cells: "b 128, N 2, lr 0.2"
  Setup setup;        ///< of its first record; a cell that was not run has fewer entries
  int workers = 1;
  int threads_per_worker = 1;
  std::int64_t local_batch = 0, global_batch = 0;
  bool oversubscribed = false;  ///< of any repeat: its workers lack needs()
  bool debug_build = false;
  bool synthetic = false;
  std::string emulated;  ///< what was emulated, "link of 1000 us, 1 GB/s; straggler: ..."; empty: nothing

  /// "complete" if at least one repeat is; else that of the records, or "left out", with `reason`
  std::string status;
  std::string reason;
  std::vector<const measure::Record*> records;  ///< the measured repeats; if none, the record that says why
  std::vector<const measure::Record*> lost;     ///< all other records: repeats without figures
  std::vector<std::string> lost_repeats;        ///< their reasons, unless `reason` has them
  /// Those of them that were tried and failed, except when a rank was lost.
  std::vector<const measure::Record*> failed_repeats;

  /// Whether other programs worked while the repeats in `records` were measured, by the longest part of their
  /// time. Repeats that were disturbed are set aside (`lost`) if others were not; so are those of which it is
  /// not known, if others that were certainly quiet lasted longer.
  measure::Disturbance disturbance = measure::Disturbance::maybe;
  int competitors = 0;              ///< measure::competitors() of the repeat with the most
  std::int64_t steps_measured = 0;  ///< of all repeats; step_s.n of them have times of their own

  /// One step: the median over the steps of all repeats. A step's time is the mean over ranks (all ranks
  /// leave a step together, and the mean counts no wait twice). For the interval see pooled().
  Estimate step_s;
  Estimate images_per_s;  ///< global batch / step
  /// For all D images, whatever the batch: measured epochs scaled to full_steps(), or full_steps() x step_s.
  Estimate epoch_s;
  bool epoch_measured = false;
  std::string epoch_basis;  ///< "median of 3 epochs", "from 20 steps"

  [[nodiscard]] bool is_measured() const { return step_s.n > 0; }
  [[nodiscard]] const std::string& why_not_measured() const { return reason.empty() ? status : reason; }
  /// D / B, not rounded. An epoch drops samples that fill no global batch, up to half the data for a large
  /// one, and only times of the same images can be compared.
  [[nodiscard]] double full_steps() const;
  /// B / N, not rounded where the workers do not divide the global batch.
  [[nodiscard]] double batch_per_worker() const { return static_cast<double>(global_batch) / workers; }
  [[nodiscard]] const measure::Record& record() const { return *records.front(); }
  /// The part of a study to which it belongs: "sweep", "scale weak", "scale" (both), "converge large batch".
  [[nodiscard]] std::string part() const;
  /// Part and label: "scale weak b 32, N 2".
  [[nodiscard]] std::string name() const;
  /// Whether it was run to measure its time, not as a whole training.
  [[nodiscard]] bool is_timed() const { return kind == "sweep" || kind == "scale"; }
  /// Whether it is oversubscribed because workers share a GPU.
  [[nodiscard]] bool shares_gpus() const;
  /// What each worker needs to work beside the others without waiting for them.
  [[nodiscard]] const char* needs() const;
  /// What an oversubscribed cell has instead.
  [[nodiscard]] const char* shares() const {
    return shares_gpus() ? "several workers on one GPU" : "more worker threads than cores";
  }
};

/// Value of `scaling`: the sizes are those of a row of weak and of a row of strong scaling.
inline constexpr const char* kBothScalings = "both";

/// What a run emulated: for its device "GPU (no GPU: ...)"; for its communicator or data "link of 1000 us, 1
/// GB/s; straggler: ...". For a record that was not run, what its options ask for. Empty if nothing; also for
/// one worker, which communicates with nobody.
[[nodiscard]] std::string emulated(const measure::Record& record);

// Joins records into cells: one set-up with all its repeats.
//
// Records belong to the same cell if their set-ups (setup.h) do not differ in anything: how the workers are
// joined and placed, model, data, machine, settings, circumstances. So repeats can never hide a difference.
// Every record but those of collectives is in exactly one cell: as a repeat, as the record that says why
// nothing was measured, or as a lost one. A record that contradicts itself is lost, or makes a cell that is
// "left out"; none of its figures is used. Failed records are listed with the repeats of their own version,
// or are a cell if there are none.
//
// Lifetime  cells refer to the records, which must outlive them

/// Cells are in the order of their first records.
[[nodiscard]] std::vector<Cell> make_cells(std::span<const measure::Record> records);

}  // namespace paceline::analysis
