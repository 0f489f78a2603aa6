#pragma once

/// Splits a data set in two, independently of the seed of the run.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/dataset.h"

namespace paceline::data {

/// Some samples of another data set, in the given order.
class Subset final : public Dataset {
 public:
  /// All parts of one set share `whole`.
  Subset(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> indices);
  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(indices_.size()); }
  [[nodiscard]] ImageFormat format() const override { return whole_->format(); }
  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const override;
  std::int32_t read_part(std::int64_t index, const ChooseBox& choose,
                         std::span<std::uint8_t> pixels) const override;
  [[nodiscard]] std::int32_t label(std::int64_t index) const override;
  [[nodiscard]] std::string sample_name(std::int64_t index) const override;
  [[nodiscard]] std::int64_t stored_bytes(std::int64_t index) const override;
  [[nodiscard]] bool reads_from_memory() const override { return whole_->reads_from_memory(); }

 private:
  [[nodiscard]] std::int64_t at(std::int64_t index) const;

  std::shared_ptr<const Dataset> whole_;
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

}  // namespace paceline::data
