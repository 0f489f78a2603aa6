#pragma once

/// Chooses the operating point, the configuration that all answers of a report are about: the fastest one
/// that was measured well enough.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/cell.h"

namespace paceline::analysis {

/// Cells whose intervals overlap with the best's are tied with it if they lie within this part of its median:
/// any of them loses at most that much.
inline constexpr double kTie = 0.05;

/// The best candidate compared with the others, by 95 % intervals. A cell with one sample has no interval; it
/// overlaps if it is within kTie.
enum class Standing : std::uint8_t {
  decided,      ///< no other interval reaches the best's
  tie,          ///< others overlap, and all of them are within kTie of its median
  not_decided,  ///< others overlap, and some of them reach further
};

struct Choice {
  const Cell* best = nullptr;        ///< null: there was nothing to choose from
  std::vector<const Cell*> overlap;  ///< other cells that overlap with it, fastest first
  /// Cells beside which other programs worked, or may have worked, and that may be faster than the best
  /// without them (possible_rate()); highest possible rate first. Empty where the load was `constant`.
  std::vector<const Cell*> unsettled;
  Standing standing = Standing::decided;
  /// Other programs worked beside all cells, all the time and about alike, so that comparing them is fair,
  /// for the machine as it was.
  bool constant_load = false;

  /// Whether the measurements show that `cell` is slower than the best.
  [[nodiscard]] bool shows_slower(const Cell& cell) const;
};

/// The most images/s that the cell may reach without other programs. Of an undisturbed one it is the upper
/// end of its interval. A worker whose core k other programs share keeps at least 1 / (1 + k) of it, so a
/// disturbed one may be 1 + k times as fast, or more where others left it less than that of the cores. Where
/// that is unknown it is that of the most disturbed cell of `cells`, at least 2.
[[nodiscard]] double possible_rate(const Cell& cell, const std::vector<const Cell*>& cells);

/// The measured cell with the highest median throughput; of exact ties the narrower interval, then the
/// smaller global batch, then the earlier cell. Overlaps are reported and do not change the choice.
///
/// The rate of a disturbed cell is a lower bound, so it may be the best, and is never passed over for a
/// slower one.
[[nodiscard]] Choice fastest(const std::vector<const Cell*>& cells);

struct OperatingPoint {
  Choice choice;                      ///< among all eligible cells
  std::vector<const Cell*> eligible;  ///< fastest first
  struct LeftOut {
    const Cell* cell = nullptr;
    std::string why;  ///< "4 threads on 2 cores", "several workers on one GPU", "interrupted"
  };
  std::vector<LeftOut> left_out;  ///< measured, but not recommended
  [[nodiscard]] const Cell* best() const { return choice.best; }
};

/// For cells of one model and data: of sweeps and scaling, or if there are none of trainings. Eligible are
/// complete cells with a core for each thread, or a GPU for each worker.
///
/// Cost     linear in the cells
[[nodiscard]] OperatingPoint operating_point(const std::vector<const Cell*>& cells);

/// The name and the rate of the best cell of `records`: over all models and data, the fastest operating
/// point. nullopt if there is none.
struct BestCell {
  std::string name;
  double images_per_s = 0;
};
[[nodiscard]] std::optional<BestCell> best_cell(std::span<const measure::Record> records);

/// The eligible cells that differ from the best one only in their batches, including it, by local batch.
[[nodiscard]] std::vector<const Cell*> other_batches(const OperatingPoint& point);
/// The fastest eligible cell for each number of workers, by workers.
[[nodiscard]] std::vector<const Cell*> other_workers(const OperatingPoint& point);

}  // namespace paceline::analysis
