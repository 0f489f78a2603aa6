#pragma once

/// Images that somebody names, by files and folders, without labels: what a trained network is to classify.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/image/dataset.h"

namespace paceline::data {

struct NamedImages {
  std::vector<std::filesystem::path> files;
  std::vector<std::shared_ptr<const ImageStore>> archives;
  std::int64_t passed_over = 0;     ///< files in folders whose names are not those of images
  std::vector<std::string> faults;  ///< what is not there or holds no image, a sentence each
};

/// The files among `given`, whatever their names, and all images below its folders (scan.h), in this order;
/// then the images of its tar archives: files that end in .tar, and the shards of "shards:PATTERN", whose
/// labels are not read. "folder:DIR" is DIR.
///
/// Cost     reads directories and the headers of archives, no image
[[nodiscard]] NamedImages find_images(std::span<const std::filesystem::path> given);

/// The images as evaluation sees them (Source::eval_resize). One that cannot be read does not end the others:
/// it is black, and fault() says why. Every label is 0.
///
/// Threads  as Dataset; fault() too
class UnlabelledImages final : public Dataset {
 public:
  /// The images of `files`, then those of `archives`. `format` has 3 channels, or 1: then images are turned
  /// into grey as PIL's convert("L") does. `range`: as in Source.
  UnlabelledImages(std::span<const std::filesystem::path> files, const ImageFormat& format, int eval_resize,
                   std::optional<Range> range = {},
                   std::vector<std::shared_ptr<const ImageStore>> archives = {});

  [[nodiscard]] std::int64_t size() const override { return images_.size(); }
  [[nodiscard]] ImageFormat format() const override { return format_; }
  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const override;
  [[nodiscard]] std::int32_t label(std::int64_t) const override { return 0; }
  [[nodiscard]] std::string sample_name(std::int64_t index) const override {
    return images_.sample_name(index);
  }
  /// Its path without the place of its archive.
  [[nodiscard]] std::string path_below(std::int64_t index) const { return images_.path_below(index); }
  [[nodiscard]] bool reads_from_memory() const override { return false; }
  /// Why image `index` could not be read when it last was, a sentence that names it; "" if it could.
  [[nodiscard]] std::string fault(std::int64_t index) const;

 private:
  ImageDataset images_;
  ImageFormat format_;
  mutable std::mutex mutex_;
  mutable std::map<std::int64_t, std::string> faults_;
};

}  // namespace paceline::data
