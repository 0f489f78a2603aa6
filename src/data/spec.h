#pragma once

/// Parses the text that names a data set, `name[:DIR][,key=value]...`, and cuts other texts.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "data/dataset.h"

namespace paceline::data {

/// What stands between the separators in `text`: "a", "" and "b" of "a,,b".
[[nodiscard]] std::vector<std::string> split_text(std::string_view text, std::string_view separator);

using base::take_line;
using base::trimmed;

/// How many of the numbers `ascending` are below each of `ends` and not below the one before; without zeros.
template <typename Number>
[[nodiscard]] std::vector<std::int64_t> counts_between(std::span<const std::int64_t> ends,
                                                       const std::vector<Number>& ascending) {
  std::vector<std::int64_t> counts;
  auto from = ascending.begin();
  for (const auto end : ends) {
    const auto to = std::lower_bound(from, ascending.end(), static_cast<Number>(end));
    if (to != from) counts.push_back(to - from);
    from = to;
  }
  return counts;
}

/// Some samples of another data set, in the given order; of one in shards in ascending order.
class Subset final : public WrappedDataset {
 public:
  /// All parts of one set share `whole`.
  Subset(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> indices);
  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(indices_.size()); }
  [[nodiscard]] std::vector<std::int64_t> shard_sizes() const override;
  [[nodiscard]] std::unique_ptr<Dataset> as_evaluated() const override;

 private:
  [[nodiscard]] std::int64_t at(std::int64_t index) const override;

  std::vector<std::int64_t> indices_;
};

/// What a cut is for. Cuts of the same labels for different purposes choose independently.
enum class CutFor : std::uint64_t { validation = 1, test = 2, training = 3 };

struct Cut {
  std::vector<std::int64_t> rest, part;  ///< ascending; together every index once
};

/// Moves round(n * fraction) of the n samples of every class into `part`, but keeps at least one of each in
/// `rest`. The choice is a hash of (purpose, index): seed, threads and machine do not matter.
[[nodiscard]] Cut stratified_cut(std::span<const std::int32_t> labels, double fraction, CutFor purpose);

/// Moves a part of source.train into source.validation, with a note in source.notes.
///
/// Errors   Error(usage) if there is a validation set already, or too few samples to cut
void cut_validation(Source& source, double fraction);

/// Keeps `count` of the images of source.train, with a note in source.notes. The choice does not depend on
/// the seed. Each class keeps its share to within one image, and a smaller count chooses a subset of a larger
/// count's images, so that increasing counts are a growing data set.
///
/// Requires  1 <= count <= source.train->size()
/// Cost      reads the label of every image
void cut_training(Source& source, std::int64_t count);

struct Spec {
  std::string text;       ///< as written
  std::string name;       ///< before ':' and ','
  std::string directory;  ///< after ':', with a leading ~ replaced by $HOME; empty if there is none
  std::map<std::string, std::string> options;
  OpenOptions how = {};  ///< the caller's options, which are not part of the text
  [[nodiscard]] std::optional<std::string> option(const std::string& key) const;
};

/// Errors   Error(usage) for an option without '=' or given twice
[[nodiscard]] Spec parse_spec(const std::string& text);

/// Errors   Error(usage), with the nearest known key, when `spec` has an option that is not in `known`
void expect_options(const Spec& spec, std::span<const std::string> known);

/// The option `key` as an integer in [low, high]; `otherwise` if it is not given.
///
/// Errors   Error(usage) naming spec, key, rule and value
[[nodiscard]] std::int64_t integer_option(const Spec& spec, const std::string& key, std::int64_t otherwise,
                                          std::int64_t low, std::int64_t high);
/// The same for `text`, which is the option's value or a part of it.
[[nodiscard]] std::int64_t integer_in(const Spec& spec, const std::string& key, std::string_view text,
                                      std::int64_t low, std::int64_t high);

/// The same for a decimal number.
[[nodiscard]] double decimal_option(const Spec& spec, const std::string& key, double otherwise, double low,
                                    double high);

/// The option `key` as `count` decimal numbers in [low, high] joined by ':', "0.49:0.48:0.45", or one number
/// for all; empty if it is not given.
///
/// Errors   Error(usage) as above
[[nodiscard]] std::vector<double> decimals_option(const Spec& spec, const std::string& key, std::size_t count,
                                                  double low, double high);

/// The option `range`; nullopt if it is not given.
///
/// Errors   Error(usage) with the rule and the value
[[nodiscard]] std::optional<Range> range_option(const Spec& spec);

}  // namespace paceline::data
