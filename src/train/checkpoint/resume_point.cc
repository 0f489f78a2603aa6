#include "train/checkpoint/resume_point.h"

#include <fmt/format.h>

#include <cmath>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "graph/layout.h"
#include "train/checkpoint/checkpoint_header.h"
#include "train/checkpoint/kept_record.h"
#include "train/given/names.h"
#include "train/given/option_rows.h"

namespace paceline::train {
namespace {

namespace fs = std::filesystem;
using base::ErrorKind;
using base::fail;

/// An older checkpoint without this key is accepted.
void require_same(const SafetensorsFile& file, const std::string& key, const char* what,
                  const std::string& now) {
  const auto then = text_in(file, key);
  if (then.empty() || then == now) return;
  fail(ErrorKind::data, "{}: {} was {} in its run, but is {} in this one; give the same, or start a new run",
       file.path().string(), what, then, now);
}

/// Checks that the three counters are consistent, which they would hardly be in a damaged file.
void require_possible(const ResumePoint& point, std::int64_t steps_per_epoch) {
  const auto& [update, epoch, step] = point.standing.counters;
  const bool in_range = update >= 0 && epoch >= 0 && epoch <= update && step >= 0 && step <= steps_per_epoch;
  if (in_range && step <= update && (update - step) % steps_per_epoch == 0 &&
      (update - step) / steps_per_epoch == epoch)
    return;
  fail(ErrorKind::data,
       "{}: its next batch should be step {} of epoch {} (from 0) after {} updates, which is impossible "
       "with {} steps per epoch; it is damaged: take an earlier checkpoint, or start a new run",
       point.path.string(), step, epoch, update, steps_per_epoch);
}

/// Checks the file of the best epoch, from which a resumed training reads weights.
void require_best(const ResumePoint& point) {
  const auto update = point.standing.validation.best_update;
  if (update == 0) return;
  const auto best = best_checkpoint_path(point.path.parent_path(), update);
  if (!fs::exists(best))
    fail(ErrorKind::data,
         "{}: its best epoch on validation is {}, but {} is missing; copy it beside the checkpoint, or start "
         "a new run",
         point.path.string(), point.standing.validation.best_epoch, best.string());
  (void)open_checkpoint(best);
}

/// An undamaged checkpoint and its metadata.
struct Candidate {
  SafetensorsFile file;
  ResumePoint point;
};
/// Errors   Error(data): it is damaged, or needs a file that is missing or damaged
Candidate open_candidate(const fs::path& path) {
  Candidate candidate{.file = open_checkpoint(path)};
  candidate.point.path = path;
  candidate.point.standing.counters = {.update = number_in(candidate.file, "update"),
                                       .epoch = number_in(candidate.file, "epoch"),
                                       .step = number_in(candidate.file, "step")};
  candidate.point.standing.validation = validation_in(candidate.file);
  candidate.point.standing.guard = guard_in(candidate.file);
  candidate.point.is_good = says_it_is_good(candidate.file);
  require_best(candidate.point);
  if (!is_summed(candidate.file))
    candidate.point.notes.push_back(
        fmt::format("{} was written by a version without checksums: its bytes cannot be checked",
                    path.filename().string()));
  return candidate;
}

/// The newest undamaged checkpoint of a directory; notes damaged ones.
///
/// Errors   Error(data) of the newest if all are damaged
Candidate newest_whole(const fs::path& directory, const std::vector<fs::path>& paths) {
  std::vector<fs::path> broken;
  std::vector<std::string> reasons;
  for (const auto& path : paths) {
    try {
      auto candidate = open_candidate(path);
      candidate.point.broken = broken;
      for (std::size_t i = 0; i < broken.size(); ++i)
        candidate.point.notes.push_back(
            fmt::format("{} is not used: {}; the run continues from {}, the newest that is undamaged",
                        broken[i].filename().string(), reasons[i], path.filename().string()));
      return candidate;
    } catch (const base::Error& error) {
      broken.push_back(path);
      reasons.push_back(error.what());
    }
  }
  fail(ErrorKind::data,
       "--resume {}: the run cannot continue from any of its {} checkpoints; the newest: "
       "{}",
       directory.string(), paths.size(), reasons.front());
}

Candidate asked_for(const fs::path& resume) {
  if (fs::is_regular_file(resume))
    return open_candidate(fs::is_symlink(resume) ? fs::canonical(resume) : resume);
  const auto paths = checkpoints_in(resume);
  if (paths.empty())
    fail(ErrorKind::data,
         "--resume {}: is neither a checkpoint nor a directory with checkpoint-*.safetensors in it",
         resume.string());
  return newest_whole(resume, paths);
}

/// Whether the run in --out has its last checkpoint but no complete record, so that only its last evaluation,
/// or the record, is missing.
bool lost_at_its_end(const Options& options) {
  const auto path = options.out / "record.json";
  if (!goes_on_in_place(options)) return false;
  if (!fs::exists(path)) return options.resume_auto;
  const auto kept = read_kept_record(path);
  return !kept.record || kept.record->status != "complete";
}

/// Whether the training in --out ended at `update`, which may be before the last planned update (early
/// stopping, the target of this run).
bool stopped_early_at(const Options& options, std::int64_t update) {
  const auto record = read_kept_record(options.out / "record.json").record;
  if (!record || record->status != "complete" || record->epochs.empty() ||
      record->epochs.back().updates != update)
    return false;
  const bool is_at_target = options.target && record->target && record->target->update &&
                            record->target->quantity == options.target->quantity() &&
                            record->target->value == options.target->value;
  return is_at_target || (record->chosen && record->chosen->stopped_early);
}

/// Labels are numbers, so other classes, or the same ones in another order, would be learned as those before.
void require_same_classes(const SafetensorsFile& file, const data::DataIdentity& then,
                          const data::DataIdentity& now) {
  const auto difference = difference_of_classes(then.classes, now.classes);
  if (difference.empty()) return;
  fail(
      ErrorKind::data,
      "{}: its run had the classes {}, but this one has {}: {}; give the data of that run, or start a new run",
      file.path().string(), some_of(then.classes), some_of(now.classes), difference);
}

/// The parts whose images are others than those of the run before, as changes.
std::vector<measure::ChangeRecord> changes_of_images(const data::DataIdentity& then,
                                                     const data::DataIdentity& now, std::int64_t update) {
  using List = data::DataIdentity::List;
  const auto text = [](const List& list) {
    return list.sha256.empty()
               ? std::nullopt
               : std::optional(fmt::format("{} images ({}..)", list.images, list.sha256.substr(0, 8)));
  };
  std::vector<measure::ChangeRecord> changes;
  const auto compare = [&](const char* setting, const List& before, const List& here) {
    if (before != here)
      changes.push_back({.setting = setting, .then = text(before), .now = text(here), .update = update});
  };
  compare(measure::kTrainingImages, then.train, now.train);
  compare(measure::kValidationImages, then.validation, now.validation);
  compare(measure::kTestImages, then.test, now.test);
  return changes;
}

void require_same_training(const SafetensorsFile& file, const Options& options, const Resolved& resolved,
                           const graph::Graph& graph) {
  const std::string then = text_in(file, "graph_sha256"), now = graph::fingerprint(graph);
  if (!then.empty() && then != now)
    fail(ErrorKind::data,
         "{}: its run had other layers than {} has now (SHA-256 of the graph {}.. and {}..); give the model "
         "of that run, or start a new run",
         file.path().string(), graph.name, then.substr(0, 8), now.substr(0, 8));
  require_same(file, "optimizer", "--optimizer", std::string(name(options.rule.kind)));
  require_same(file, "seed", "--seed", std::to_string(options.seed));
  require_same(file, "global_batch", "the global batch", std::to_string(resolved.global_batch));
  require_same(file, "train_samples", "the number of training samples",
               std::to_string(resolved.train_samples));
}

/// The precision in which the run goes on from `file`: with --precision auto that of the checkpoint, whatever
/// auto would take here. Adds the sentence about it to `notes`.
engine::Precision precision_from(const SafetensorsFile& file, const Options& options,
                                 const Resolved& resolved, std::vector<std::string>& notes) {
  const auto then = text_in(file, "precision");
  if (then.empty()) return resolved.precision;
  const auto here = name(resolved.precision);
  if (options.precision != "auto") {
    if (then != here)
      notes.push_back(fmt::format("the precision is {} from here on; it was {} up to update {}", here, then,
                                  number_in(file, "update")));
    return resolved.precision;
  }
  const auto kept = choice_named<engine::Precision>(then);
  if (!kept)
    fail(
        ErrorKind::data,
        "{}: its precision is '{}', and this version knows fp32, bf16 and fp16; give one of them as --precision",
        file.path().string(), then);
  notes.push_back(
      fmt::format("the precision stays {}, that of the checkpoint{}", then,
                  then == here ? "" : fmt::format("; for a new run --precision auto takes {} here", here)));
  return *kept;
}

}  // namespace

ResumePoint find_resume_point(const Options& options, const Resolved& resolved, const graph::Graph& graph) {
  auto [file, point] = asked_for(options.resume);
  const auto data = data_in(file);
  const bool knows_data = !data.classes.empty() && !resolved.data.classes.empty();
  if (knows_data) require_same_classes(file, data, resolved.data);
  require_same_training(file, options, resolved, graph);
  point.precision = precision_from(file, options, resolved, point.notes);
  point.algorithms = algorithms_from(text_in(file, "kernels"), point.path.string());
  require_possible(point, resolved.steps_per_epoch);
  if (options.lookahead.steps > 0 && !has_arrays(file, kSlowPrefix))
    fail(ErrorKind::data,
         "{}: --lookahead was off in its run, but is {} in this one; give the same, or start a new run",
         point.path.string(), options.lookahead.steps);
  if (options.ema.decay > 0 && !has_arrays(file, kAveragePrefix))
    fail(ErrorKind::data,
         "{}: --ema was off in its run, but is {:g} in this one; give the same, or start a new run",
         point.path.string(), options.ema.decay);
  const auto update = point.standing.counters.update;
  const auto left = resolved.end - update;
  const bool is_over = left == 0 && !lost_at_its_end(options);
  if (options.resume_auto && (is_over || (left > 0 && stopped_early_at(options, update)))) {
    point.is_finished = true;
    return std::move(point);
  }
  if (left < 0 || is_over)
    refuse_options("{}: is already at update {} of {}; give more --epochs or --steps", point.path.string(),
                   update, resolved.end);
  if (data.classes.empty()) point.notes.push_back(note_of_no_classes(point.path));
  if (knows_data) {
    point.other_images = changes_of_images(data, resolved.data, update);
    if (const auto [here, there] = difference_of_format(data, resolved.data); !here.empty())
      point.notes.push_back(
          fmt::format("images are {} from here on; they were {} up to update {}", here, there, update));
  }
  if (point.standing.guard.rollbacks > 0)
    point.notes.push_back(
        fmt::format("the learning rate is {:g} times what its schedule says: the earlier run went back {} "
                    "(--on-nan rollback)",
                    std::pow(LossGuard::kRateFactor, static_cast<double>(point.standing.guard.rollbacks)),
                    base::counted(point.standing.guard.rollbacks, "time")));
  const auto then = text_in(file, "lr"), now = fmt::format("{}", resolved.rate.peak);
  if (!then.empty() && then != now)
    point.notes.push_back(fmt::format(
        "the learning rate's peak is {} from here on; it was {} up to update {}", now, then, update));
  return std::move(point);
}

std::optional<engine::Precision> precision_to_keep(const Options& options) {
  const auto& from = options.resume_auto ? options.out : options.resume;
  if (options.precision != "auto" || from.empty()) return std::nullopt;
  try {
    return choice_named<engine::Precision>(read_checkpoint_info(from).precision);
  } catch (const base::Error&) {
    return std::nullopt;  // the run says what is wrong with it, or begins anew
  }
}

ResumePoint resume_point_of(const fs::path& path) { return open_candidate(path).point; }

AutoResume find_auto_resume(const Options& options) {
  if (options.out.empty())
    refuse_options("--resume auto looks for a checkpoint in the run's own directory; give --out DIR");
  const auto paths = checkpoints_in(options.out);
  for (const auto& path : paths) {
    try {
      (void)open_candidate(path);
      return AutoResume::resumed;
    } catch (const base::Error&) {
      // the reason is reported by find_resume_point(), or below if all are damaged
    }
  }
  const auto record_path = options.out / "record.json";
  if (paths.empty() && base::is_there(record_path)) {
    const auto kept = read_kept_record(record_path);
    if (kept.record && kept.record->status == "complete") {
      if (differences(kept.record->settings, settings(options)).empty()) return AutoResume::finished;
      refuse_options(
          "--out {}: holds the complete record of a training with other settings, and no checkpoint to "
          "continue from; give another --out",
          options.out.string());
    }
  }
  return AutoResume::fresh;
}

AutoResume begin_auto_resume(const Options& options, std::vector<std::string>& notes) {
  if (const auto found = find_auto_resume(options); found != AutoResume::fresh) return found;
  const auto paths = checkpoints_in(options.out);
  const auto record_path = options.out / "record.json";
  std::error_code unknown;
  for (const auto& path : paths) {
    const auto aside = set_aside_damaged(path);
    notes.push_back(fmt::format("the run cannot resume from {}, which is kept as {}",
                                path.filename().string(), aside.filename().string()));
  }
  if (base::is_there(record_path)) {
    fs::rename(record_path, options.out / kLostRecord, unknown);
    notes.push_back(
        fmt::format("--resume auto: the earlier run was lost {}: this one starts from the beginning",
                    paths.empty() ? "before its first checkpoint" : "and left no undamaged checkpoint"));
  }
  return AutoResume::fresh;
}

bool goes_on_in_place(const Options& options) {
  std::error_code missing;  // then nothing can be continued there
  if (options.resume.empty() || options.out.empty()) return false;
  auto directory = fs::absolute(options.resume);
  if (!base::is_folder(directory)) directory = directory.parent_path();
  return fs::equivalent(directory, options.out, missing);
}

void require_own_directory(const Options& options) {
  if (options.out.empty()) return;
  const auto out = options.out.string();
  const auto there = checkpoints_in(options.out);
  std::error_code unreadable;
  if (goes_on_in_place(options)) {
    auto asked = options.resume;
    if (fs::is_symlink(asked, unreadable)) asked = fs::canonical(asked, unreadable);
    const auto newest = there.empty() ? asked.filename() : there.front().filename();
    if (base::is_file(asked) && asked.filename() != newest)
      refuse_options(
          "--out {}: holds {}, newer than the {} that --resume names, and a later --resume {} would take it; "
          "give another --out",
          out, newest.string(), asked.filename().string(), out);
    return;
  }
  if (!there.empty())
    refuse_options("--out {0}: holds another run ({1}); give --resume {0} to continue it, or another --out",
                   out, there.front().filename().string());
  if (base::is_there(options.out / "record.json"))
    refuse_options(
        "--out {}: holds another run's record.json, and no checkpoint to continue from; give another "
        "--out, or --resume auto to start again there",
        out);
}

}  // namespace paceline::train
