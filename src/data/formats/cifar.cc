#include "data/formats/formats.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "data/file_bytes.h"
#include "data/formats/pickle.h"

namespace paceline::data {
namespace {

using Kind = Pickle::Kind;
using Value = Pickle::Value;

constexpr std::int64_t kImageBytes = 3072;
constexpr std::int64_t kLabels = 10;

/// The arguments of a call of `name` ("numpy\ndtype"), which must have `count` arguments.
const Value& arguments_of(const Pickle& pickle, const Value& call, std::string_view name, std::size_t count) {
  (void)pickle.expect(call, Kind::call, "a NumPy array or its type is needed");
  const Value& called = pickle.at(call.members[0]);
  // Since NumPy 2 the same function is in a different module.
  const bool is_renamed = name.starts_with("numpy.core.") && called.text.starts_with("numpy._core.") &&
                          name.substr(11) == called.text.substr(12);
  if (called.text != name && !is_renamed) {
    std::string text(called.text);
    std::replace(text.begin(), text.end(), '\n', '.');
    pickle.fail(called.offset, fmt::format("'{}' is not one of the functions that such a file calls", text));
  }
  const Value& arguments = pickle.expect(pickle.at(call.members[1]), Kind::tuple, "arguments are a tuple");
  if (arguments.members.size() != count)
    pickle.fail(arguments.offset,
                fmt::format("{} arguments are needed, and there are {}", count, arguments.members.size()));
  return arguments;
}

std::int64_t integer(const Pickle& pickle, int index, std::string_view what) {
  return pickle.expect(pickle.at(index), Kind::integer, what).number;
}

/// The bytes of an array [count][3072] of uint8, in C order.
std::span<const std::uint8_t> array_bytes(const Pickle& pickle, const Value& array, std::int64_t count) {
  (void)arguments_of(pickle, array, "numpy.core.multiarray\n_reconstruct", 3);
  if (array.state < 0) pickle.fail(array.offset, "the array has no contents");
  const Value& state = pickle.expect(pickle.at(array.state), Kind::tuple, "an array's contents are a tuple");
  if (state.members.size() != 5)
    pickle.fail(state.offset, "an array's contents are version, shape, type, order and bytes");
  const Value& shape = pickle.expect(pickle.at(state.members[1]), Kind::tuple, "a shape is a tuple");
  if (shape.members.size() != 2 ||
      integer(pickle, shape.members[0], "an extent is a whole number") != count ||
      integer(pickle, shape.members[1], "an extent is a whole number") != kImageBytes)
    pickle.fail(shape.offset, fmt::format("'data' must be an array of {} rows (as many as labels) of {} "
                                          "bytes",
                                          count, kImageBytes));
  const Value& type = arguments_of(pickle, pickle.at(state.members[2]), "numpy\ndtype", 3);
  if (const Value& name = pickle.expect(pickle.at(type.members[0]), Kind::text, "a type has a name");
      name.text != "u1")
    pickle.fail(name.offset, fmt::format("'data' must have unsigned bytes (type 'u1'), but has '{}'",
                                         name.text.substr(0, 20)));
  const Value& order = pickle.expect(pickle.at(state.members[3]), Kind::truth, "the order is a truth value");
  if (order.number != 0)
    pickle.fail(order.offset,
                "'data' must be stored row by row, but is stored column "
                "by column");
  const Value& contents = pickle.expect(pickle.at(state.members[4]), Kind::text, "contents are bytes");
  if (static_cast<std::int64_t>(contents.text.size()) != count * kImageBytes)
    pickle.fail(contents.offset, fmt::format("{} images need {} bytes, but the array has {}", count,
                                             count * kImageBytes, contents.text.size()));
  return {reinterpret_cast<const std::uint8_t*>(contents.text.data()), contents.text.size()};
}

namespace fs = std::filesystem;
using base::ErrorKind;

constexpr ImageFormat kFormat{.height = 32, .width = 32, .channels = 3};
constexpr std::int64_t kPlane = 32 * 32;
constexpr std::int64_t kRecord = 1 + 3 * kPlane;
constexpr int kCifarClasses = 10;

/// The images of one file, as pointers into it.
struct CifarFile {
  FileBytes bytes;
  std::vector<std::uint8_t> own_labels = {};  ///< python version: its list, as bytes
  const std::uint8_t* labels = nullptr;       ///< of image i at labels[i * stride]
  std::int64_t label_stride = 1;
  const std::uint8_t* pixels = nullptr;  ///< of image i at pixels[i * stride]
  std::int64_t pixel_stride = 3 * kPlane;
  std::int64_t images = 0;
};

CifarFile read_binary(const fs::path& path) {
  CifarFile file{.bytes = FileBytes::map(path)};
  const auto bytes = static_cast<std::int64_t>(file.bytes.bytes().size());
  if (bytes == 0 || bytes % kRecord != 0)
    base::fail(ErrorKind::data,
               "{}: a CIFAR-10 file is a whole number of records of {} bytes, but this one has {} bytes ({} "
               "records and {} bytes); it is truncated or of another format: fetch it again",
               path.string(), kRecord, bytes, bytes / kRecord, bytes % kRecord);
  file.images = bytes / kRecord;
  file.labels = file.bytes.bytes().data();
  file.pixels = file.labels + 1;
  file.label_stride = file.pixel_stride = kRecord;
  for (std::int64_t r = 0; r < file.images; ++r) {
    const int label = file.labels[r * kRecord];
    file.bytes.require_read();
    if (label >= kCifarClasses)
      base::fail(
          ErrorKind::data,
          "{}: record {} (from 0) has the label {}, but CIFAR-10 has labels 0 to {}; the file is damaged "
          "or of another format (CIFAR-100 has two label bytes): fetch it again",
          path.string(), r, label, kCifarClasses - 1);
  }
  return file;
}

CifarFile read_python(const fs::path& path) {
  CifarFile file{.bytes = FileBytes::map(path)};
  auto batch = read_cifar_python(path.string(), file.bytes.bytes());
  file.own_labels = std::move(batch.labels);
  file.labels = file.own_labels.data();
  file.pixels = batch.pixels.data();
  file.images = static_cast<std::int64_t>(file.own_labels.size());
  return file;
}

/// The images of one or more files, in the order of the files.
class CifarDataset final : public Dataset {
 public:
  explicit CifarDataset(std::vector<CifarFile> files) : files_(std::move(files)) {
    for (const CifarFile& file : files_) ends_.push_back(size() + file.images);
  }

  [[nodiscard]] std::int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  [[nodiscard]] ImageFormat format() const override { return kFormat; }

  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    base::expects(index >= 0 && index < size(), "0 <= index < size");
    base::expects(static_cast<std::int64_t>(pixels.size()) == kFormat.bytes(), "pixels hold one image");
    const auto [file, image] = place_of(index);
    const std::uint8_t* red = file.pixels + image * file.pixel_stride;
    std::uint8_t* dst = pixels.data();
    for (std::int64_t i = 0; i < kPlane; ++i) {  // planes to interleaved
      dst[3 * i] = red[i];
      dst[3 * i + 1] = red[i + kPlane];
      dst[3 * i + 2] = red[i + 2 * kPlane];
    }
    const std::int32_t label = file.labels[image * file.label_stride];
    file.bytes.require_read();
    return label;
  }

  [[nodiscard]] std::int32_t label(std::int64_t index) const override {
    base::expects(index >= 0 && index < size(), "0 <= index < size");
    const auto [file, image] = place_of(index);
    const std::int32_t label = file.labels[image * file.label_stride];
    file.bytes.require_read();
    return label;
  }

  [[nodiscard]] std::int64_t resident_bytes() const { return size() * kRecord; }

 private:
  struct Place {
    const CifarFile& file;
    std::int64_t image;  ///< in the file
  };
  [[nodiscard]] Place place_of(std::int64_t index) const {
    const auto at =
        static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
    return {files_[at], index - (at == 0 ? 0 : ends_[at - 1])};
  }

  std::vector<CifarFile> files_;
  std::vector<std::int64_t> ends_;  ///< of each file: index past its last image
};

/// One of the two versions that CIFAR-10 is published in.
struct CifarVersion {
  const char* folder;  ///< into which its archive unpacks
  const char* ending;  ///< of its files' names
  const char* words;   ///< after the file names in descriptions
  CifarFile (*read)(const fs::path& path);
};
constexpr CifarVersion kBinary{"cifar-10-batches-bin", ".bin", "", read_binary};
constexpr CifarVersion kPython{"cifar-10-batches-py", "", ", python version", read_python};

struct CifarFolder {
  fs::path path;
  const CifarVersion* version;
};

/// DIR itself, or its subfolder with the name into which an archive unpacks, whichever contains the first
/// training file. If both versions are there, the binary one.
CifarFolder find_folder(const Spec& spec) {
  const fs::path given = spec.directory;
  for (const CifarVersion* version : {&kBinary, &kPython})
    for (const auto& candidate : {given, given / version->folder})
      if (fs::is_regular_file(candidate / (std::string("data_batch_1") + version->ending)))
        return {candidate, version};
  const bool is_packed = fs::exists(given / "cifar-10-python.tar.gz");
  base::fail(
      ErrorKind::data,
      "data '{}': there is no data_batch_1.bin in {} or in {}, and no data_batch_1 of the Python version in "
      "them or in {}; {}give the folder that CIFAR-10 was unpacked to, or get it by 'paceline data get "
      "cifar10'",
      spec.text, given.string(), (given / kBinary.folder).string(), (given / kPython.folder).string(),
      is_packed ? "cifar-10-python.tar.gz is there, but packed: unpack it (tar -xzf); " : "");
}

}  // namespace

CifarPythonBatch read_cifar_python(const std::string& path, std::span<const std::uint8_t> bytes) {
  const Pickle pickle(
      path, bytes,
      {.next_step = "only the form in which CIFAR-10's Python version is published is read: fetch the file "
                    "again, or take the binary version (paceline data get cifar10)"});
  CifarPythonBatch batch;
  const Value& labels =
      pickle.expect(pickle.member(pickle.root(), "labels"), Kind::list, "'labels' is a list");
  if (labels.members.empty()) pickle.fail(labels.offset, "there are no labels");
  for (const int index : labels.members) {
    const std::int64_t label = integer(pickle, index, "a label is a whole number");
    if (label < 0 || label >= kLabels)
      pickle.fail(pickle.at(index).offset,
                  fmt::format("label {} (from 0) is {}, but CIFAR-10 has labels 0 to {}", batch.labels.size(),
                              label, kLabels - 1));
    batch.labels.push_back(static_cast<std::uint8_t>(label));
  }
  batch.pixels = array_bytes(pickle, pickle.member(pickle.root(), "data"),
                             static_cast<std::int64_t>(batch.labels.size()));
  return batch;
}

Source open_cifar10(const Spec& spec) {
  const auto [directory, version] = find_folder(spec);
  const auto option = spec.options.find("test");
  const std::string test_file =
      option == spec.options.end() ? std::string("test_batch") + version->ending : option->second;

  std::vector<CifarFile> files;
  for (int i = 1; i <= 5; ++i)
    files.push_back(version->read(directory / fmt::format("data_batch_{}{}", i, version->ending)));
  auto train = std::make_unique<CifarDataset>(std::move(files));
  std::vector<CifarFile> test_files;
  test_files.push_back(version->read(directory / test_file));
  auto test = std::make_unique<CifarDataset>(std::move(test_files));

  Source source;
  source.spec = spec.text;
  source.name = "cifar10";
  source.description =
      fmt::format("CIFAR-10: {} training images (data_batch_1..5{}), {} test images ({}), 32x32x3{}",
                  train->size(), version->ending, test->size(), test_file, version->words);
  source.resident_bytes = train->resident_bytes() + test->resident_bytes();
  source.train = std::move(train);
  source.test = std::move(test);
  source.class_names = {"airplane", "automobile", "bird",  "cat",  "deer",
                        "dog",      "frog",       "horse", "ship", "truck"};
  // Per channel over the 50,000 training images; the values in common use.
  source.mean = {0.4914f, 0.4822f, 0.4465f};
  source.stddev = {0.2470f, 0.2435f, 0.2616f};
  source.crop_padding = 4;
  source.flip = Flip::random;
  return source;
}

}  // namespace paceline::data
