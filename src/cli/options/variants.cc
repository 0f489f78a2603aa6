#include "cli/options/variants.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/values.h"
#include "cli/options/options.h"
#include "study/remedies.h"

namespace paceline::cli {
namespace {

using base::ErrorKind;
using measure::SettingRole;

/// Whether the option belongs to the learning rule, so that trainings that differ in it may be compared.
bool is_of_the_rule(const Option& option) {
  const auto role = option.setting.role();
  return role == SettingRole::rule || role == SettingRole::remedy || role == SettingRole::lr_scaling;
}

/// Makes variants with "key value" in their name change that option.
void add_change(Settings& settings, const std::string& key, const std::string& value) {
  const Option* const option = find_option(key, kConverge);
  if (option == nullptr)
    base::fail(ErrorKind::usage, "has '{}={}', but {} {}", key, value, key, why_unknown(key, kConverge, ""));
  if (!is_of_the_rule(*option))
    base::fail(
        ErrorKind::usage,
        "has '{}={}', but only options of the learning rule tell variants apart; give --{} to all of them",
        key, value, key);
  const auto change = [option, value](train::Options& options) {
    Settings changed = defaults(kConverge);
    changed.train = options;
    option->set(changed, value);
    options = changed.train;
  };
  try {
    train::Options tried = settings.train;
    change(tried);
  } catch (const base::Error& error) {
    throw base::Error(error.kind(), fmt::format("has '{}={}', whose value {}", key, value, error.what()));
  }
  settings.study.converge.changes[fmt::format("{} {}", key, value)] = change;
}

}  // namespace

void choose_variants(Settings& settings, std::string_view text) {
  auto& axes = settings.study.converge;
  const auto all = study::converge_variants();
  axes.variants = {all[0], all[1]};
  for (const std::string& words : base::parts(text)) {
    const auto name = study::variant_name(words);
    if (std::find(axes.variants.begin(), axes.variants.end(), name) != axes.variants.end()) continue;
    axes.variants.push_back(name);
    for (std::size_t begin = 0; begin < words.size();) {
      const std::size_t end = std::min(words.find('+', begin), words.size());
      const std::string piece = words.substr(begin, end - begin);
      if (const auto equals = piece.find('='); equals != std::string::npos)
        add_change(settings, piece.substr(0, equals), piece.substr(equals + 1));
      begin = end + 1;
    }
  }
}

}  // namespace paceline::cli
