#include "train/recorded_settings.h"

#include <fmt/format.h>

#include <set>

#include "train/names.h"

namespace paceline::train {

std::map<std::string, std::string> settings(const Options& options) {
  const auto& rule = options.rule;
  const auto& schedule = options.schedule;
  std::map<std::string, std::string> result{
      {"model", options.model},
      {"data", options.data},
      {"device", options.device},
      {"precision", options.precision},
      {"seed", std::to_string(options.seed)},
      {"workers", std::to_string(options.workers)},
      {"threads", std::to_string(options.threads)},
      {"local-batch", std::to_string(options.local_batch)},
      {"global-batch", std::to_string(options.global_batch)},
      {"shard", std::to_string(options.shard)},
      {"pin", options.pin ? "true" : "false"},
      {"measured-kernels", options.measured_kernels ? "true" : "false"},
      {"loader-threads", std::to_string(options.loader_threads)},
      {"bucket-mb", options.bucket_auto ? "auto" : fmt::format("{}", options.bucket_mb)},
      {"epochs", fmt::format("{}", options.epochs)},
      {"steps", std::to_string(options.steps)},
      {"evaluate-every", std::to_string(options.evaluate_every)},
      {"optimizer", std::string(name(rule.kind))},
      {"momentum", fmt::format("{}", rule.momentum)},
      {"nesterov", rule.nesterov ? "true" : "false"},
      {"weight-decay", fmt::format("{}", rule.weight_decay)},
      {"decay-norm-and-bias", rule.decay_norm_and_bias ? "true" : "false"},
      {"lr", fmt::format("{}", options.lr)},
      {"scale-lr", std::string(name(options.scale_lr))},
      {"lr-batch", std::to_string(options.lr_batch)},
      {"schedule", std::string(name(schedule.kind))},
      {"warmup", fmt::format("{}", schedule.warmup_epochs)},
      {"bn", name(options.batch_norm, options.ghost_size)},
      {"label-smoothing", fmt::format("{}", options.label_smoothing)},
      {"augment", options.augment ? "true" : "false"},
      {"window-steps", std::to_string(options.window_steps)},
      {"warmup-steps", std::to_string(options.warmup_steps)},
      {"window-seconds", fmt::format("{}", options.window_seconds)},
  };
  // Numbers that only some choices read: absent where nothing reads them.
  if (options.validation_split > 0) result["validation-split"] = fmt::format("{}", options.validation_split);
  if (options.crop_padding) result["crop-padding"] = std::to_string(*options.crop_padding);
  if (options.crop_fill != data::CropFill::black) result["crop-fill"] = name(options.crop_fill);
  if (options.flip) result["flip"] = name(*options.flip);
  if (options.test_views != 1) result["test-time-augmentation"] = name_of_views(options.test_views);
  if (options.skip_bad_images) result["bad-images"] = "skip";
  if (rule.kind == engine::UpdateKind::adam || rule.kind == engine::UpdateKind::adamw) {
    result["beta1"] = fmt::format("{}", rule.beta1);
    result["beta2"] = fmt::format("{}", rule.beta2);
  }
  if (rule.kind == engine::UpdateKind::rmsprop) result["alpha"] = fmt::format("{}", rule.alpha);
  if (rule.kind == engine::UpdateKind::adadelta) result["rho"] = fmt::format("{}", rule.rho);
  if (rule.kind == engine::UpdateKind::lars)
    result["trust"] = fmt::format("{}", rule.trust);
  else if (rule.kind != engine::UpdateKind::sgd)
    result["epsilon"] = fmt::format("{}", rule.epsilon);
  if (schedule.kind == ScheduleKind::step) {
    result["step-epochs"] = fmt::format("{}", schedule.step_epochs);
    result["step-factor"] = fmt::format("{}", schedule.step_factor);
  }
  if (schedule.kind == ScheduleKind::cosine || schedule.kind == ScheduleKind::one_cycle)
    result["final-factor"] = fmt::format("{}", schedule.final_factor);
  if (schedule.kind == ScheduleKind::one_cycle) {
    result["one-cycle-peak"] = fmt::format("{}", schedule.one_cycle_peak);
    result["one-cycle-start"] = fmt::format("{}", schedule.one_cycle_start);
  }
  if (options.lookahead.steps > 0) {
    result["lookahead"] = std::to_string(options.lookahead.steps);
    result["lookahead-keep"] = fmt::format("{}", options.lookahead.keep);
    result["lookahead-power"] = fmt::format("{}", options.lookahead.power);
  }
  if (options.gradients_as_bf16) result["gradients-as"] = "bf16";
  if (!options.shared_memory) result["shared-memory"] = "false";
  if (!options.emulate_link.empty()) result["emulate-link"] = options.emulate_link;
  if (!options.emulate_straggler.empty()) result["emulate-straggler"] = options.emulate_straggler;
  return result;
}

std::vector<measure::ChangeRecord> differences(const std::map<std::string, std::string>& then,
                                               const std::map<std::string, std::string>& now) {
  std::set<std::string> names;
  for (const auto* settings : {&then, &now})
    for (const auto& [name, value] : *settings) names.insert(name);
  const auto in = [](const std::map<std::string, std::string>& settings, const std::string& name) {
    const auto found = settings.find(name);
    return found == settings.end() ? std::nullopt : std::optional(found->second);
  };
  std::vector<measure::ChangeRecord> found;
  for (const auto& name : names)
    if (const auto before = in(then, name), after = in(now, name); before != after)
      found.push_back({.setting = name, .then = before, .now = after});
  return found;
}

}  // namespace paceline::train
