#pragma once

/// Finds the checkpoint that --resume means, and checks that this run can continue from it.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "measure/record.h"
#include "train/checkpoint/checkpoint.h"
#include "train/given/options.h"
#include "train/given/resolve.h"

namespace paceline::train {

/// Where a resumed run continues.
struct ResumePoint {
  std::filesystem::path path;
  TrainingState standing;
  bool is_good = false;                 ///< its metadata say that its loss was checked and found good
  engine::KernelAlgorithms algorithms;  ///< of the previous run; empty in older checkpoints
  engine::Precision precision = engine::Precision::f32;  ///< set by find_resume_point(): of this run
  std::vector<std::string> notes;  ///< allowed differences between this run and the previous one
  /// Parts of the data that are not those of the previous run, see measure::is_of_images().
  std::vector<measure::ChangeRecord> other_images = {};
  /// Newer files beside it that cannot be used: damaged, or without the best epoch's file that they need.
  std::vector<std::filesystem::path> broken;
  bool is_finished = false;  ///< only with --resume auto: the training is complete
};

/// The checkpoint of options.resume: that file, or the newest undamaged checkpoint of that directory. Its
/// header must show that this run can continue from it: the same classes, layers, optimizer, seed, global
/// batch and number of training samples, so that the remaining order of samples is that of an uninterrupted
/// run. Other images in as many places are allowed, and said.
///
/// Cost     reads the file once, and broken ones too
/// Errors   Error(data): there is none, or one of these differs (both values). Error(usage): nothing is left
///          to do (not with --resume auto, nor if a run in its own --out was lost after its last update, when
///          only its record is missing)
[[nodiscard]] ResumePoint find_resume_point(const Options& options, const Resolved& resolved,
                                            const graph::Graph& graph);

/// The precision of the checkpoint that options.resume or --resume auto means, in which a run with
/// --precision auto goes on: for plans. None if --precision says another, or no checkpoint that can be read
/// says it.
///
/// Cost     reads a header
[[nodiscard]] std::optional<engine::Precision> precision_to_keep(const Options& options);

/// The metadata of checkpoint `path`, after checking every byte.
///
/// Errors   Error(data): it is damaged, or needs a best epoch's file that is missing or damaged
[[nodiscard]] ResumePoint resume_point_of(const std::filesystem::path& path);

/// What --resume auto finds in options.out.
enum class AutoResume {
  fresh,     ///< no run, or one that was lost before its first checkpoint
  resumed,   ///< a checkpoint to continue from
  finished,  ///< a complete training with these settings, without checkpoints
};
/// Examines options.out and changes nothing there.
///
/// Errors   Error(usage): no --out, or it holds the complete record of another training, without checkpoints
[[nodiscard]] AutoResume find_auto_resume(const Options& options);

/// Examines options.out. If the run begins anew it makes room: moves the record of the lost run to
/// kLostRecord, and renames damaged checkpoints to damaged-*. Adds messages about that to `notes`.
///
/// Errors   Error(usage): no --out, or it holds the complete record of another training, without checkpoints
[[nodiscard]] AutoResume begin_auto_resume(const Options& options, std::vector<std::string>& notes);

/// Whether options.resume is options.out or a file in it, so that the run continues in its own directory.
[[nodiscard]] bool goes_on_in_place(const Options& options);

/// Refuses an output directory in which files of this run would mix with another's: one that holds a training
/// which is not the resumed one, or which is resumed from an older checkpoint than its newest.
///
/// Errors   Error(usage) naming what is there and what to give instead
void require_own_directory(const Options& options);

}  // namespace paceline::train
