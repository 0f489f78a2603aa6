#pragma once

/// What a data set is to everything else: a size, a format, and `read(index)`.
///
/// Shuffles, shards, splits and augmentation are views on top (sampler.h, augment.h, loader.h); a Dataset
/// itself never changes after it is opened, and may be read by any number of threads.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

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
/// Which part of a stored image a sample shows, as a function of the image's size.
using ChooseBox = std::function<Box(int height, int width)>;

class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual std::int64_t size() const = 0;
  [[nodiscard]] virtual ImageFormat format() const = 0;
  /// Writes the pixels of sample `index` (0 <= index < size) to `pixels` [format().bytes()]; returns its
  /// label. Threads  any number at once
  virtual std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const = 0;
  /// The same, but `pixels` shows the part that `choose` picks, scaled to format(). Only where stored images
  /// have sizes of their own (Source::crop_area > 0); a set of equal images has no such choice.
  virtual std::int32_t read_part(std::int64_t index, const ChooseBox& choose,
                                 std::span<std::uint8_t> pixels) const;
  /// The label of sample `index`. Cost: a read, unless the set knows it without
  [[nodiscard]] virtual std::int32_t label(std::int64_t index) const;
  /// Where sample `index` is stored, as "DIR/cat/17.png"; "" where samples have no names.
  [[nodiscard]] virtual std::string sample_name(std::int64_t index) const;
  /// Whether a read is a copy from memory or as quick, so that all samples may be read before the first step.
  /// Not where images are decoded, nor where storage is slow.
  [[nodiscard]] virtual bool reads_from_memory() const { return true; }
  /// Bytes that sample `index` takes where it is stored, its label apart; 0 where it is made, not stored.
  [[nodiscard]] virtual std::int64_t stored_bytes(std::int64_t index) const;
};

/// Bytes of a stored sample, mean over at most 256 of them that lie evenly in `set`. Nothing where none is
/// stored. Cost     of a folder, a look at as many files
[[nodiscard]] std::optional<double> mean_stored_bytes(const Dataset& set);

/// What stands outside the image where a crop reaches over its edge.
enum class CropFill {
  black,    ///< byte 0
  reflect,  ///< the image mirrored at its outermost pixels, which are not repeated
};

/// Horizontal flips in training.
enum class Flip {
  none,
  random,       ///< every image in every epoch with probability 1/2
  alternating,  ///< half of the images in the first epoch, and from then on each image every other epoch
};

/// A training set and a test set opened from one spec, perhaps a validation set too, and what is known of
/// them.
struct Source {
  std::string spec;         ///< as the user wrote it, for records and messages
  std::string name;         ///< "cifar10", "mnist", "folder", "synthetic"
  std::string description;  ///< one line for tables: sizes, files, and "synthetic data" where it is that
  bool synthetic = false;   ///< every table made from it says so
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> test;
  std::unique_ptr<Dataset> validation;  ///< null where there is none
  std::vector<std::string> class_names;
  std::vector<float> mean, stddev;  ///< per channel, of pixels / 255: the normalisation; sizes = channels
  int crop_padding = 0;             ///< the data set's usual augmentation: random crop after this padding
  Flip flip = Flip::none;           ///< and horizontal flip
  double crop_area = 0;             ///< > 0: random-resized-crop of at least this part of the stored image
  double jitter = 0;                ///< > 0: brightness, contrast and saturation change by up to this factor
  std::vector<std::string> notes;   ///< what was left out or cut, for the record
  std::int64_t resident_bytes = 0;  ///< memory the source holds once all of it was read, for the plan
  std::int64_t unread_bytes = 0;    ///< of these, mapped files that opening has not read
  [[nodiscard]] int classes() const { return static_cast<int>(class_names.size()); }
};

class BrokenImageCache;  // data/image/inspect.h

struct OpenOptions {
  /// > 0: this part of every class of the training set becomes the validation set, the same images for every
  /// seed and on every machine.
  double validation_split = 0;
  /// Images of a folder that cannot be decoded are found when it is opened (every image is decoded once) and
  /// left out; otherwise the first that is met in reading is an error.
  bool skip_bad_images = false;
  int threads = 1;  ///< for that search
  /// Remembers that search for later calls that open the same images; null: each call searches.
  BrokenImageCache* broken_images = nullptr;
};

/// Opens what one of known_formats() describes.
///
/// Errors   Error(usage) for an unknown spec (with the nearest name); Error(data) for a missing or truncated
///          file, a label out of range, a broken gzip: file, rule, actual value, next step
[[nodiscard]] Source open(const std::string& spec, const OpenOptions& options = {});

/// A data set that open() knows: help and messages are made of these.
struct FormatInfo {
  std::string usage;    ///< "cifar10:DIR[,test=FILE]"; one that reads no files has no ":DIR"
  std::string summary;  ///< a few words
  /// "cifar10:DIR", and "cifar10".
  [[nodiscard]] std::string spec() const { return usage.substr(0, usage.find('[')); }
  [[nodiscard]] std::string name() const { return usage.substr(0, usage.find_first_of(":[")); }
  [[nodiscard]] bool reads_files() const { return spec() != name(); }
};
[[nodiscard]] std::vector<FormatInfo> known_formats();
/// "cifar10:DIR, mnist:DIR, ... or synthetic".
[[nodiscard]] std::string known_specs();

}  // namespace paceline::data
