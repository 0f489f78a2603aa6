#include "cli/options/unread_options.h"

#include <fmt/format.h>

#include "cli/options/options.h"
#include "train/given/recorded_settings.h"

namespace paceline::cli {

using measure::Setting;

std::vector<UnreadOption> unread_options(const Settings& settings) {
  const auto& train = settings.train;
  std::vector<UnreadOption> unread;
  const auto read = train::settings(train);  // numbers without effect are absent there
  for (std::size_t row = 0; row < Setting::count(); ++row) {
    const auto setting = Setting::at(row);
    if (!settings.is_given(setting) || measure::find_text(read, setting) != nullptr) continue;
    const auto* option = find_option(setting.key(), settings.command);
    if (option != nullptr && !option->needs.empty())
      unread.push_back({setting, fmt::format("without {}", option->needs)});
  }
  const auto add = [&](Setting setting, bool is_unread, const char* why) {
    if (is_unread && settings.is_given(setting)) unread.push_back({setting, why});
  };
  for (const Setting setting : {Setting("crop-padding"), Setting("crop-fill"), Setting("flip"),
                                Setting("rotate"), Setting("shear"), Setting("shift")})
    add(setting, !train.augment, "with --no-augment");
  using engine::UpdateKind;
  const auto kind = train.rule.kind;
  const bool has_momentum =
      kind == UpdateKind::sgd || kind == UpdateKind::lars || kind == UpdateKind::rmsprop;
  add(Setting("momentum"), !has_momentum, "without --optimizer sgd, lars or rmsprop");
  add(Setting("momentum-correction"), train.momentum_correction && kind != UpdateKind::lars,
      "without --optimizer lars");
  add(Setting("warmup-start"), train.schedule.warmup_start > 0 && train.schedule.warmup_epochs == 0,
      "without --warmup");
  return unread;
}

std::string sentence(const UnreadOption& unread) {
  return fmt::format("--{} changes nothing {}", unread.setting.key(), unread.why);
}

}  // namespace paceline::cli
