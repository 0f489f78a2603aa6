/// Reads the heads and cells of tables in people's own words.

#include "table/own_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

namespace paceline::table {
namespace {

/// People's words for a column, in small letters, and what they say besides.
constexpr Synonym kSynonyms[] = {
    {"run", "name|config|configuration|experiment|run|method"},
    {"device", "gpu type|gpu model|gpu name|hardware|device"},
    {"model", "model|network|architecture"},
    {"workers",
     "gpus|gpu|# gpus|#gpus|no. of gpus|number of gpus|num gpus|gpu count|ngpus|n|workers|ranks|"
     "processes|procs|world size|devices|number of workers"},
    {"nodes", "nodes|number of nodes|hosts|machines|# nodes"},
    {"local_batch",
     "batch per gpu|batch size per gpu|batch/gpu|per-gpu batch|per gpu batch|local batch|"
     "local batch size|batch per worker|batch size per worker|batch size/gpu|per-gpu batch size"},
    {"global_batch", "global batch|global batch size|total batch|total batch size|effective batch size"},
    {"batch", "batch|batch size|batchsize|bs"},
    {"train_samples", "training images|train images|training samples|train samples|dataset size"},
    {"test_samples", "test images|test samples|number of test images"},
    {"epochs", "epochs|number of epochs|# epochs"},
    {"steps", "steps|iterations|number of steps"},
    {"time_s", "epoch time|time per epoch|time/epoch|epoch duration|sec/epoch|s/epoch|seconds per epoch",
     "time_of", "epoch"},
    {"time_s",
     "step time|time per step|time/step|iteration time|time per iteration|time/iter|s/iter|s/step|batch time",
     "time_of", "step"},
    {"time_s", "total time|training time|wall time|run time|runtime|time to train|total training time",
     "time_of", "run"},
    {"time_s", "time|duration|elapsed"},
    {"compute_s", "compute|computation|compute time|computation time|computing time"},
    {"communication_s",
     "communication|comm|comm.|communication time|comm time|all-reduce time|allreduce time"},
    {"data_wait_s", "data wait|data loading|data loading time|loading time|i/o time"},
    {"rate_per_s",
     "throughput|images/s|images/sec|img/s|img/sec|imgs/sec|imgs/s|samples/s|samples/sec|"
     "images per second|samples per second|speed"},
    {"claimed_speedup", "speedup|speed-up|speed up"},
    {"scaling", "scaling|scaling factor"},  // words, or a claim: read_by_values() looks
    {"claimed_efficiency", "efficiency|scaling efficiency|parallel efficiency"},
    {"claimed_bandwidth", "bandwidth|bus bandwidth|busbw|algbw|bandwidth utilization|bandwidth utilisation"},
    {"claim", "claim|conclusion|remark|remarks|comment|comments|observation|note|notes"},
    {"best", "best"},
    {"parameters", "parameters|params|# params|number of parameters|model size"},
    {"accuracy", "accuracy|top-1|top1|top-1 accuracy|acc|acc."},
    {"accuracy", "test accuracy|test acc", "quality_of", "test"},
    {"accuracy", "validation accuracy|val accuracy|val acc|valid accuracy", "quality_of", "validation"},
    {"accuracy", "training accuracy|train accuracy|train acc", "quality_of", "training"},
    {"loss", "loss|test loss"},
    {"learning_rate", "lr|learning rate"},
    {"optimizer", "optimizer|optimiser"},
};

/// Seconds of a unit of time; 0: not one.
double seconds_of(std::string_view unit) {
  static const std::map<std::string_view, double> kUnits{
      {"s", 1},       {"sec", 1},     {"secs", 1},    {"second", 1},   {"seconds", 1},
      {"ms", 1e-3},   {"msec", 1e-3}, {"us", 1e-6},   {"µs", 1e-6},    {"milliseconds", 1e-3},
      {"min", 60},    {"mins", 60},   {"minute", 60}, {"minutes", 60}, {"h", 3600},
      {"hr", 3600},   {"hrs", 3600},  {"hour", 3600}, {"hours", 3600}, {"d", 86400},
      {"day", 86400}, {"days", 86400}};
  const auto found = kUnits.find(unit);
  return found == kUnits.end() ? 0 : found->second;
}

/// Whether words in brackets say which figure it is, and not its unit.
bool is_remark(std::string_view words) {
  return is_any(words, {"avg", "avg.", "average", "mean", "median", "total", "all", "all gpus", "per gpu",
                        "per worker", "measured", "wall", "wall clock", "wall-clock", "approx", "approx."});
}

/// The factor of "k", with which `text` then no longer begins; 1 without one.
double take_thousands(std::string_view& text) {
  static constexpr std::pair<std::string_view, double> kAll[] = {
      {"thousand", 1e3}, {"million", 1e6}, {"1000", 1e3}, {"10^3", 1e3}, {"10^6", 1e6}, {"k", 1e3}};
  for (const auto& [word, factor] : kAll)
    if (text.starts_with(word)) {
      text = trimmed(text.substr(word.size()));
      return factor;
    }
  return 1;
}

/// Images per second in one "k images/min"; nothing for other units.
std::optional<double> images_per_s(std::string_view unit) {
  for (const std::string_view each : {"/gpu", "/worker", " per gpu", " per worker"})
    if (unit.ends_with(each)) unit.remove_suffix(each.size());
  const double thousands = take_thousands(unit);
  if (unit.empty()) return thousands;
  const auto slash = unit.find('/'), per = unit.find(" per ");
  const auto end = std::min(slash, per);
  if (end == std::string_view::npos) return std::nullopt;
  const auto seconds = seconds_of(trimmed(unit.substr(end + (slash < per ? 1 : 5))));
  const auto what = trimmed(unit.substr(0, end));
  const bool is_of_images =
      is_any(what, {"images", "image", "imgs", "img", "im", "samples", "sample", "examples"}) ||
      (what.empty() && thousands > 1);
  return is_of_images && seconds > 0 ? std::optional(thousands / seconds) : std::nullopt;
}

/// What one of the unit in brackets is in the unit of `column`; 0 if it is no unit, nothing if it is unknown.
std::optional<double> factor_of(std::string_view column, std::string_view unit) {
  if (unit.starts_with("in ")) unit.remove_prefix(3);
  if (is_time(column)) {
    if (const double seconds = seconds_of(unit); seconds > 0) return seconds;
    if (unit.find(':') != std::string_view::npos &&
        unit.find_first_not_of("hmsin:.0") == std::string_view::npos)
      return 1;
    return is_remark(unit) ? std::optional(0.0) : std::nullopt;
  }
  if (column == "rate_per_s") return is_remark(unit) ? std::optional(0.0) : images_per_s(unit);
  if (unit == "%") return 0.01;
  if (column == "parameters" || column == "train_samples" || column == "test_samples") {
    if (unit == "m" || unit == "millions") return 1e6;
    if (unit == "b" || unit == "billions") return 1e9;
    const double factor = take_thousands(unit);
    if (factor > 1 && (unit.empty() || unit == "s")) return factor;
  }
  return 0;
}

/// `number` times `factor`, with digits whose half unit is not smaller than that of the number.
std::string converted(const Number& number, double factor) {
  const double value = number.value * factor, half = number.half_unit * factor;
  if (value == 0 || half <= 0) return fmt::format("{:.12g}", value);
  const auto unit = static_cast<int>(std::ceil(std::log10(2 * half) - 1e-9));  // 10^unit >= 2 half
  const auto size = static_cast<int>(std::floor(std::log10(std::abs(value))));
  if (unit <= 0 && unit >= -9) return fmt::format("{:.{}f}", value, -unit);
  return fmt::format("{:.{}e}", value, std::max(0, size - unit));
}

/// "9:41" and "1:02:03" in seconds, known to the last part; "" for other texts. `first`: seconds of the first
/// of two parts, 60 or 3600.
std::string seconds_of_clock(std::string_view text, double first) {
  if (text.find(':') == std::string_view::npos ||
      text.find_first_not_of("0123456789:.") != std::string_view::npos)
    return "";
  double last = 0;  // in the unit of the last part
  const auto parts = split_at(text, ':');
  for (const auto part : parts) {
    const auto number = read_number(part);
    if (!number) return "";
    last = 60 * last + number->value;
  }
  const auto number = read_number(fmt::format("{:.12g}", last));
  return parts.size() == 2 && first > 60 ? converted(*number, first / 60) : number->text;
}

/// The number before a word: "2 GPUs" -> "2", "11.2M" -> "11.2" with a factor of a million.
double take_word(const std::string& column, std::string& text) {
  const auto end = text.find_first_not_of("0123456789.+-e");
  if (end == 0 || end == std::string::npos) return 1;
  const auto word = std::string(trimmed(std::string_view(text).substr(end)));
  double factor = 0;
  if (is_time(column)) factor = seconds_of(word);
  if (column == "parameters") factor = word == "m" ? 1e6 : word == "k" ? 1e3 : word == "b" ? 1e9 : 0;
  if ((column == "workers" || column == "nodes") && (word.starts_with("gpu") || word.starts_with("worker") ||
                                                     word.starts_with("node") || word.starts_with("proc")))
    factor = 1;
  if (factor == 0) return 1;
  text = std::string(trimmed(std::string_view(text).substr(0, end)));
  return factor;
}

}  // namespace

std::string plain(std::string_view text) {
  std::string words;
  for (const char letter : text) {
    const char small = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    if (small == '*' || small == '`' || (small == '_' && text.size() > 1)) {
      if (small == '_') words += ' ';
      continue;
    }
    words += small;
  }
  return std::string(trimmed(words));
}

bool is_time(std::string_view column) { return column.ends_with("_s") && column != "rate_per_s"; }

std::string OwnHeading::name() const {
  if (ours) return *ours;
  if (synonym != nullptr) return std::string(synonym->column);
  std::string name = plain(source);
  std::ranges::replace(name, ' ', '-');
  return std::string(kSettingPrefix) + name;
}

const Synonym* synonym_of(std::string_view words) {
  for (const Synonym& one : kSynonyms)
    for (const auto known : split_at(one.words, '|'))
      if (known == words) return &one;
  return nullptr;
}

OwnHeading own_heading_of(const std::string& source) {
  OwnHeading heading{.source = std::string(trimmed(source))};
  if (Column::find(heading.source) || heading.source.starts_with(kSettingPrefix)) {
    heading.ours = heading.source;
    return heading;
  }
  std::string words = plain(source), unit;
  if (const auto open = words.find_first_of("(["); open != std::string::npos) {
    const auto close = words.find_first_of(")]", open);
    const auto size = close == std::string::npos ? close : close - open - 1;
    unit = std::string(trimmed(std::string_view(words).substr(open + 1, size)));
    // With its capitals: GB/s and Gb/s differ.
    if (const auto begin = heading.source.find_first_of("(["); begin != std::string::npos)
      heading.unit = std::string(trimmed(std::string_view(heading.source).substr(begin + 1, size)));
    words = std::string(trimmed(std::string_view(words).substr(0, open)));
  }
  // "epoch time s", of epoch_time_s
  if (const auto blank = words.rfind(' ');
      unit.empty() && blank != std::string::npos && seconds_of(words.substr(blank + 1)) > 0) {
    unit = words.substr(blank + 1);
    words.resize(blank);
  }
  heading.synonym = synonym_of(words);
  if (unit.empty()) return heading;
  for (const auto& whole :
       {words + ' ' + unit, unit + ' ' + words})  // "Batch size (per GPU)", "Time (epoch)"
    if (const auto* synonym = synonym_of(whole); synonym != nullptr) {
      heading.synonym = synonym;
      return heading;
    }
  if (heading.synonym == nullptr) return heading;
  // "Time (s/epoch)"
  const auto* per = synonym_of("time" + unit.substr(std::min(unit.find('/'), unit.size())));
  if (heading.synonym->column == "time_s" && per != nullptr && !per->also.empty() &&
      (heading.synonym->also.empty() || heading.synonym == per)) {
    heading.synonym = per;
    unit.resize(unit.find('/'));
  }
  const auto factor = factor_of(heading.synonym->column, unit);
  heading.is_unknown = !factor;
  heading.factor = factor.value_or(0);
  // "(h)" and "(h:mm)": 0:13 is 13 minutes. "(h:mm:ss)" with two parts has lost its hours.
  if (is_time(heading.synonym->column) && (unit.starts_with('h') && std::ranges::count(unit, ':') < 2))
    heading.clock = 3600;
  return heading;
}

std::string cell_of(const OwnHeading& heading, std::string_view source) {
  std::string text = plain(source);
  if (is_any(text, {"", "-", "–", "—", "n/a", "na", "?"})) return "";
  if (heading.synonym == nullptr && !heading.ours) return std::string(trimmed(source));
  const std::string column = heading.name();
  const auto found = Column::find(column);
  if (column == "scaling") return text.substr(0, text.find(" scaling"));  // "Strong scaling"
  if (!found || found->kind() == ColumnKind::text || found->kind() == ColumnKind::word)
    return column == "best" ? (text == "no" || text == "false" ? "no" : "yes") : std::string(trimmed(source));
  if (heading.has_decimal_comma && std::ranges::count(text, ',') == 1) text[text.find(',')] = '.';
  text = without_groups(text).value_or(text);
  for (const std::string_view times : {"x", "×"})
    if (text.ends_with(times))
      text = std::string(trimmed(std::string_view(text).substr(0, text.size() - times.size())));
  if (is_time(column))
    if (auto clock = seconds_of_clock(text, heading.clock); !clock.empty()) return clock;
  double factor = heading.factor > 0 ? heading.factor : 1;
  if (text.ends_with('%')) {
    text = std::string(trimmed(std::string_view(text).substr(0, text.size() - 1)));
    factor = 0.01;
  } else if (const double word = take_word(column, text); word != 1) {
    factor = word;
  }
  const auto number = read_number(text);
  if (!number) return std::string(trimmed(source));  // the reader says what is wrong with it
  return factor == 1 ? text : converted(*number, factor);
}

}  // namespace paceline::table
