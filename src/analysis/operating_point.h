#pragma once

/// The one configuration that all answers are about: the fastest that was measured well enough to be advised.

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/cell.h"

namespace paceline::analysis {

/// Others' intervals that overlap with the best's are a tie where they lie within this part of its median:
/// whichever is taken, no more than that is lost.
inline constexpr double kTie = 0.05;

/// How a best candidate stands among the others. By the 95 % intervals; one sample has none, and overlaps
/// where it lies within kTie.
enum class Standing : std::uint8_t {
  decided,      ///< no other interval reaches the best's
  tie,          ///< others overlap with it, and all of them lie within kTie of its median
  not_decided,  ///< others overlap with it, and some reach further
};

struct Choice {
  const Cell* best = nullptr;        ///< null: there was nothing to choose from
  std::vector<const Cell*> overlap;  ///< the others that overlap with it, fastest first
  Standing standing = Standing::decided;
};

/// Of measured cells the one of the highest median throughput; of exact ties the narrower interval, then the
/// smaller global batch, then the earlier. Overlaps are told and never move it.
[[nodiscard]] Choice fastest(const std::vector<const Cell*>& cells);

struct OperatingPoint {
  Choice choice;                      ///< among all eligible cells
  std::vector<const Cell*> eligible;  ///< fastest first
  struct LeftOut {
    const Cell* cell = nullptr;
    std::string why;  ///< "4 threads on 2 cores", "others kept 0.75 of 2 cores busy"
  };
  std::vector<LeftOut> left_out;  ///< measured, and not to be advised
  [[nodiscard]] const Cell* best() const { return choice.best; }
};

/// Of cells of one model and data: those of sweeps and scaling, or where there are none those of trainings.
/// Eligible is what is complete, has a core for each thread and was not disturbed by other programs
/// (Cell::others); cells of which nobody knows are eligible.
///
/// Cost  linear in the cells
[[nodiscard]] OperatingPoint operating_point(const std::vector<const Cell*>& cells);

/// The eligible cells that differ from `best` in their batches alone, it included, by local batch.
[[nodiscard]] std::vector<const Cell*> other_batches(const OperatingPoint& point);
/// Of each number of workers the fastest eligible cell, by workers.
[[nodiscard]] std::vector<const Cell*> other_workers(const OperatingPoint& point);

}  // namespace paceline::analysis
