#pragma once

/// Chooses the operating point, the configuration that all answers of a report are about: the fastest one
/// that was measured well enough.

#include <cstdint>
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
  Standing standing = Standing::decided;
};

/// The measured cell with the highest median throughput; of exact ties the narrower interval, then the
/// smaller global batch, then the earlier cell. Overlaps are reported and do not change the choice.
[[nodiscard]] Choice fastest(const std::vector<const Cell*>& cells);

struct OperatingPoint {
  Choice choice;                      ///< among all eligible cells
  std::vector<const Cell*> eligible;  ///< fastest first
  struct LeftOut {
    const Cell* cell = nullptr;
    std::string why;  ///< "4 threads on 2 cores", "others kept 0.75 of 2 cores busy"
  };
  std::vector<LeftOut> left_out;  ///< measured, but not recommended
  [[nodiscard]] const Cell* best() const { return choice.best; }
};

/// For cells of one model and data: of sweeps and scaling, or if there are none of trainings. Eligible are
/// complete cells with a core for each thread that other programs did not disturb (Cell::others), or of which
/// that is unknown.
///
/// Cost     linear in the cells
[[nodiscard]] OperatingPoint operating_point(const std::vector<const Cell*>& cells);

/// The eligible cells that differ from the best one only in their batches, including it, by local batch.
[[nodiscard]] std::vector<const Cell*> other_batches(const OperatingPoint& point);
/// The fastest eligible cell for each number of workers, by workers.
[[nodiscard]] std::vector<const Cell*> other_workers(const OperatingPoint& point);

}  // namespace paceline::analysis
