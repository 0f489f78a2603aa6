#include "analysis/compare/comparability.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "analysis/compare/setup.h"
#include "base/text.h"

namespace paceline::analysis {
namespace {

using measure::Effect;
using measure::Record;
using measure::Setting;
using measure::SettingRole;

/// Two runs are compared to see the effect of doing something differently; but a different amount of work per
/// image makes a different figure. Model and data are compared by their contents, not by their names, which
/// may be paths.
Effect effect_between_runs(Setting setting) {
  const bool is_known_otherwise = setting == "model" || setting == "data" || setting == "device";
  return setting.role() == SettingRole::fixed && !is_known_otherwise ? setting.on_time() : Effect::none;
}

/// Refuses a key that has no row, such as one of a later version, because it may change the figure.
Effect effect(std::string_view key, Topic topic) {
  const auto setting = Setting::find(key);
  if (!setting) return Effect::refuse;
  switch (topic) {
    case Topic::scaling:
      return setting->on_time();
    case Topic::same_cores:
    case Topic::tables:
      return *setting == "threads" ? Effect::none : setting->on_time();
    case Topic::sweep:
      return *setting == "workers" ? Effect::refuse : setting->on_time();
    case Topic::convergence:
      return setting->on_accuracy();
    case Topic::time_to_accuracy:
      return setting->role() == SettingRole::length ? Effect::none : setting->on_accuracy();
    case Topic::two_runs:
      return effect_between_runs(*setting);
  }
  return Effect::refuse;
}

void compare_settings(const Record& a, const Record& b, Topic topic, Verdict& verdict) {
  const bool of_time = topic != Topic::convergence && topic != Topic::time_to_accuracy;
  const bool one_is_alone = is_alone(a) || is_alone(b);
  for (const auto& [name, before, after] : different_settings(a.settings, b.settings)) {
    if (of_time && one_is_alone && is_setting_of_joining(name)) continue;
    const Effect result = effect(name, topic);
    if (result == Effect::none) continue;
    auto& list = result == Effect::refuse ? verdict.refusals : verdict.remarks;
    list.push_back(fmt::format("--{} is {} in the baseline and {} here", name, text_or(before, "not set"),
                               text_or(after, "not set")));
  }
}

void refuse_if(Verdict& verdict, bool differs, std::string sentence) {
  if (differs) verdict.refusals.push_back(std::move(sentence));
}

void compare_subject(const Record& a, const Record& b, Topic topic, bool is_of_both, Verdict& verdict) {
  // In a sweep the number of workers is constant, so it does not matter whether the batch was given as local
  // or global.
  const bool mixes_scaling =
      topic == Topic::tables || topic == Topic::sweep || topic == Topic::two_runs || is_of_both;
  refuse_if(verdict, !mixes_scaling && !a.scaling.empty() && !b.scaling.empty() && a.scaling != b.scaling,
            fmt::format("{} scaling is never compared with {} scaling", a.scaling, b.scaling));
  refuse_if(verdict, a.model.name != b.model.name,
            fmt::format("the baseline's model is {}, here it is {}", a.model.name, b.model.name));
  refuse_if(
      verdict, a.model.name == b.model.name && a.model.parameters != b.model.parameters,
      fmt::format("the baseline's {} has {} parameters, here it has {}: another model (or another number "
                  "of classes)",
                  a.model.name, a.model.parameters, b.model.parameters));
  // An edited model file keeps its name and often its number of parameters, as after a change of stride or
  // pooling; FLOPs show the difference. Old records without FLOPs hold 0 and are not told apart.
  refuse_if(verdict,
            a.model.name == b.model.name && a.model.parameters == b.model.parameters &&
                a.model.training_flops > 0 && b.model.training_flops > 0 &&
                a.model.training_flops != b.model.training_flops,
            fmt::format("training the baseline's {} takes {} FLOPs a sample, here it takes {}: another model "
                        "of that name (its file has changed since) or images of another size; measure both "
                        "with the same one",
                        a.model.name, a.model.training_flops, b.model.training_flops));
  refuse_if(verdict, a.data.name != b.data.name || a.data.synthetic != b.data.synthetic,
            fmt::format("the baseline's data is {}, here it is {}", a.data.name, b.data.name));
  refuse_if(verdict, a.data.train_samples != b.data.train_samples,
            fmt::format("the baseline's epoch has {} samples, here it has {}", a.data.train_samples,
                        b.data.train_samples));
  refuse_if(verdict, topic != Topic::two_runs && a.precision != b.precision,
            fmt::format("the baseline was computed in {}, this in {}", a.precision, b.precision));
}

/// Records made by other programs may lack the name.
std::string or_unknown(const std::string& name) { return name.empty() ? "(unknown)" : name; }

std::string remark_of_versions(const Record& a, const Record& b) {
  return fmt::format("the baseline was measured by version {}, this by {}", or_unknown(a.environment.version),
                     or_unknown(b.environment.version));
}

/// Machines of one kind differ by a few pages of memory that their firmware reserves.
bool is_about(std::int64_t a, std::int64_t b) {
  return static_cast<double>(std::max(a, b)) <= 1.02 * static_cast<double>(std::min(a, b));
}

void compare_machine(const Record& a, const Record& b, Verdict& verdict) {
  const auto& x = a.environment;
  const auto& y = b.environment;
  refuse_if(verdict, a.device != b.device,
            fmt::format("the baseline was computed on the device {}, this on {}", a.device, b.device));
  refuse_if(verdict, a.device == b.device && a.device_name != b.device_name,
            fmt::format("the baseline was computed on {}, this on {}", or_unknown(a.device_name.value_or("")),
                        or_unknown(b.device_name.value_or(""))));
  refuse_if(verdict, x.cpu != y.cpu || x.cores != y.cores,
            fmt::format("the baseline ran on another machine: {} ({} cores) against {} ({} cores)", x.cpu,
                        x.cores, y.cpu, y.cores));
  refuse_if(verdict, x.instructions != y.instructions,
            fmt::format("the baseline's processor has the instruction sets {}, this one {}",
                        fmt::join(x.instructions, ", "), fmt::join(y.instructions, ", ")));
  refuse_if(verdict, x.build != y.build,
            fmt::format("the baseline's build is {}, this one's is {}", x.build, y.build));
  if (x.version != y.version) verdict.remarks.push_back(remark_of_versions(a, b));
  if (x.host != y.host)
    verdict.remarks.push_back(
        fmt::format("the baseline ran on host {}, this on {}: alike by name, and perhaps not as fast",
                    or_unknown(x.host), or_unknown(y.host)));
  if (!is_about(x.memory_bytes, y.memory_bytes))
    verdict.remarks.push_back(fmt::format("the baseline had {:.4g} GB of memory, this {:.4g} GB",
                                          static_cast<double>(x.memory_bytes) / 1e9,
                                          static_cast<double>(y.memory_bytes) / 1e9));
  if (x.os != y.os || x.compiler != y.compiler)
    verdict.remarks.push_back(fmt::format("the baseline's system is {} with a build by {}, here {} by {}",
                                          x.os, x.compiler, y.os, y.compiler));
  if (x.libraries != y.libraries)
    verdict.remarks.push_back("the libraries' versions differ from the baseline's");
}

/// Of the processor. Those of a GPU do not compute with their threads; but workers may share it.
void compare_threads(const Record& a, const Record& b, Verdict& verdict) {
  if (a.memory.device && b.memory.device && a.memory.device->workers != b.memory.device->workers)
    verdict.remarks.push_back(
        fmt::format("workers on the same GPU: {} in the baseline and {} here, so the ideal is not the number "
                    "of workers",
                    a.memory.device->workers, b.memory.device->workers));
  if (a.threads_per_worker == b.threads_per_worker || is_of_cuda_engine(a)) return;
  verdict.shares_cores = true;
  verdict.remarks.push_back(
      fmt::format("a worker has {} in the baseline and {} here: {} used against {}, so "
                  "the ideal is not the number of workers; give --threads to let cores grow with workers",
                  base::counted(a.threads_per_worker, "thread"), b.threads_per_worker,
                  base::counted(cores_used(a), "core was", "cores were"), cores_used(b)));
}

/// More workers may need more processes and nodes. A different transport of the gradients gets a remark.
void remark_joining(const Record& a, const Record& b, Verdict& verdict) {
  if (is_alone(a) || is_alone(b) || a.ranks.empty() || b.ranks.empty()) return;
  const auto& x = a.communication;
  const auto& y = b.communication;
  if (x.communicator != y.communicator || x.algorithm != y.algorithm || x.library != y.library)
    verdict.remarks.push_back(fmt::format("the baseline's workers are joined by {} ({}), these by {} ({})",
                                          or_unknown(x.communicator), or_unknown(x.algorithm),
                                          or_unknown(y.communicator), or_unknown(y.algorithm)));
}

std::string kept_rate(double rate, double growth) {
  return fmt::format(
      "the learning rate was kept at {:g} while the global batch grew {:g} times (linear scaling: {:g})",
      rate, growth, rate * growth);
}

void compare_tests(const Record& a, const Record& b, Verdict& verdict) {
  refuse_if(verdict, a.data.test_samples != b.data.test_samples,
            fmt::format("the baseline was tested on {} images, this on {}", a.data.test_samples,
                        b.data.test_samples));
  const auto seen_in = [](const Record& record) {
    return record.data.eval_resize
               ? fmt::format("the centre of images resized to {}", *record.data.eval_resize)
               : std::string("as much of each image as fits");
  };
  refuse_if(verdict, a.data.eval_resize != b.data.eval_resize,
            fmt::format("the baseline was tested on {}, this on {}: give both one eval-resize", seen_in(a),
                        seen_in(b)));
  const auto size_of = [](const Record& record) {
    return record.data.eval_size.value_or("the training's size");
  };
  refuse_if(verdict, a.data.eval_size != b.data.eval_size,
            fmt::format("the baseline was tested on images of {}, this of {}: give both one eval-size",
                        size_of(a), size_of(b)));
  const auto list_of = [](const Record& record) {
    const auto lists = record.data.lists_sha256.value_or(std::map<std::string, std::string>());
    const auto found = lists.find("test");
    return found == lists.end() ? "" : found->second;
  };
  const auto then = list_of(a), now = list_of(b);
  refuse_if(verdict,
            a.data.test_samples == b.data.test_samples && !then.empty() && !now.empty() && then != now,
            "the baseline was tested on other images than this: their lists differ");
}

/// A run named by its settings was trained with other settings until a resume; that gets a remark.
void remark_changes(const char* whose, const Record& record, Verdict& verdict) {
  std::vector<std::string> said;
  for (const auto& change : record.changes.value_or(std::vector<measure::ChangeRecord>()))
    if (!measure::is_of_execution(change.setting)) said.push_back(measure::sentence(change));
  if (!said.empty())
    verdict.remarks.push_back(
        fmt::format("{} was resumed with other settings: {}", whose, fmt::join(said, "; ")));
}

void compare_convergence(const Record& a, const Record& b, Verdict& verdict) {
  refuse_if(verdict, a.epochs.size() != b.epochs.size(),
            fmt::format("the baseline trained {}, this {}", base::counted(a.epochs.size(), "epoch"),
                        b.epochs.size()));
  compare_tests(a, b, verdict);
  refuse_if(
      verdict, a.data.class_weights && b.data.class_weights && a.data.class_weights != b.data.class_weights,
      "the files of --class-weights hold other weights for the baseline than for this: train both with one");
  if (a.environment.version != b.environment.version) verdict.remarks.push_back(remark_of_versions(a, b));
  remark_changes("the baseline", a, verdict);
  remark_changes("this", b, verdict);
  const bool equal_epochs = !a.epochs.empty() && a.epochs.size() == b.epochs.size();
  if (equal_epochs && a.epochs.back().updates != b.epochs.back().updates)
    verdict.remarks.push_back(
        fmt::format("{} updates against the baseline's {} at equal epochs: {}", b.epochs.back().updates,
                    a.epochs.back().updates,
                    b.epochs.back().updates < a.epochs.back().updates
                        ? "fewer updates, not only the larger batch, can cost accuracy"
                        : "more updates, not only the smaller batch, can gain accuracy"));
  // LARS counts its rate in units of |w| / |g|, Adam in units of a step: the ratio of two optimizers' rates
  // has no meaning.
  if (setting_text(a, "optimizer") != setting_text(b, "optimizer")) return;
  if (a.global_batch > 0 && b.global_batch > a.global_batch && b.learning_rate.peak == a.learning_rate.peak)
    verdict.remarks.push_back(kept_rate(
        a.learning_rate.peak, static_cast<double>(b.global_batch) / static_cast<double>(a.global_batch)));
  else if (a.learning_rate.peak > 0 && b.learning_rate.peak != a.learning_rate.peak)
    verdict.remarks.push_back(fmt::format("the learning rate's peak is {:g}, {:.3g} times the baseline's",
                                          b.learning_rate.peak, b.learning_rate.peak / a.learning_rate.peak));
}

Verdict verdict_on(const Record& baseline, const Record& other, Topic topic, bool is_of_both) {
  Verdict verdict;
  compare_subject(baseline, other, topic, is_of_both, verdict);
  if (topic == Topic::convergence) {
    compare_convergence(baseline, other, verdict);
  } else if (topic == Topic::two_runs) {
    refuse_if(verdict, is_optimised(baseline) != is_optimised(other),
              fmt::format("the baseline's build is {}, this one's is {}", baseline.environment.build,
                          other.environment.build));
  } else if (topic == Topic::time_to_accuracy) {
    compare_tests(baseline, other, verdict);
    compare_machine(baseline, other, verdict);
  } else {
    compare_machine(baseline, other, verdict);
    if (topic != Topic::same_cores && topic != Topic::tables) compare_threads(baseline, other, verdict);
    if (topic != Topic::tables) remark_joining(baseline, other, verdict);
  }
  compare_settings(baseline, other, topic, verdict);
  return verdict;
}

}  // namespace

Verdict compare(const Record& baseline, const Record& other, Topic topic) {
  return verdict_on(baseline, other, topic,
                    baseline.scaling == kBothScalings || other.scaling == kBothScalings);
}

Verdict compare(const Cell& baseline, const Cell& other, Topic topic) {
  return verdict_on(baseline.record(), other.record(), topic,
                    baseline.scaling == kBothScalings || other.scaling == kBothScalings);
}

}  // namespace paceline::analysis
