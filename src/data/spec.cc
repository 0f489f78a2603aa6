#include "data/spec.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/rng.h"
#include "base/text.h"

namespace paceline::data {
namespace {

/// The samples of one class as pairs (hash of purpose and index, index), ascending.
using Members = std::vector<std::pair<std::uint64_t, std::int64_t>>;

std::map<std::int32_t, Members> shuffled_classes(std::span<const std::int32_t> labels, CutFor purpose) {
  constexpr std::uint64_t kSeed = 0;  // never the run's seed: the parts must not depend on it
  std::map<std::int32_t, Members> classes;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    base::Rng rng(kSeed, base::Purpose::split, i, static_cast<std::uint64_t>(purpose));
    classes[labels[i]].push_back({rng.next_u64(), static_cast<std::int64_t>(i)});
  }
  for (auto& [label, members] : classes) std::sort(members.begin(), members.end());
  return classes;
}

std::vector<std::int32_t> labels_of(const Dataset& dataset) {
  std::vector<std::int32_t> labels(static_cast<std::size_t>(dataset.size()));
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = dataset.label(static_cast<std::int64_t>(i));
  return labels;
}

/// Commands in reports are written with ~, which no shell expands after a colon.
std::string with_home(const std::string& directory) {
  const char* const home = std::getenv("HOME");
  const bool is_of_home = directory == "~" || directory.starts_with("~/");
  return is_of_home && home != nullptr ? home + directory.substr(1) : directory;
}

/// `text` as a number, if it is one in [low, high].
std::optional<double> decimal_in(std::string_view text, double low, double high) {
  const auto value = base::to_number<double>(text);
  return value && *value >= low && *value <= high ? value : std::nullopt;
}

}  // namespace

std::vector<std::string> split_text(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size(); begin += parts.back().size() + separator.size())
    parts.emplace_back(text.substr(begin, text.find(separator, begin) - begin));
  return parts;
}

Subset::Subset(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> indices)
    : WrappedDataset(std::move(whole)), indices_(std::move(indices)) {
  for (const auto index : indices_)
    base::expects(index >= 0 && index < set().size(), "a subset's indices lie in its whole");
}

std::int64_t Subset::at(std::int64_t index) const {
  base::expects(index >= 0 && index < size(), "0 <= index < size");
  return indices_[static_cast<std::size_t>(index)];
}

std::vector<std::int64_t> Subset::shard_sizes() const {
  auto ends = set().shard_sizes();
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  return counts_between(ends, indices_);
}

std::unique_ptr<Dataset> Subset::as_evaluated() const {
  std::shared_ptr<const Dataset> whole = set().as_evaluated();
  return whole == nullptr ? nullptr : std::make_unique<Subset>(std::move(whole), indices_);
}

Cut stratified_cut(std::span<const std::int32_t> labels, double fraction, CutFor purpose) {
  base::expects(fraction > 0 && fraction < 1, "0 < fraction < 1");
  Cut cut;
  for (const auto& [label, members] : shuffled_classes(labels, purpose)) {
    const auto count = static_cast<double>(members.size());
    const auto taken = std::min(static_cast<std::size_t>(std::lround(count * fraction)), members.size() - 1);
    for (std::size_t i = 0; i < members.size(); ++i)
      (i < taken ? cut.part : cut.rest).push_back(members[i].second);
  }
  std::sort(cut.rest.begin(), cut.rest.end());
  std::sort(cut.part.begin(), cut.part.end());
  return cut;
}

void cut_validation(Source& source, double fraction) {
  if (source.validation)
    base::fail(
        base::ErrorKind::usage,
        "--validation-split {:g}: '{}' has a validation set of {} images already; leave the option out",
        fraction, source.spec, source.validation->size());
  const auto labels = labels_of(*source.train);
  Cut cut = stratified_cut(labels, fraction, CutFor::validation);
  if (cut.part.empty())
    base::fail(
        base::ErrorKind::usage,
        "--validation-split {:g}: no class of the {} training images has enough of them to hold one back; "
        "use a larger part",
        fraction, labels.size());
  const std::shared_ptr<const Dataset> whole = std::move(source.train);
  source.resident_bytes += static_cast<std::int64_t>(labels.size() * sizeof(std::int64_t));
  source.notes.push_back(
      fmt::format("validation: {} of {} training images, {:g} of every class, the same ones "
                  "for every seed; {} are left to train on",
                  cut.part.size(), labels.size(), fraction, cut.rest.size()));
  source.train = std::make_unique<Subset>(whole, std::move(cut.rest));
  source.validation = std::make_unique<Subset>(whole, std::move(cut.part));
  if (auto evaluated = source.validation->as_evaluated()) source.validation = std::move(evaluated);
}

void cut_training(Source& source, std::int64_t count) {
  const auto labels = labels_of(*source.train);
  base::expects(count >= 1 && count <= source.train->size(), "1 <= count <= training images");
  if (count == source.train->size()) return;
  // An image's turn is the fraction of its class that comes before it. So after any number of images all
  // classes have advanced equally far.
  struct Turn {
    double part;
    std::uint64_t hash;
    std::int64_t index;
    auto operator<=>(const Turn&) const = default;
  };
  std::vector<Turn> turns;
  for (const auto& [label, members] : shuffled_classes(labels, CutFor::training))
    for (std::size_t i = 0; i < members.size(); ++i)
      turns.push_back({(static_cast<double>(i) + 0.5) / static_cast<double>(members.size()), members[i].first,
                       members[i].second});
  std::sort(turns.begin(), turns.end());
  std::vector<std::int64_t> kept;
  for (std::int64_t i = 0; i < count; ++i) kept.push_back(turns[static_cast<std::size_t>(i)].index);
  std::sort(kept.begin(), kept.end());
  source.resident_bytes += count * static_cast<std::int64_t>(sizeof(std::int64_t));
  source.description += fmt::format("; trained on {} of them", count);
  source.notes.push_back(
      fmt::format("train={}: of {} training images, every class's share, the same ones for every seed", count,
                  labels.size()));
  source.train = std::make_unique<Subset>(std::move(source.train), std::move(kept));
}

Spec parse_spec(const std::string& text) {
  Spec spec{.text = text, .name = {}, .directory = {}, .options = {}};
  auto items = split_text(text, ",");
  const std::string head = items.front();
  items.erase(items.begin());
  const std::size_t colon = head.find(':');
  spec.name = head.substr(0, colon);
  if (colon != std::string::npos) spec.directory = with_home(head.substr(colon + 1));
  for (const auto& item : items) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0)
      base::fail(
          base::ErrorKind::usage,
          "data '{}': an option is written key=value, but after the comma stands '{}'; a directory name "
          "may hold no comma, and several numbers of one option are joined by ':'",
          text, item);
    const std::string key = item.substr(0, equals);
    if (!spec.options.emplace(key, item.substr(equals + 1)).second)
      base::fail(base::ErrorKind::usage, "data '{}': the option '{}' is given twice; keep one of them", text,
                 key);
  }
  return spec;
}

std::optional<std::string> Spec::option(const std::string& key) const {
  const auto found = options.find(key);
  return found == options.end() ? std::nullopt : std::optional(found->second);
}

void expect_options(const Spec& spec, std::span<const std::string> known) {
  for (const auto& [key, value] : spec.options)
    if (std::ranges::find(known, key) == known.end())
      base::fail(base::ErrorKind::usage, "data '{}': {} has no option '{}'{}", spec.text, spec.name, key,
                 base::suggestion(key, known));
}

std::int64_t integer_option(const Spec& spec, const std::string& key, std::int64_t otherwise,
                            std::int64_t low, std::int64_t high) {
  const auto text = spec.option(key);
  return text ? integer_in(spec, key, *text, low, high) : otherwise;
}

std::int64_t integer_in(const Spec& spec, const std::string& key, std::string_view text, std::int64_t low,
                        std::int64_t high) {
  const auto value = base::to_number<std::int64_t>(text);
  if (!value || *value < low || *value > high)
    base::fail(base::ErrorKind::usage, "data '{}': {} is a whole number from {} to {}, not '{}'; correct it",
               spec.text, key, low, high, text);
  return *value;
}

double decimal_option(const Spec& spec, const std::string& key, double otherwise, double low, double high) {
  const auto text = spec.option(key);
  if (!text) return otherwise;
  const auto value = decimal_in(*text, low, high);
  if (!value)
    base::fail(base::ErrorKind::usage, "data '{}': {} is a number from {:g} to {:g}, not '{}'; correct it",
               spec.text, key, low, high, *text);
  return *value;
}

std::vector<double> decimals_option(const Spec& spec, const std::string& key, std::size_t count, double low,
                                    double high) {
  const auto text = spec.option(key);
  if (!text) return {};
  std::vector<double> values;
  const auto parts = split_text(*text, ":");
  for (const auto& part : parts)
    if (const auto value = decimal_in(part, low, high)) values.push_back(*value);
  if (values.size() == parts.size()) {
    if (parts.size() == 1) values.resize(count, values.front());
    if (values.size() == count) return values;
  }
  base::fail(base::ErrorKind::usage,
             "data '{}': {} is a number from {:g} to {:g} for each of {}, joined by ':', or one for "
             "all, not '{}'; correct it",
             spec.text, key, low, high, base::counted(count, "channel"), *text);
}

std::optional<Range> range_option(const Spec& spec) {
  const auto text = spec.option("range");
  if (!text) return std::nullopt;
  if (const auto range = range_named(*text)) return range;
  base::fail(
      base::ErrorKind::usage,
      "data '{}': range is own (each image's smallest value becomes 0 and its largest 255) or LOW:HIGH, the "
      "values of 16 bits that become 0 and 255, with 0 <= LOW < HIGH <= 65535, not '{}'; correct it",
      spec.text, *text);
}

}  // namespace paceline::data
