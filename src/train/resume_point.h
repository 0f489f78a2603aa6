#pragma once

/// From where a run goes on: which checkpoint --resume means, and whether this run may go on from it.

#include <filesystem>
#include <string>
#include <vector>

#include "train/checkpoint.h"
#include "train/options.h"
#include "train/resolve.h"

namespace paceline::train {

/// Where a resumed run goes on.
struct ResumePoint {
  std::filesystem::path path;
  Standing standing;
  bool is_good = false;                 ///< it says that its loss was checked and found good
  engine::KernelAlgorithms algorithms;  ///< of the run before; empty in checkpoints of before the key
  std::vector<std::string> notes;       ///< what this run does otherwise than the one before, and may
  /// Newer files beside it that cannot be used: damaged, or without the best epoch's file that they need.
  std::vector<std::filesystem::path> broken;
  bool is_finished = false;  ///< --resume auto alone: the training is complete, and nothing is left to do
};

/// The checkpoint that options.resume names (the file, or of a directory the newest whose every byte is
/// right), once its header has shown that this run can go on from it: the same layers, optimizer, seed,
/// global batch and number of training samples, so that the rest of the order is the one that the
/// uninterrupted run would have had.
///
/// Cost     reads the file once, and those that are broken
/// Errors   Error(data) when there is none, or one of these differs (both values); Error(usage) when nothing
///          is left to do, but with --resume auto; where a run in its own --out was lost after its last
///          update, its record is left
[[nodiscard]] ResumePoint find_resume_point(const Options& options, const Resolved& resolved,
                                            const graph::Graph& graph);

/// What checkpoint `path` says, once its every byte was found right.
/// Errors   Error(data): it is damaged, or needs a best epoch's file that is missing or damaged
[[nodiscard]] ResumePoint resume_point_of(const std::filesystem::path& path);

/// What --resume auto finds in options.out.
enum class AutoResume {
  anew,      ///< no run, or one that was lost before its first checkpoint
  resumed,   ///< a checkpoint to go on from
  finished,  ///< a complete training of these settings, without checkpoints
};
/// Looks, and where the run begins anew makes room for it: the record of the one that was lost is moved to
/// kLostRecord, damaged checkpoints to their damaged- names. `notes` gets what is to be said of that.
///
/// Errors   Error(usage): no --out, or it holds the complete record of another training, without checkpoints
[[nodiscard]] AutoResume begin_auto_resume(const Options& options, std::vector<std::string>& notes);

/// Whether options.resume is options.out or a file in it: the run continues its own directory.
[[nodiscard]] bool goes_on_in_place(const Options& options);

/// Refuses an output directory in which this run's files would stand beside another's: one that holds a
/// training and is not the one resumed, or is, from a checkpoint that is not its newest.
/// Errors   Error(usage) naming what is there and what to give instead
void require_own_directory(const Options& options);

}  // namespace paceline::train
