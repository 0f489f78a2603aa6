#include "data/shards/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/formats/arrays.h"
#include "data/formats/formats.h"
#include "data/image/dataset.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using base::ErrorKind;

/// The files that an option names: beside the training shards, or where the path leads.
///
/// Errors   as shard_paths(), of the first of these places
std::vector<fs::path> beside(const fs::path& first_shard, const std::string& pattern) {
  try {
    return shard_paths((first_shard.parent_path() / pattern).string());
  } catch (const base::Error& error) {
    try {
      return shard_paths(pattern);
    } catch (const base::Error&) {
      throw error;
    }
  }
}

std::optional<std::int64_t> as_number(const std::string& text) { return base::to_number<std::int64_t>(text); }

/// The classes by the labels' texts.
class Classes {
 public:
  Classes(const Spec& spec, const fs::path& first_shard, const ShardIndex& train) : spec_(spec) {
    if (const auto file = spec.option("classes").value_or(""); !file.empty()) {
      read_names(beside(first_shard, file).front());
      // Names may be numbers too, as of folders "1" to "10": labels that can be lines of the file are lines.
      if (std::ranges::all_of(train.texts, [&](const auto& text) {
            const auto line = as_number(text).value_or(-1);
            return line >= 0 && line < static_cast<std::int64_t>(names_.size());
          }))
        by_name_.clear();
    } else if (std::ranges::all_of(train.texts, [](const auto& text) { return as_number(text).has_value(); }))
      number(train);
    else
      take_texts(train);
    if (names_.size() < 2)
      base::fail(
          ErrorKind::data,
          "data '{}': all labels are '{}', but a classifier needs at least two classes; check the labels",
          spec.text, names_.empty() ? "" : names_.front());
  }

  [[nodiscard]] std::vector<std::string> names() const { return names_; }

  /// The part whose store indices begin at `first`.
  [[nodiscard]] ArrangedPart part(const ShardIndex& index, std::uint32_t first) const {
    std::vector<std::int32_t> of_text;
    for (const auto& text : index.texts) of_text.push_back(label_of(index, text));
    ArrangedPart part;
    part.images.reserve(index.labels.size());
    part.labels.reserve(index.labels.size());
    for (std::size_t i = 0; i < index.labels.size(); ++i) {
      part.images.push_back(first + static_cast<std::uint32_t>(i));
      part.labels.push_back(of_text[index.labels[i]]);
    }
    return part;
  }

 private:
  void read_names(const fs::path& path) {
    const auto file = path.string();
    const std::string whole = base::read_regular_file(path, std::int64_t{1} << 26);
    for (std::string_view rest = whole; !rest.empty();) {
      const auto text = take_line(rest);
      if (text.empty())
        base::fail(ErrorKind::data, "{}: line {} is empty, but each line names a class; remove it", file,
                   names_.size() + 1);
      if (!by_name_.emplace(text, static_cast<std::int32_t>(names_.size())).second)
        base::fail(ErrorKind::data, "{}: line {}: the class '{}' is named twice; name each once", file,
                   names_.size() + 1, base::visible(text));
      names_.emplace_back(text);
    }
  }

  void number(const ShardIndex& train) {
    std::map<std::int64_t, std::int64_t> counts;
    for (const auto label : train.labels) ++counts[*as_number(train.texts[label])];
    const auto numbers = number_classes(fmt::format("data '{}'", spec_.text), counts);
    first_number_ = numbers.first;
    names_ = numbers.names();
  }

  void take_texts(const ShardIndex& train) {
    names_ = train.texts;
    std::sort(names_.begin(), names_.end());
    for (std::size_t i = 0; i < names_.size(); ++i) by_name_[names_[i]] = static_cast<std::int32_t>(i);
  }

  [[nodiscard]] std::int32_t label_of(const ShardIndex& index, const std::string& text) const {
    if (const auto found = by_name_.find(text); found != by_name_.end()) return found->second;
    const bool has_numbers = by_name_.empty() || spec_.options.contains("classes");
    const auto label = as_number(text).value_or(-1) - first_number_;
    if (has_numbers && label >= 0 && label < static_cast<std::int64_t>(names_.size()))
      return static_cast<std::int32_t>(label);
    base::fail(
        ErrorKind::data,
        "data '{}': the label '{}' of {} is none of the {} classes ('{}' to '{}'); correct it, or {}",
        spec_.text, text, shard_with(index, text), names_.size(), names_.front(), names_.back(),
        spec_.options.contains("classes") ? "add it to classes=FILE" : "give training images of this class");
  }

  static std::string shard_with(const ShardIndex& index, const std::string& text) {
    std::size_t i = 0;
    for (const auto& shard : index.shards)
      for (const auto end = i + static_cast<std::size_t>(shard.samples); i < end; ++i)
        if (index.texts[index.labels[i]] == text) return shard.name;
    return "a shard";
  }

  const Spec& spec_;
  std::vector<std::string> names_;
  std::map<std::string, std::int32_t, std::less<>> by_name_;  ///< empty: labels are numbers
  std::int64_t first_number_ = 0;
};

void note_others(const char* part, const ShardIndex& index, std::vector<std::string>& notes) {
  std::int64_t others = 0;
  for (const auto& shard : index.shards) others += shard.others;
  if (others > 0)
    notes.push_back(fmt::format("{} shards: {} neither the image nor the label of a sample, and not read",
                                part, base::counted(others, "member is", "members are")));
}

}  // namespace

Source open_shards(const Spec& spec) {
  const auto paths = shard_paths(spec.directory);
  const auto field = spec.option("label").value_or("");
  auto train = open_shard_index(paths, field, spec.how.threads);
  Arranged arranged;
  arranged.has_parts = true;
  const Classes classes(spec, paths.front(), train.index);
  arranged.class_names = classes.names();
  arranged.train = classes.part(train.index, 0);
  arranged.notes = std::move(train.notes);
  note_others("training", train.index, arranged.notes);
  const auto store = std::make_shared<ShardStore>();
  store->add(paths, train.index);
  const auto shards = train.index.shards.size();
  train = {};
  std::string others;
  std::map<fs::path, const char*> part_of;
  for (const auto& path : paths) part_of[path] = "training";
  for (const auto& [key, part, verb] : {std::tuple{"validation", &arranged.validation, "validate"},
                                        std::tuple{"test", &arranged.test, "test"}}) {
    const auto pattern = spec.option(key).value_or("");
    if (pattern.empty()) continue;
    const auto its = beside(paths.front(), pattern);
    for (const auto& path : its)
      if (const auto [at, is_new] = part_of.emplace(path, key); !is_new)
        base::fail(ErrorKind::usage, "data '{}': {} is a shard of the {} and of the {} set; name it in one",
                   spec.text, path.string(), at->second, key);
    const auto index = open_shard_index(its, field, spec.how.threads);
    *part = classes.part(index.index, static_cast<std::uint32_t>(store->size()));
    arranged.notes.insert(arranged.notes.end(), index.notes.begin(), index.notes.end());
    note_others(key, index.index, arranged.notes);
    store->add(its, index.index);
    others += fmt::format(" and {} to {}", its.size(), verb);
  }
  Source source = open_arranged(spec, store, std::move(arranged), nullptr);
  source.description += fmt::format("; in {}{}", base::counted(shards, "shard"), others);
  source.resident_bytes += store->resident_bytes();
  return source;
}

}  // namespace paceline::data
