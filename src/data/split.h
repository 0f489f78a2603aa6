#pragma once

/// Cutting a data set in two, the same way whatever the seed of the run.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/dataset.h"

namespace paceline::data {

/// Some samples of another data set, in the order given.
class Subset final : public Dataset {
 public:
  /// `whole` is shared by the parts that were cut from it.
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

/// What a cut is for: two cuts of the same labels choose apart from each other.
enum class CutFor : std::uint64_t { validation = 1, test = 2, training = 3 };

struct Cut {
  std::vector<std::int64_t> rest, part;  ///< ascending; together every index once
};

/// Takes round(n * fraction) of the n samples of every class into `part`, but leaves at least one sample of
/// each in `rest`. Which ones is a hash of (purpose, index): no seed of a run, thread or machine changes it.
[[nodiscard]] Cut stratified_cut(std::span<const std::int32_t> labels, double fraction, CutFor purpose);

/// Moves a part of source.train into source.validation, and says so in source.notes.
///
/// Errors   Error(usage) when there is a validation set already, or too few samples to cut any
void cut_validation(Source& source, double fraction);

/// Leaves `count` of the images of source.train, the same ones for every seed, and says so in source.notes.
/// Each class keeps its share to within one image, and of two counts the smaller's images are among the
/// larger's: what is measured over growing counts is a growing data set.
///
/// Cost     a label of every image; 1 <= count <= source.train->size()
void cut_training(Source& source, std::int64_t count);

}  // namespace paceline::data
