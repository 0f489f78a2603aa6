#pragma once

/// The interface of a data set: a size, a format, and `read(index)`.
///
/// Shuffling, sharding, splits and augmentation are built on top (augment.h, loader.h). A Dataset
/// never changes after it is opened, and any number of threads may read it.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/range.h"

namespace paceline::data {

/// Pixels of one sample: uint8, [height][width][channels], channels innermost.
struct ImageFormat {
  int height = 0;
  int width = 0;
  int channels = 0;
  [[nodiscard]] std::int64_t bytes() const { return std::int64_t{1} * height * width * channels; }
  bool operator==(const ImageFormat&) const = default;
};

/// A part of a stored image, in its pixels.
struct Box {
  double top = 0, left = 0, height = 0, width = 0;
};
/// Chooses the part of a stored image to show, given the image's size.
using ChooseBox = std::function<Box(int height, int width)>;

class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual std::int64_t size() const = 0;
  [[nodiscard]] virtual ImageFormat format() const = 0;
  /// Writes the pixels of sample `index` (0 <= index < size) to `pixels` [format().bytes()]; returns its
  /// label.
  ///
  /// Threads  any number at once
  virtual std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const = 0;
  /// The same, but `pixels` gets the part that `choose` returns, scaled to format(). Only for sets whose
  /// stored images have different sizes (Source::crop_area > 0).
  virtual std::int32_t read_part(std::int64_t index, const ChooseBox& choose,
                                 std::span<std::uint8_t> pixels) const;
  /// The label of sample `index`.
  ///
  /// Cost     a read, unless the set keeps its labels
  [[nodiscard]] virtual std::int32_t label(std::int64_t index) const;
  /// Where sample `index` is stored, as "DIR/cat/17.png"; "" where samples have no names.
  [[nodiscard]] virtual std::string sample_name(std::int64_t /*index*/) const { return ""; }
  /// What list_sha256() has of sample `index` besides its label: of an image in a file its path below the
  /// set's folder and its length. "" where samples have no files.
  ///
  /// Cost     asks the file system for the length
  [[nodiscard]] virtual std::string list_entry(std::int64_t /*index*/) const { return ""; }
  /// Whether a read is about as fast as a copy from memory, so that all samples may be read before the first
  /// step. False where images are decoded or storage is slow.
  [[nodiscard]] virtual bool reads_from_memory() const { return true; }
  /// Stored bytes of sample `index` without its label; 0 where samples are generated.
  [[nodiscard]] virtual std::int64_t stored_bytes(std::int64_t /*index*/) const { return format().bytes(); }
  /// Of a set in shards: how many samples each has, in the order of the samples; else empty.
  [[nodiscard]] virtual std::vector<std::int64_t> shard_sizes() const { return {}; }
  /// The file of sample `index`, in place or read into `buffer`, valid as long as `buffer` and the set. Empty
  /// where samples are no images in files.
  [[nodiscard]] virtual std::span<const std::uint8_t> encoded(std::int64_t /*index*/,
                                                              std::vector<std::uint8_t>& /*buffer*/) const {
    return {};
  }
  /// The same samples as evaluation sees them; null where read() gives just that.
  [[nodiscard]] virtual std::unique_ptr<Dataset> as_evaluated() const { return nullptr; }
};

/// Stored bytes of a sample: the mean over at most 256 samples, spread evenly over `set`. Nothing where
/// samples are not stored.
///
/// Cost     for a folder, the file sizes of as many files
[[nodiscard]] std::optional<double> mean_stored_bytes(const Dataset& set);

/// SHA-256 of what `set` holds, in its order: of images in files their paths below the folder, lengths and
/// labels, so that a moved folder stays the same. Of other sets the labels, and the pixels of at most 64
/// samples; of generated samples these alone.
///
/// Cost     for a folder, the file sizes of all files, on `threads` threads
/// Errors   Error(data): a sample cannot be read
[[nodiscard]] std::string list_sha256(const Dataset& set, int threads);

/// The pixels outside the image where a crop reaches over its edge.
enum class CropFill {
  black,    ///< byte 0
  reflect,  ///< the image mirrored at its edge; edge pixels are not repeated
};

/// Horizontal flips in training.
enum class Flip {
  none,
  random,       ///< every image in every epoch with probability 1/2
  alternating,  ///< half of the images in the first epoch, and from then on each image every other epoch
};

/// A training set and a test set opened from one spec, perhaps a validation set too, and their properties.
struct Source {
  std::string spec;         ///< as the user wrote it, for records and messages
  std::string name;         ///< of its format: "cifar10", "mnist", "folder", "synthetic"
  std::string description;  ///< one line for tables: sizes, files, and "synthetic data" if it is
  bool synthetic = false;   ///< tables mark it
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> test;
  std::unique_ptr<Dataset> validation;  ///< null where there is none
  std::vector<std::string> class_names;
  std::vector<float> mean, stddev;  ///< per channel, of pixels / 255: the normalisation; sizes = channels
  int crop_padding = 0;             ///< the data set's usual augmentation: random crop after this padding
  Flip flip = Flip::none;           ///< and horizontal flip
  double crop_area = 0;             ///< > 0: random-resized-crop of at least this part of the stored image
  double jitter = 0;                ///< > 0: brightness, contrast and saturation change by up to this factor
  /// How images of sizes of their own are seen in evaluation: > 0: the shorter side is resized to this, then
  /// the centre is cropped; 0: as much as has the format's proportions, resized.
  int eval_resize = 0;
  /// How values of 16 bits become 8; nullopt: their upper 8 bits are taken.
  std::optional<Range> range = {};
  std::vector<std::string> notes;   ///< what was left out or cut, for the record
  std::int64_t resident_bytes = 0;  ///< memory that the source holds once all of it was read, for the plan
  std::int64_t unread_bytes = 0;    ///< of these, bytes of mapped files that opening has not read
  [[nodiscard]] int classes() const { return static_cast<int>(class_names.size()); }
  /// Of `test` and `validation`: another than that of `train` where evaluation has a size of its own.
  [[nodiscard]] ImageFormat evaluated_format() const { return test->format(); }
};

/// What a checkpoint keeps of its data, by which later runs notice that they have others.
struct DataIdentity {
  /// The images of one part. `sha256` is that of list_sha256(); "" if there is no such part, or it is
  /// unknown.
  struct List {
    std::int64_t images = 0;
    std::string sha256;
    bool operator==(const List&) const = default;
  };
  std::vector<std::string> classes;  ///< by label, as base::visible() writes them; empty: unknown
  ImageFormat format;
  ImageFormat evaluated;  ///< Source::evaluated_format()
  std::vector<float> mean, stddev;
  int eval_resize = 0;         ///< as in Source
  std::optional<Range> range;  ///< likewise
  List train, validation, test;
};
/// Cost     that of list_sha256() for each part
[[nodiscard]] DataIdentity identity_of(const Source& source, int threads);

class BrokenImageCache;  // data/image/inspect.h

struct OpenOptions {
  /// > 0: this part of every class of the training set becomes the validation set. The choice depends on
  /// neither seed nor machine.
  double validation_split = 0;
  /// Opening a folder decodes every image once and leaves out those that cannot be decoded. Otherwise the
  /// first such image that is read is an error.
  bool skip_bad_images = false;
  bool needs_test = false;  ///< a set without test images is an error
  int threads = 1;          ///< for skip_bad_images, and to list shards
  /// Keeps the result of skip_bad_images for later calls with the same images; null: every call decodes.
  BrokenImageCache* broken_images = nullptr;
};

/// Opens a data set of one of known_formats().
///
/// Errors   Error(usage) for an unknown spec (with the nearest name); Error(data) for a missing or truncated
///          file, a label out of range, damaged gzip data, with file, rule, actual value and next step
[[nodiscard]] Source open(const std::string& spec, const OpenOptions& options = {});

/// A data set that open() knows, for help and messages.
struct FormatInfo {
  std::string usage;    ///< "cifar10:DIR[,test=FILE]"; without ":DIR" it reads no files
  std::string summary;  ///< a few words
  /// Of the usage above: "cifar10:DIR" and "cifar10".
  [[nodiscard]] std::string spec() const { return usage.substr(0, usage.find('[')); }
  [[nodiscard]] std::string name() const { return usage.substr(0, usage.find_first_of(":[")); }
  [[nodiscard]] bool reads_files() const { return spec() != name(); }
};
[[nodiscard]] std::vector<FormatInfo> known_formats();
/// "cifar10:DIR, mnist:DIR, ... or synthetic".
[[nodiscard]] std::string known_specs();

/// Another data set, as it is but for shard_sizes() and as_evaluated(): for those that show it otherwise.
class WrappedDataset : public Dataset {
 public:
  explicit WrappedDataset(std::shared_ptr<const Dataset> set) : set_(std::move(set)) {}
  [[nodiscard]] std::int64_t size() const override { return set_->size(); }
  [[nodiscard]] ImageFormat format() const override { return set_->format(); }
  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    return set_->read(at(index), pixels);
  }
  std::int32_t read_part(std::int64_t index, const ChooseBox& choose,
                         std::span<std::uint8_t> pixels) const override {
    return set_->read_part(at(index), choose, pixels);
  }
  [[nodiscard]] std::int32_t label(std::int64_t index) const override { return set_->label(at(index)); }
  [[nodiscard]] std::string sample_name(std::int64_t index) const override {
    return set_->sample_name(at(index));
  }
  [[nodiscard]] std::string list_entry(std::int64_t index) const override {
    return set_->list_entry(at(index));
  }
  [[nodiscard]] std::int64_t stored_bytes(std::int64_t index) const override {
    return set_->stored_bytes(at(index));
  }
  [[nodiscard]] std::span<const std::uint8_t> encoded(std::int64_t index,
                                                      std::vector<std::uint8_t>& buffer) const override {
    return set_->encoded(at(index), buffer);
  }
  [[nodiscard]] bool reads_from_memory() const override { return set_->reads_from_memory(); }

 protected:
  [[nodiscard]] const Dataset& set() const { return *set_; }

 private:
  /// The index in the other set.
  [[nodiscard]] virtual std::int64_t at(std::int64_t index) const { return index; }
  std::shared_ptr<const Dataset> set_;
};

/// Counts the images read through it. Reading labels alone does not count. A report shows by it how often the
/// test set was used.
///
/// Threads  as the wrapped set; reads() from any
class CountedDataset final : public WrappedDataset {
 public:
  using WrappedDataset::WrappedDataset;
  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    count(1);
    return WrappedDataset::read(index, pixels);
  }
  std::int32_t read_part(std::int64_t index, const ChooseBox& choose,
                         std::span<std::uint8_t> pixels) const override {
    count(1);
    return WrappedDataset::read_part(index, choose, pixels);
  }
  /// Adds images that were read earlier and are used again from where they were stored.
  void count(std::int64_t images) const { reads_.fetch_add(images, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t reads() const { return reads_.load(std::memory_order_relaxed); }

 private:
  mutable std::atomic<std::int64_t> reads_{0};
};

/// Wraps source.test in a CountedDataset and returns it; it lives as long as source.test.
[[nodiscard]] inline const CountedDataset& count_test_reads(Source& source) {
  auto counted = std::make_unique<CountedDataset>(std::move(source.test));
  const auto& result = *counted;
  source.test = std::move(counted);
  return result;
}

}  // namespace paceline::data
