#include "data/formats/formats.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "data/file_bytes.h"
#include "data/formats/pickle.h"

namespace paceline::data {
namespace {

using Kind = Pickle::Kind;
using Value = Pickle::Value;

constexpr std::int64_t kImageBytes = 3072;

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

/// CIFAR-10, or CIFAR-100 with one of its two labels.
struct CifarSet {
  const char* title;
  std::vector<int> classes;                   ///< of each label byte of a record, in their order
  std::size_t label;                          ///< the one that is used, an index into `classes`
  const char* python_key;                     ///< of its list in the Python version
  const char* first_file;                     ///< of training, without its ending
  const char *binary_folder, *python_folder;  ///< into which the archives unpack
  const char* python_archive;
  const char* next_step;
  const char* other;  ///< what a binary file may be, whose labels are out of range
  [[nodiscard]] std::int64_t label_bytes() const { return static_cast<std::int64_t>(classes.size()); }
  [[nodiscard]] std::int64_t record_bytes() const { return label_bytes() + 3 * kPlane; }
};

CifarSet cifar10_set() {
  return {.title = "CIFAR-10",
          .classes = {10},
          .label = 0,
          .python_key = "labels",
          .first_file = "data_batch_1",
          .binary_folder = "cifar-10-batches-bin",
          .python_folder = "cifar-10-batches-py",
          .python_archive = "cifar-10-python.tar.gz",
          .next_step = "get it by 'paceline data get cifar10'",
          .other = "CIFAR-100 has two label bytes"};
}

CifarSet cifar100_set(bool is_coarse) {
  return {.title = "CIFAR-100",
          .classes = {20, 100},
          .label = is_coarse ? 0u : 1u,
          .python_key = is_coarse ? "coarse_labels" : "fine_labels",
          .first_file = "train",
          .binary_folder = "cifar-100-binary",
          .python_folder = "cifar-100-python",
          .python_archive = "cifar-100-python.tar.gz",
          .next_step = "unpack cifar-100-binary.tar.gz",
          .other = "CIFAR-10 has one label byte"};
}

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

CifarFile read_binary(const fs::path& path, const CifarSet& set) {
  CifarFile file{.bytes = FileBytes::map(path)};
  const auto bytes = static_cast<std::int64_t>(file.bytes.bytes().size());
  const auto record_bytes = set.record_bytes();
  if (bytes == 0 || bytes % record_bytes != 0)
    base::fail(ErrorKind::data,
               "{}: a {} file is a whole number of records of {} bytes, but this one has {} bytes ({} "
               "records and {} bytes); it is truncated or of another format: fetch it again",
               path.string(), set.title, record_bytes, bytes, bytes / record_bytes, bytes % record_bytes);
  const std::uint8_t* const begin = file.bytes.bytes().data();
  file.images = bytes / record_bytes;
  file.labels = begin + set.label;
  file.pixels = begin + set.label_bytes();
  file.label_stride = file.pixel_stride = record_bytes;
  for (std::int64_t r = 0; r < file.images; ++r)
    for (std::size_t i = 0; i < set.classes.size(); ++i) {
      const int label = begin[r * record_bytes + static_cast<std::int64_t>(i)];
      file.bytes.require_read();
      if (label >= set.classes[i])
        base::fail(
            ErrorKind::data,
            "{}: record {} (from 0) has the label {}, but {} has labels 0 to {}{}; the file is damaged "
            "or of another format ({}): fetch it again",
            path.string(), r, label, set.title, set.classes[i] - 1,
            set.classes.size() == 1 ? ""
            : i == 0                ? " in its first byte"
                                    : " in its second byte",
            set.other);
    }
  return file;
}

CifarFile read_python(const fs::path& path, const CifarSet& set) {
  CifarFile file{.bytes = FileBytes::map(path)};
  auto batch = read_cifar_python(path.string(), file.bytes.bytes(), set.python_key, set.classes[set.label]);
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

  [[nodiscard]] std::int64_t resident_bytes() const {
    std::int64_t bytes = 0;
    for (const CifarFile& file : files_)
      bytes += file.images * (file.pixel_stride + (file.own_labels.empty() ? 0 : 1));
    return bytes;
  }

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

/// One of the two versions that each set is published in.
struct CifarVersion {
  const char* ending;  ///< of its files' names
  const char* words;   ///< after the file names in descriptions
  CifarFile (*read)(const fs::path& path, const CifarSet& set);
};
constexpr CifarVersion kBinary{".bin", "", read_binary};
constexpr CifarVersion kPython{"", ", python version", read_python};

struct CifarFolder {
  fs::path path;
  const CifarVersion* version;
};

/// DIR itself, or its subfolder with the name into which an archive unpacks, whichever contains the first
/// training file. If both versions are there, the binary one.
CifarFolder find_folder(const Spec& spec, const CifarSet& set) {
  const fs::path given = spec.directory;
  for (const CifarVersion* version : {&kBinary, &kPython})
    for (const auto& candidate :
         {given, given / (version == &kBinary ? set.binary_folder : set.python_folder)})
      if (fs::is_regular_file(candidate / (std::string(set.first_file) + version->ending)))
        return {candidate, version};
  const bool is_packed = fs::exists(given / set.python_archive);
  base::fail(
      ErrorKind::data,
      "data '{}': there is no {}.bin in {} or in {}, and no {} of the Python version in "
      "them or in {}; {}give the folder that {} was unpacked to, or {}",
      spec.text, set.first_file, given.string(), (given / set.binary_folder).string(), set.first_file,
      (given / set.python_folder).string(),
      is_packed ? fmt::format("{} is there, but packed: unpack it (tar -xzf); ", set.python_archive) : "",
      set.title, set.next_step);
}

/// The images of the named files as the two parts of a source.
Source source_of(const CifarFolder& folder, const CifarSet& set, const std::vector<std::string>& train_files,
                 const std::string& test_file, const std::string& named) {
  const auto read = [&](const std::string& name) { return folder.version->read(folder.path / name, set); };
  std::vector<CifarFile> files, test_files;
  for (const auto& name : train_files) files.push_back(read(name));
  test_files.push_back(read(test_file));
  auto train = std::make_unique<CifarDataset>(std::move(files));
  auto test = std::make_unique<CifarDataset>(std::move(test_files));
  Source source;
  source.description = fmt::format("{}: {} training images ({}), {} test images ({}), 32x32x3{}", set.title,
                                   train->size(), named, test->size(), test_file, folder.version->words);
  source.resident_bytes = train->resident_bytes() + test->resident_bytes();
  source.train = std::move(train);
  source.test = std::move(test);
  source.crop_padding = 4;
  source.flip = Flip::random;
  return source;
}

// In the order of the published files fine_label_names.txt and coarse_label_names.txt.
constexpr const char* kFineNames =
    "apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel "
    "can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur "
    "dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion "
    "lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree "
    "pear pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea "
    "seal shark shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table "
    "tank telephone television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman "
    "worm";
constexpr const char* kCoarseNames =
    "aquatic_mammals fish flowers food_containers fruit_and_vegetables household_electrical_devices "
    "household_furniture insects large_carnivores large_man-made_outdoor_things "
    "large_natural_outdoor_scenes large_omnivores_and_herbivores medium_mammals non-insect_invertebrates "
    "people reptiles small_mammals trees vehicles_1 vehicles_2";

}  // namespace

CifarPythonBatch read_cifar_python(const std::string& path, std::span<const std::uint8_t> bytes,
                                   const std::string& key, int classes) {
  const auto* const title = classes == 10 ? "CIFAR-10" : "CIFAR-100";
  const Pickle pickle(path, bytes,
                      {.next_step = fmt::format(
                           "only the form in which {}'s Python version is published is read: fetch the file "
                           "again, or take the binary version ({})",
                           title, classes == 10 ? "paceline data get cifar10" : "cifar-100-binary.tar.gz")});
  CifarPythonBatch batch;
  const Value& labels =
      pickle.expect(pickle.member(pickle.root(), key), Kind::list, fmt::format("'{}' is a list", key));
  if (labels.members.empty()) pickle.fail(labels.offset, "there are no labels");
  for (const int index : labels.members) {
    const std::int64_t label = integer(pickle, index, "a label is a whole number");
    if (label < 0 || label >= classes)
      pickle.fail(pickle.at(index).offset, fmt::format("label {} (from 0) is {}, but {} has labels 0 to {}",
                                                       batch.labels.size(), label, title, classes - 1));
    batch.labels.push_back(static_cast<std::uint8_t>(label));
  }
  batch.pixels = array_bytes(pickle, pickle.member(pickle.root(), "data"),
                             static_cast<std::int64_t>(batch.labels.size()));
  return batch;
}

Source open_cifar10(const Spec& spec) {
  const auto set = cifar10_set();
  const auto folder = find_folder(spec, set);
  const std::string ending = folder.version->ending;
  std::vector<std::string> train_files;
  for (int i = 1; i <= 5; ++i) train_files.push_back(fmt::format("data_batch_{}{}", i, ending));
  Source source = source_of(folder, set, train_files, spec.option("test").value_or("test_batch" + ending),
                            "data_batch_1..5" + ending);
  source.class_names = {"airplane", "automobile", "bird",  "cat",  "deer",
                        "dog",      "frog",       "horse", "ship", "truck"};
  // Per channel over the 50,000 training images; the values in common use.
  source.mean = {0.4914f, 0.4822f, 0.4465f};
  source.stddev = {0.2470f, 0.2435f, 0.2616f};
  return source;
}

Source open_cifar100(const Spec& spec) {
  const auto labels = spec.option("labels").value_or("fine");
  const bool is_coarse = labels == "coarse";
  if (!is_coarse && labels != "fine")
    base::fail(ErrorKind::usage,
               "data '{}': labels is fine (100 classes) or coarse (20), not '{}'; correct it", spec.text,
               labels);
  const auto set = cifar100_set(is_coarse);
  const auto folder = find_folder(spec, set);
  const std::string ending = folder.version->ending, train_file = "train" + ending;
  Source source = source_of(folder, set, {train_file}, "test" + ending, train_file);
  source.description += is_coarse ? ", 20 coarse classes" : ", 100 classes";
  source.class_names = base::words_of(is_coarse ? kCoarseNames : kFineNames);
  // Per channel over the 50,000 training images; the values in common use.
  source.mean = {0.5071f, 0.4865f, 0.4409f};
  source.stddev = {0.2673f, 0.2564f, 0.2762f};
  return source;
}

}  // namespace paceline::data
