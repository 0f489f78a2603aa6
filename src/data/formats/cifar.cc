#include "data/formats/cifar.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/error.h"
#include "data/file_bytes.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using base::ErrorKind;

constexpr ImageFormat kFormat{.height = 32, .width = 32, .channels = 3};
constexpr std::int64_t kPlane = 32 * 32;
constexpr std::int64_t kRecord = 1 + 3 * kPlane;
constexpr int kClasses = 10;

/// Records of one or more files, in the order of the files.
class CifarDataset final : public Dataset {
 public:
  explicit CifarDataset(const std::vector<fs::path>& paths) {
    for (const auto& path : paths) add(path);
  }

  [[nodiscard]] std::int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  [[nodiscard]] ImageFormat format() const override { return kFormat; }

  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    base::expects(index >= 0 && index < size(), "0 <= index < size");
    base::expects(static_cast<std::int64_t>(pixels.size()) == kFormat.bytes(), "pixels hold one image");
    const auto file =
        static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
    const std::int64_t begin = file == 0 ? 0 : ends_[file - 1];
    const std::uint8_t* record = files_[file].bytes().data() + (index - begin) * kRecord;
    const std::uint8_t* red = record + 1;
    std::uint8_t* dst = pixels.data();
    for (std::int64_t i = 0; i < kPlane; ++i) {  // planes to interleaved
      dst[3 * i] = red[i];
      dst[3 * i + 1] = red[i + kPlane];
      dst[3 * i + 2] = red[i + 2 * kPlane];
    }
    return record[0];
  }

  [[nodiscard]] std::int64_t resident_bytes() const { return size() * kRecord; }

 private:
  void add(const fs::path& path) {
    FileBytes file = FileBytes::map(path);
    const auto bytes = static_cast<std::int64_t>(file.bytes().size());
    if (bytes == 0 || bytes % kRecord != 0)
      base::fail(
          ErrorKind::data,
          "{}: a CIFAR-10 file is a whole number of records of {} bytes, but this one has {} bytes ({} "
          "records and {} bytes); it is truncated or of another format: fetch it again",
          path.string(), kRecord, bytes, bytes / kRecord, bytes % kRecord);
    const std::int64_t records = bytes / kRecord;
    for (std::int64_t r = 0; r < records; ++r) {
      const int label = file.bytes()[static_cast<std::size_t>(r * kRecord)];
      if (label >= kClasses)
        base::fail(
            ErrorKind::data,
            "{}: record {} (from 0) has the label {}, but CIFAR-10 has labels 0 to {}; the file is damaged "
            "or of another format (CIFAR-100 has two label bytes): fetch it again",
            path.string(), r, label, kClasses - 1);
    }
    files_.push_back(std::move(file));
    ends_.push_back(size() + records);
  }

  std::vector<FileBytes> files_;
  std::vector<std::int64_t> ends_;  ///< of each file: index past its last record
};

/// DIR itself or its child with the name that the archive unpacks to, whichever has the first training file.
fs::path find_directory(const Spec& spec) {
  const fs::path given = spec.directory;
  const fs::path child = given / "cifar-10-batches-bin";
  for (const auto& candidate : {given, child})
    if (fs::exists(candidate / "data_batch_1.bin")) return candidate;
  base::fail(ErrorKind::data,
             "data '{}': there is no data_batch_1.bin in {} or in {}; give the folder that CIFAR-10's binary "
             "version was unpacked to",
             spec.text, given.string(), child.string());
}

}  // namespace

Source open_cifar10(const Spec& spec) {
  const fs::path directory = find_directory(spec);
  const auto option = spec.options.find("test");
  const std::string test_file = option == spec.options.end() ? "test_batch.bin" : option->second;

  std::vector<fs::path> train_paths;
  for (int i = 1; i <= 5; ++i) train_paths.push_back(directory / fmt::format("data_batch_{}.bin", i));
  auto train = std::make_unique<CifarDataset>(train_paths);
  auto test = std::make_unique<CifarDataset>(std::vector<fs::path>{directory / test_file});

  Source source;
  source.spec = spec.text;
  source.name = "cifar10";
  source.description =
      fmt::format("CIFAR-10: {} training images (data_batch_1..5.bin), {} test images ({}), 32x32x3",
                  train->size(), test->size(), test_file);
  source.resident_bytes = train->resident_bytes() + test->resident_bytes();
  source.train = std::move(train);
  source.test = std::move(test);
  source.class_names = {"airplane", "automobile", "bird",  "cat",  "deer",
                        "dog",      "frog",       "horse", "ship", "truck"};
  // Per channel over the 50,000 training images; the values everybody uses.
  source.mean = {0.4914f, 0.4822f, 0.4465f};
  source.stddev = {0.2470f, 0.2435f, 0.2616f};
  source.crop_padding = 4;
  source.flip = Flip::random;
  return source;
}

}  // namespace paceline::data
