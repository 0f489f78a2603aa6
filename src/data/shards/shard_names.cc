#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/shards/shards.h"
#include "data/spec.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using base::ErrorKind;

constexpr std::size_t kMostShards = 100'000;

/// "{0000..0146}": the part of a pattern that stands for numbers.
struct NumberRange {
  std::size_t begin = 0, end = 0;  ///< of the braces and what is in them
  std::uint64_t first = 0, count = 0;
  std::size_t digits = 0;  ///< at least this many, with zeros in front
};

/// The first range of `pattern`.
std::optional<NumberRange> find_range(const std::string& pattern) {
  const auto open = pattern.find('{');
  if (open == std::string::npos) return std::nullopt;
  const auto close = pattern.find('}', open);
  const auto inside = std::string_view(pattern).substr(
      open + 1, close == std::string::npos ? std::string::npos : close - open - 1);
  const auto dots = inside.find("..");
  std::optional<std::uint64_t> first, last;
  if (dots != std::string_view::npos && close != std::string::npos) {
    first = base::to_number<std::uint64_t>(inside.substr(0, dots));
    last = base::to_number<std::uint64_t>(inside.substr(dots + 2));
  }
  if (!first || !last || first.value_or(0) > last.value_or(0))
    base::fail(ErrorKind::usage,
               "the shards '{}': what stands in braces is a range of numbers, such as {{0000..0146}}, not "
               "'{{{}{}'; correct it",
               pattern, inside, close == std::string::npos ? "" : "}");
  return NumberRange{.begin = open,
                     .end = close + 1,
                     .first = first.value_or(0),
                     .count = last.value_or(0) - first.value_or(0) + 1,
                     .digits = dots};
}

void require_few(const std::string& pattern, std::size_t files) {
  if (files > kMostShards)
    base::fail(ErrorKind::usage, "the shards '{}': these are more than {} files; correct the range", pattern,
               kMostShards);
}

/// Appends the names that `pattern` with its ranges stands for.
void write_out(const std::string& pattern, std::vector<std::string>& names) {
  const auto range = find_range(pattern);
  if (!range) {
    names.push_back(pattern);
    return;
  }
  require_few(pattern, range->count - 1);
  for (std::uint64_t i = 0; i < range->count; ++i) {
    write_out(fmt::format("{}{:0{}}{}", pattern.substr(0, range->begin), range->first + i, range->digits,
                          pattern.substr(range->end)),
              names);
    require_few(pattern, names.size());
  }
}

struct FoundFiles {
  glob_t found{};
  ~FoundFiles() { ::globfree(&found); }
};

/// The files that a pattern of the shell matches, sorted by name.
std::vector<fs::path> matches(const std::string& pattern) {
  FoundFiles files;
  if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &files.found) != 0) return {};
  std::vector<fs::path> paths(files.found.gl_pathv, files.found.gl_pathv + files.found.gl_pathc);
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

std::vector<fs::path> shard_paths(const std::string& pattern) {
  std::vector<fs::path> paths;
  for (const auto& one : split_text(pattern, "::")) {
    std::vector<std::string> names;
    write_out(one, names);
    for (const auto& name : names) {
      if (name.find_first_of("*?[") == std::string::npos) {
        paths.emplace_back(name);
        continue;
      }
      const auto found = matches(name);
      if (found.empty()) base::fail(ErrorKind::data, "the shards '{}': no file is called so", name);
      paths.insert(paths.end(), found.begin(), found.end());
      require_few(pattern, paths.size());
    }
  }
  std::set<fs::path> seen;
  std::size_t missing = 0, first_missing = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (!seen.insert(paths[i].lexically_normal()).second)
      base::fail(ErrorKind::data, "the shards '{}': {} is named twice; name each once", pattern,
                 paths[i].string());
    if (!base::is_there(paths[i]) && missing++ == 0) first_missing = i;
  }
  if (missing > 0)
    base::fail(ErrorKind::data,
               "the shards '{}': {} is not there ({} of {} are missing); fetch it, or name only those that "
               "are there",
               pattern, paths[first_missing].string(), missing, paths.size());
  if (paths.size() == 1 && base::is_folder(paths.front()))
    base::fail(ErrorKind::data, "the shards '{}': this is a folder; name the files in it, as {}", pattern,
               (paths.front() / "train-{0000..0146}.tar").string());
  return paths;
}

}  // namespace paceline::data
