#include "data/formats/formats.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "data/file_bytes.h"
#include "data/formats/arrays.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using base::ErrorKind;

constexpr int kDigits = 10;

/// A part of EMNIST: the names of its classes, and the label of the first.
struct EmnistSplit {
  const char* name;
  int first_label;
  const char* classes;  ///< a letter each
};
constexpr EmnistSplit kEmnist[] = {
    {"byclass", 0, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"},
    {"bymerge", 0, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabdefghnqrt"},
    {"balanced", 0, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabdefghnqrt"},
    {"letters", 1, "abcdefghijklmnopqrstuvwxyz"},
    {"digits", 0, "0123456789"},
    {"mnist", 0, "0123456789"}};

std::string emnist_prefix(const EmnistSplit& split) { return fmt::format("emnist-{}-", split.name); }
constexpr std::uint32_t kMaxSide = 4096;  // of an image; a larger value means a damaged header

/// One kind of IDX file: unsigned bytes (0x08) in the given number of dimensions.
struct IdxKind {
  const char* word;  ///< for messages
  std::uint32_t magic;
  std::size_t dimensions;
  [[nodiscard]] std::size_t header_bytes() const { return 4 + 4 * dimensions; }
};
constexpr IdxKind kImageKind{"images", 0x0803, 3};
constexpr IdxKind kLabelKind{"labels", 0x0801, 1};

std::uint32_t big_endian(std::span<const std::uint8_t> bytes, std::size_t at) {
  return static_cast<std::uint32_t>(number_at(bytes, at, 4, true));
}

struct IdxFile {
  fs::path path;
  FileBytes file;
  std::uint32_t count = 0;
  std::uint32_t height = 1, width = 1;
  [[nodiscard]] std::span<const std::uint8_t> values(const IdxKind& kind) const {
    return file.bytes().subspan(kind.header_bytes());
  }
};

/// Checks the header; returns the length that the whole file must have.
std::size_t read_header(IdxFile& idx, const IdxKind& kind, std::span<const std::uint8_t> bytes) {
  const std::string path = idx.path.string();
  if (bytes.size() < kind.header_bytes())
    base::fail(ErrorKind::data,
               "{}: an IDX file of {} begins with a header of {} bytes, but this one ends after {}; it is "
               "truncated: fetch it again",
               path, kind.word, kind.header_bytes(), bytes.size());
  const std::uint32_t magic = big_endian(bytes, 0);
  if (magic != kind.magic)
    base::fail(
        ErrorKind::data,
        "{}: an IDX file of {} begins with the magic number {}, but this one begins with {}; it is another "
        "kind of file: check that names and contents were not swapped",
        path, kind.word, kind.magic, magic);
  idx.count = big_endian(bytes, 4);
  if (idx.count == 0)
    base::fail(ErrorKind::data, "{}: its header announces 0 {}; fetch it again", path, kind.word);
  if (kind.dimensions == 3) {
    idx.height = big_endian(bytes, 8);
    idx.width = big_endian(bytes, 12);
    if (std::min(idx.height, idx.width) == 0 || std::max(idx.height, idx.width) > kMaxSide)
      base::fail(
          ErrorKind::data,
          "{}: its header announces images of {}x{}, but a side is 1 to {} pixels; the header is damaged: "
          "fetch the file again",
          path, idx.height, idx.width, kMaxSide);
  }
  return kind.header_bytes() + std::size_t{idx.count} * idx.height * idx.width;
}

IdxFile read_idx(const fs::path& path, const IdxKind& kind) {
  IdxFile idx{.path = path, .file = {}};
  if (path.extension() == ".gz") {
    idx.file = FileBytes::unpack_gzip(path, kind.header_bytes(), [&](std::span<const std::uint8_t> header) {
      return read_header(idx, kind, header);
    });
    return idx;
  }
  idx.file = FileBytes::map(path);
  const std::size_t needed = read_header(idx, kind, idx.file.bytes());
  if (idx.file.bytes().size() != needed)
    base::fail(
        ErrorKind::data,
        "{}: its header announces {} {} and so {} bytes, but the file has {}; it is truncated or damaged: "
        "fetch it again",
        path.string(), idx.count, kind.word, needed, idx.file.bytes().size());
  return idx;
}

class IdxDataset final : public Dataset {
 public:
  IdxDataset(const fs::path& image_path, const fs::path& label_path)
      : images_(read_idx(image_path, kImageKind)), labels_(read_idx(label_path, kLabelKind)) {
    if (images_.count != labels_.count)
      base::fail(ErrorKind::data,
                 "{}: has {} labels, but {} has {} images; each image has one label: check that both files "
                 "are of one set",
                 label_path.string(), labels_.count, image_path.string(), images_.count);
  }

  /// How often each label occurs.
  [[nodiscard]] std::map<std::int64_t, std::int64_t> label_counts() const {
    std::map<std::int64_t, std::int64_t> counts;
    for (const auto label : labels_.values(kLabelKind)) ++counts[label];
    labels_.file.require_read();
    return counts;
  }

  /// Takes `numbers` as the labels of its classes. `set`: whose they are, for messages.
  void use_labels(const LabelNumbers& numbers, const std::string& set) {
    const auto labels = labels_.values(kLabelKind);
    const auto bad = std::ranges::find_if(
        labels, [&](int l) { return l < numbers.first || l >= numbers.first + numbers.count; });
    labels_.file.require_read();
    if (bad != labels.end())
      base::fail(
          ErrorKind::data,
          "{}: record {} (from 0) has the label {}, but {} has labels {} to {}; the file is damaged or of "
          "another data set: fetch it again",
          labels_.path.string(), bad - labels.begin(), *bad, set, numbers.first,
          numbers.first + numbers.count - 1);
    first_label_ = numbers.first;
  }

  [[nodiscard]] std::int64_t size() const override { return images_.count; }
  [[nodiscard]] ImageFormat format() const override {
    return {
        .height = static_cast<int>(images_.height), .width = static_cast<int>(images_.width), .channels = 1};
  }

  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    base::expects(index >= 0 && index < size(), "0 <= index < size");
    const auto bytes = static_cast<std::size_t>(format().bytes());
    base::expects(pixels.size() == bytes, "pixels hold one image");
    const auto at = static_cast<std::size_t>(index);
    const auto image = images_.values(kImageKind).subspan(at * bytes, bytes);
    std::copy(image.begin(), image.end(), pixels.begin());
    const std::int32_t label = labels_.values(kLabelKind)[at] - first_label_;
    images_.file.require_read();
    labels_.file.require_read();
    return label;
  }

  [[nodiscard]] std::int32_t label(std::int64_t index) const override {
    base::expects(index >= 0 && index < size(), "0 <= index < size");
    const std::int32_t label = labels_.values(kLabelKind)[static_cast<std::size_t>(index)] - first_label_;
    labels_.file.require_read();
    return label;
  }

  [[nodiscard]] std::int64_t resident_bytes() const {
    return static_cast<std::int64_t>(images_.file.bytes().size() + labels_.file.bytes().size());
  }
  /// A plain file is mapped, and its images are read on demand.
  [[nodiscard]] std::int64_t unread_bytes() const {
    return images_.path.extension() == ".gz" ? 0 : static_cast<std::int64_t>(images_.file.bytes().size());
  }
  [[nodiscard]] const fs::path& image_path() const { return images_.path; }
  [[nodiscard]] const fs::path& label_path() const { return labels_.path; }

 private:
  IdxFile images_;
  IdxFile labels_;
  int first_label_ = 0;  ///< of class 0
};

/// The file as its publisher names it, with a point before "idx" (as some archives unpack it), or in a folder
/// of its name (as Kaggle's); the plain one or the packed one, whichever exists.
std::optional<fs::path> find_file(const fs::path& directory, const std::string& name) {
  auto pointed = name;
  pointed.replace(pointed.find("-idx"), 1, ".");
  for (const char* ending : {"", ".gz"})
    for (const auto& spelled : {name, pointed}) {
      const fs::path path = directory / (spelled + ending);
      if (base::is_there(path) && !base::is_folder(path)) return path;
      for (const auto& inner : {name, pointed})
        if (base::is_file(path / (inner + ending))) return path / (inner + ending);
    }
  return std::nullopt;
}

bool has_mnist(const fs::path& directory) {
  return find_file(directory, "train-images-idx3-ubyte").has_value();
}

/// A split of EMNIST in a folder.
struct EmnistFound {
  fs::path directory;
  const EmnistSplit* split;
};
/// Those in `given`, or in the folders that archives and torchvision make of it.
std::vector<EmnistFound> find_emnist(const fs::path& given) {
  for (const char* child : {"", "gzip", "raw", "EMNIST/raw", "EMNIST"}) {
    const auto directory = *child == '\0' ? given : given / child;
    std::vector<EmnistFound> found;
    for (const auto& split : kEmnist)
      if (find_file(directory, emnist_prefix(split) + "train-images-idx3-ubyte"))
        found.push_back({directory, &split});
    if (!found.empty()) return found;
  }
  return {};
}

/// The split that the option `split` names, or the only one; null where `given` is none of EMNIST's.
std::optional<EmnistFound> emnist_of(const Spec& spec) {
  const auto split = spec.option("split");
  if (!split && find_mnist(spec.directory)) return std::nullopt;
  const auto found = find_emnist(spec.directory);
  if (!split && found.size() < 2) return found.empty() ? std::nullopt : std::optional(found.front());
  for (const auto& one : found)
    if (split == one.split->name) return one;
  const auto names = base::joined(found, ", ", [](const EmnistFound& one) { return one.split->name; });
  base::fail(ErrorKind::data, "data '{}': {} holds {} of EMNIST{}; choose one: split=NAME", spec.text,
             found.empty() ? spec.directory : found.front().directory.string(),
             names.empty() ? "no split" : "the splits " + names,
             split ? fmt::format(", but no '{}'", *split) : "");
}

/// A file of IDX images with another name, which may be what was meant; "" if there is none.
std::string other_idx_file(const fs::path& given) {
  constexpr int kDeep = 3;
  std::error_code none;
  for (fs::recursive_directory_iterator entry(given, fs::directory_options::skip_permission_denied, none),
       end;
       !none && entry != end; entry.increment(none)) {
    if (entry.depth() >= kDeep) entry.disable_recursion_pending();
    if (const auto name = entry->path().filename().string();
        name.find("idx3") != std::string::npos && name.find("images") != std::string::npos)
      return entry->path().string();
  }
  return "";
}

std::unique_ptr<IdxDataset> open_pair(const Spec& spec, const fs::path& directory, const std::string& part) {
  std::vector<fs::path> paths;
  for (const auto& name : {part + "-images-idx3-ubyte", part + "-labels-idx1-ubyte"}) {
    const auto path = find_file(directory, name);
    if (!path) {
      const auto other = has_mnist(directory) || part.starts_with("emnist-") ? "" : other_idx_file(directory);
      base::fail(
          ErrorKind::data,
          "data '{}': there is no {} in {}, plain or with .gz{}; give the folder with MNIST's four IDX files (or one "
          "with mnist/, raw/ or MNIST/raw/), or get them by 'paceline data get mnist' (or fashion-mnist)",
          spec.text, name, directory.string(),
          other.empty() ? "" : fmt::format(" ({} is there, which has another name)", other));
    }
    paths.push_back(*path);
  }
  return std::make_unique<IdxDataset>(paths[0], paths[1]);
}

// Over the 60,000 training images; the values in common use.
constexpr float kMnistMean = 0.1307f, kMnistDeviation = 0.3081f;

/// Tables as they lie at Kaggle's. Its competition's test.csv has no labels, and is not read.
struct PixelTables {
  const char *train, *test;
};
constexpr PixelTables kPixelTables[] = {{"mnist_train.csv", "mnist_test.csv"},
                                        {"fashion-mnist_train.csv", "fashion-mnist_test.csv"},
                                        {"train.csv", nullptr}};

/// Keras's mnist.npz, or tables of pixels; nothing if there are none.
std::optional<Source> arrays_of_mnist(const Spec& spec) {
  const fs::path given = spec.directory;
  const auto finish = [&](ArrayParts parts, const std::string& files) {
    Source source = source_of_arrays(spec, std::move(parts));
    const auto format = source.train->format();
    if (format.channels != 1)
      base::fail(ErrorKind::data, "{}: its images have {} channels, but MNIST's have 1; open it as npz:{}",
                 (given / files).string(), format.channels, (given / files).string());
    source.description =
        fmt::format("MNIST ({}): {} training images, {} test images, {}x{}x1{}", files, source.train->size(),
                    source.test->size(), format.height, format.width,
                    source.classes() == kDigits ? "" : fmt::format(", {} classes", source.classes()));
    source.mean = {kMnistMean};
    source.stddev = {kMnistDeviation};
    return source;
  };
  if (base::is_file(given / "mnist.npz")) return finish(read_npz(spec, given / "mnist.npz"), "mnist.npz");
  for (const auto& [train, test] : kPixelTables) {
    if (!is_pixel_table(given / train)) continue;
    ArrayParts parts{.train = read_pixel_table(given / train), .validation = {}, .test = {}};
    if (test != nullptr) parts.test = read_pixel_table(given / test);
    return finish(std::move(parts), test == nullptr ? train : fmt::format("{}, {}", train, test));
  }
  return std::nullopt;
}

}  // namespace

std::optional<fs::path> find_mnist(const fs::path& given) {
  for (const char* child : {"", "mnist", "raw", "MNIST/raw", "MNIST"})
    if (const auto directory = *child == '\0' ? given : given / child; has_mnist(directory)) return directory;
  std::vector<fs::path> others;  // FashionMNIST/raw, KMNIST/raw
  for (const auto& entry : base::entries_of(given))
    if (has_mnist(entry.path() / "raw")) others.push_back(entry.path() / "raw");
  std::ranges::sort(others);
  if (others.size() > 1)
    base::fail(ErrorKind::data,
               "{}: holds several sets of MNIST's form, in {} and {}; give the folder of one", given.string(),
               others[0].string(), others[1].string());
  return others.empty() ? std::nullopt : std::optional(others.front());
}

bool is_mnist_of_others(const fs::path& given) {
  return base::is_file(given / "mnist.npz") || !find_emnist(given).empty() ||
         std::ranges::any_of(kPixelTables,
                             [&](const auto& one) { return is_pixel_table(given / one.train); });
}

Source open_mnist(const Spec& spec) {
  const fs::path given = spec.directory;
  const auto split = emnist_of(spec);
  const auto found = find_mnist(given);
  if (!split && !found)
    if (auto arrays = arrays_of_mnist(spec)) return std::move(*arrays);
  const fs::path directory =
      split ? split->directory : found.value_or(fs::is_directory(given / "mnist") ? given / "mnist" : given);
  auto train = open_pair(spec, directory, split ? emnist_prefix(*split->split) + "train" : "train");
  auto test = open_pair(spec, directory, split ? emnist_prefix(*split->split) + "test" : "t10k");
  if (train->format() != test->format())
    base::fail(
        ErrorKind::data,
        "{}: its images are {}x{}, but those of {} are {}x{}; both sets have one size: check that all four "
        "files are of one data set",
        test->image_path().string(), test->format().height, test->format().width,
        train->image_path().string(), train->format().height, train->format().width);

  Source source;
  LabelNumbers numbers{.first = 0, .count = kDigits};
  std::string set = "MNIST";
  if (split) {
    const std::string_view letters = split->split->classes;
    numbers = {split->split->first_label, static_cast<int>(letters.size())};
    set = fmt::format("EMNIST {}", split->split->name);
    for (const char letter : letters) source.class_names.emplace_back(1, letter);
  } else {
    const auto counts = train->label_counts();
    if (counts.rbegin()->first >= kDigits) {
      numbers = number_classes(train->label_path().string(), counts);
      set = "its training part";
    }
    source.class_names = numbers.names();
  }
  train->use_labels(numbers, set);
  test->use_labels(numbers, set);
  source.description =
      fmt::format("{}: {} training images, {} test images, {}x{}x1{}", split ? set : "MNIST", train->size(),
                  test->size(), train->format().height, train->format().width,
                  numbers.count == kDigits ? "" : fmt::format(", {} classes", numbers.count));
  if (spec.options.contains("test"))
    source.notes.push_back(
        fmt::format("test={} changes nothing: there is a test part", spec.options.at("test")));
  source.resident_bytes = train->resident_bytes() + test->resident_bytes();
  source.unread_bytes = train->unread_bytes() + test->unread_bytes();
  source.train = std::move(train);
  source.test = std::move(test);
  source.mean = {kMnistMean};
  source.stddev = {kMnistDeviation};
  return source;
}

}  // namespace paceline::data
