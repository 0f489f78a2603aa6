/// Writes a proposal as text: the recipe, and the findings.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "init/proposal.h"

namespace paceline::init {
namespace {

constexpr std::size_t kColumns = 110;

/// `text` as comment lines.
std::string as_comment(const std::string& text, const std::string& begin = "# ") {
  std::string result;
  for (const auto& line : base::wrapped(text, kColumns)) result += begin + line + "\n";
  return result;
}

/// Replaces line ends, since a class name may contain any character and a comment ends with its line.
std::string in_one_line(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return text;
}

std::string range_of(const std::vector<int>& ascending) {
  if (ascending.empty()) return "?";
  return ascending.front() == ascending.back() ? std::to_string(ascending.front())
                                               : fmt::format("{} to {}", ascending.front(), ascending.back());
}

}  // namespace

std::string toml_string(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < ' ' || c == 0x7f)
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      result += c;
  }
  return result + "\"";
}

std::vector<std::string> findings(const DataFacts& facts) {
  std::vector<std::string> lines;
  const auto line = [&](const char* name, const std::string& text) {
    lines.push_back(fmt::format("{:<12}{}", name, in_one_line(text)));
  };
  line("data", facts.spec);
  line("images", fmt::format("{} to train, {}{} to test", facts.train,
                             facts.validation > 0 ? fmt::format("{} to validate, ", facts.validation) : "",
                             facts.test));
  line("classes",
       facts.fewest() == facts.most()
           ? fmt::format("{}, each with {} training images", facts.classes(), facts.most())
           : fmt::format("{}, with {} to {} training images", facts.classes(), facts.fewest(), facts.most()));
  for (const auto& note : facts.notes) line("note", note);
  if (!facts.has_sizes) {
    line("sizes", fmt::format("{}x{}x{} (height, width, channels)", facts.format.height, facts.format.width,
                              facts.format.channels));
    return lines;
  }
  line("looked at", facts.looked_at_all() ? fmt::format("all {}", facts.looked_at)
                                          : fmt::format("{} of {}, evenly", facts.looked_at, facts.all()));
  line("sizes", fmt::format("shorter side {}, longer side {} pixels", range_of(facts.short_sides),
                            range_of(facts.long_sides)));
  std::vector<std::string> kinds;
  for (const auto& [kind, count] : facts.kinds) kinds.push_back(fmt::format("{} {}", count, kind));
  line("kinds", fmt::format("{}{}{}", fmt::join(kinds, ", "), facts.is_mostly_grey() ? "; grey" : "",
                            facts.is_mostly_plain() ? "; before a plain background" : ""));
  if (facts.turned > 0) line("turned", fmt::format("{} by EXIF, and read upright", facts.turned));
  line("broken", facts.broken.empty() ? "none"
                                      : fmt::format("{}: {}{}", facts.broken.size(), facts.broken.front(),
                                                    facts.broken.size() > 1 ? "; ..." : ""));
  line("duplicates",
       !facts.sought_duplicates
           ? fmt::format("not looked for among more than {}; paceline data verify does", kMostCompared)
       : facts.across_parts + facts.inside_train == 0
           ? "none"
           : fmt::format("{} across the parts, {} inside train", facts.across_parts, facts.inside_train));
  return lines;
}

std::string recipe_text(const DataFacts& facts, const Proposal& proposal, const std::string& file) {
  std::string text =
      "# A recipe for images of your own, proposed by 'paceline init'. Every line may be changed; what is typed wins.\n#\n";
  text += fmt::format(
      "#   paceline train {0} --plan     # memory, steps, files; writes nothing\n"
      "#   paceline train {0} --quick    # 30 updates: whether it runs\n"
      "#   paceline train {0}\n#\n# Found:\n",
      file);
  for (const auto& line : findings(facts)) text += "#   " + line + "\n";
  for (const auto& warning : proposal.warnings) text += as_comment("Note: " + in_one_line(warning) + ".");
  for (const auto& [key, value, reason] : proposal.choices) {
    if (!reason.empty()) text += "\n" + as_comment(in_one_line(reason));
    if (!value.empty()) text += fmt::format("{} = {}\n", key, value);
  }
  return text + "\n[quick]\nsteps = 30\n";
}

}  // namespace paceline::init
