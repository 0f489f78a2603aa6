#pragma once

/// A data set of one image size, made from encoded images of any sizes.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/object_pool.h"
#include "data/dataset.h"
#include "data/image/decode.h"
#include "data/image/listing.h"
#include "data/image/scan.h"
#include "data/spec.h"

namespace paceline::data {

/// Arranges the images of `store` by the options of `spec`; image i has the path `listing.path(i)`.
[[nodiscard]] Source open_images(const Spec& spec, std::shared_ptr<const ImageStore> store,
                                 const ImageListing& listing);

/// The same of images that are arranged already. `listing`: their paths, which say the kinds of the files;
/// null: unknown.
[[nodiscard]] Source open_arranged(const Spec& spec, std::shared_ptr<const ImageStore> store,
                                   Arranged arranged, const ImageListing* listing);

/// One part (training, validation, test) of the images of a store.
///
/// read() returns what evaluated_box() takes of the stored image, scaled: the very pixels that PIL gives, so
/// figures are those of other programs. read_part() may be a level off, and decodes a JPEG much larger than
/// the format at 1/2, 1/4 or 1/8, for speed.
///
/// Cost     decoding on every read
/// Errors   read, read_part: Error(data) naming the image and its fault
class ImageDataset final : public Dataset {
 public:
  struct Seen {
    ImageFormat format;
    int eval_resize = 0;         ///< as in Source
    std::optional<Range> range;  ///< likewise
  };
  /// All parts of one source share `store`, whose images `part` numbers. `evaluated`: how as_evaluated()
  /// shows a part that is trained on, if otherwise than `seen`.
  ImageDataset(std::shared_ptr<const ImageStore> store, ArrangedPart part, Seen seen,
               std::optional<Seen> evaluated = {});
  ~ImageDataset() override;

  [[nodiscard]] std::int64_t size() const override {
    return static_cast<std::int64_t>(samples_.images.size());
  }
  [[nodiscard]] ImageFormat format() const override { return seen_.format; }
  [[nodiscard]] std::unique_ptr<Dataset> as_evaluated() const override;
  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const override;
  std::int32_t read_part(std::int64_t index, const ChooseBox& choose,
                         std::span<std::uint8_t> pixels) const override;
  [[nodiscard]] std::int32_t label(std::int64_t index) const override { return samples_.labels[at(index)]; }
  /// read() without the label.
  ///
  /// Errors   BrokenImage; Error(data): the file cannot be read
  void show(std::int64_t index, std::span<std::uint8_t> pixels) const;

  [[nodiscard]] std::string path_below(std::int64_t index) const {
    return store_->path_below(samples_.images[at(index)]);
  }
  [[nodiscard]] std::string sample_name(std::int64_t index) const override {
    return store_->name(samples_.images[at(index)]);
  }
  [[nodiscard]] std::string list_entry(std::int64_t index) const override {
    return path_below(index) + '\0' + std::to_string(stored_bytes(index));
  }
  [[nodiscard]] std::int64_t stored_bytes(std::int64_t index) const override {
    return store_->stored_bytes(samples_.images[at(index)]);
  }
  [[nodiscard]] bool reads_from_memory() const override { return false; }
  [[nodiscard]] std::vector<std::int64_t> shard_sizes() const override {
    return counts_between(store_->shard_ends(), samples_.images);
  }
  /// The encoded image, as ImageStore::bytes.
  [[nodiscard]] std::span<const std::uint8_t> encoded(std::int64_t index,
                                                      std::vector<std::uint8_t>& buffer) const override {
    return store_->bytes(samples_.images[at(index)], buffer);
  }

 private:
  /// What one read needs, kept for the next read: encoded bytes, decoder, pixels, resizer.
  struct Scratch;

  [[nodiscard]] std::size_t at(std::int64_t index) const;
  void show_part(std::int64_t index, const ChooseBox& choose, bool is_evaluated,
                 std::span<std::uint8_t> pixels) const;
  [[noreturn]] void fail_broken(std::int64_t index, const BrokenImage& broken) const;

  std::shared_ptr<const ImageStore> store_;
  ArrangedPart samples_;
  Seen seen_;
  std::optional<Seen> evaluated_;
  mutable base::ObjectPool<Scratch> scratch_;  ///< as many as reads have ever run at once
};

/// The part of a stored image that evaluation sees. With `eval_resize` (at least as large as the format) that
/// of torchvision's Resize(eval_resize) and CenterCrop(format), with its rounding; 0: the largest centred
/// part that has the aspect ratio of `format`.
[[nodiscard]] Box evaluated_box(const ImageFormat& format, int eval_resize, int height, int width);

}  // namespace paceline::data
