#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/dataset.h"
#include "data/formats/formats.h"
#include "data/get/get.h"
#include "data/spec.h"

namespace paceline::data {
namespace {

/// One row per format. A new data set is two files in formats/ and its row here, after `mnist`:
/// docs/adding.md.
struct FormatRow {
  FormatInfo info;
  Source (*open)(const Spec& spec);
};

const std::vector<FormatRow>& table() {
  static const std::vector<FormatRow> rows = {
      {{"cifar10:DIR[,test=FILE]", "CIFAR-10, binary version: data_batch_1.bin .. 5, test_batch.bin"},
       open_cifar10},
      {{"cifar100:DIR[,labels=fine|coarse]", "CIFAR-100: train.bin, test.bin, or its Python version"},
       open_cifar100},
      {{"mnist:DIR[,split=NAME][,test=X]",
        "MNIST, IDX files, plain or .gz, EMNIST, mnist.npz, tables of pixels"},
       open_mnist},
      {{"npz:FILE[,test=X][,range=own|LOW:HIGH]", "arrays of NumPy in one file, as MedMNIST's"}, open_npz},
      {{"folder:DIR[,size=N|HxW][,eval-size=N|HxW][,eval-resize=N|fit][,crop-area=X][,jitter=X][,flip=0|1][,range=own|LOW:HIGH][,classes=leaf|top][,labels=TABLE][,image=COLUMN][,label=COLUMN][,test=X]",
        "JPEG and PNG files, a folder a class, in train/ and test/ or in one folder"},
       open_folder},
      {{"shards:PATTERN[,validation=PATTERN][,test=PATTERN][,label=FIELD][,classes=FILE][,size=N|HxW][,eval-size=N|HxW][,eval-resize=N|fit][,crop-area=X][,jitter=X][,flip=0|1][,range=own|LOW:HIGH]",
        "tar files of KEY.jpg and KEY.cls, as train-{0000..0146}.tar"},
       open_shards},
      {{"synthetic[,train=N][,test=N][,seed=S][,size=P][,classes=N][,delay-us=T]",
        "drawn images of 10 classes, no files"},
       open_synthetic},
  };
  return rows;
}

/// The options that a format accepts: those of its usage, and those of all formats.
std::vector<std::string> options_of(const FormatInfo& format) {
  std::vector<std::string> names;
  const auto& usage = format.usage;
  for (auto at = usage.find("[,"); at != std::string::npos; at = usage.find("[,", at + 1))
    names.push_back(usage.substr(at + 2, usage.find('=', at) - at - 2));
  names.insert(names.end(), {"mean", "std"});
  if (format.reads_files()) names.emplace_back("train");  // the others draw as many images as they are told
  return names;
}

/// What to write for a data set that is known elsewhere under `name`; nullopt: nothing is known of it.
std::optional<std::string> hint_for_data(const std::string& name) {
  constexpr const char* kToFolders =
      "it is not read; write its images into folders, one for each class, and give folder:DIR";
  constexpr const char* kAsFolder = "its images are read from folders, one for each class: folder:DIR";
  constexpr auto kKnown = std::to_array<std::pair<const char*, const char*>>({
      {"kmnist", "its files are those of MNIST: mnist:DIR"},
      {"qmnist", kToFolders},
      {"emnist",
       "its files are read as mnist:DIR,split=balanced (or byclass, bymerge, letters, digits, mnist)"},
      {"medmnist", "its files are read as npz:FILE"},
      {"svhn", kToFolders},
      {"stl10", kToFolders},
      {"imagenet", kAsFolder},
      {"imagenet1k", kAsFolder},
      {"tinyimagenet", kAsFolder},
      {"imagenette", kAsFolder},
      {"imagefolder", kAsFolder},
      {"webdataset", "its tar files are read as shards:PATTERN, such as shards:train-{0000..0146}.tar"},
      {"wds", "its tar files are read as shards:PATTERN, such as shards:train-{0000..0146}.tar"},
      {"images", kAsFolder},
      {"flowers102", kAsFolder},
      {"fakedata", "images without files are drawn by synthetic"},
      {"random", "images without files are drawn by synthetic"},
  });
  const auto plain = [](std::string text) {
    std::erase_if(text, [](char letter) { return letter == '-' || letter == '_' || letter == ' '; });
    return base::lower_case(text);
  };
  for (const Package& package : packages())
    if (plain(package.name) == plain(name) && package.name != package.format)
      return fmt::format("; its files are read as {}:DIR, and 'paceline data get {}' fetches them",
                         package.format, package.name);
  for (const FormatRow& row : table())
    if (plain(row.info.name()) == plain(name)) return fmt::format("; did you mean '{}'?", row.info.name());
  for (const auto& [known, hint] : kKnown)
    if (known == plain(name)) return fmt::format("; {}", hint);
  return std::nullopt;
}

/// Applies the options that replace the data set's normalisation, or that use only a part of its training
/// images.
void apply_common_options(const Spec& spec, const FormatInfo& format, Source& source) {
  constexpr double kMost = 100;  // in units of the brightest pixel: far above any sensible value
  const auto channels = static_cast<std::size_t>(source.train->format().channels);
  const auto set = [&](const char* key, double low, std::vector<float>& values) {
    const auto given = decimals_option(spec, key, channels, low, kMost);
    if (!given.empty()) values.assign(given.begin(), given.end());
  };
  set("mean", -kMost, source.mean);
  set("std", 1e-6, source.stddev);
  if (format.reads_files() && spec.options.contains("train"))
    cut_training(source, integer_option(spec, "train", 0, 1, source.train->size()));
}

}  // namespace

std::vector<FormatInfo> known_formats() {
  std::vector<FormatInfo> infos;
  for (const auto& row : table()) infos.push_back(row.info);
  return infos;
}

std::string known_specs() {
  std::string text;
  const auto& rows = table();
  for (const auto& row : rows)
    text += (text.empty() ? "" : &row == &rows.back() ? " or " : ", ") + row.info.spec();
  return text;
}

Source open(const std::string& text, const OpenOptions& options) {
  Spec spec = parse_spec(text);
  spec.how = options;
  const auto& rows = table();
  const auto name_of = [](const FormatRow& one) { return one.info.name(); };
  const auto row = std::ranges::find(rows, spec.name, name_of);
  if (row == rows.end()) {
    if (!text.empty() && base::is_there(text))
      base::fail(
          base::ErrorKind::usage,
          "data '{0}': a path needs its format in front: folder:{0} for images in folders or a tar archive; "
          "known are {1}",
          text, known_specs());
    base::fail(base::ErrorKind::usage, "data '{}': there is no data set '{}'{}", text, spec.name,
               hint_for_data(spec.name).value_or(base::suggestion(spec.name, base::texts_of(rows, name_of))));
  }
  if (row->info.reads_files() && spec.directory.empty())
    base::fail(base::ErrorKind::usage, "data '{}': {} reads files and needs their place; write {}", text,
               spec.name, row->info.usage);
  if (!row->info.reads_files() && text.find(':') < text.find(','))
    base::fail(base::ErrorKind::usage, "data '{}': {} reads no files and takes no directory ('{}'); write {}",
               text, spec.name, spec.directory, row->info.usage);
  expect_options(spec, options_of(row->info));
  Source source = row->open(spec);
  source.spec = text;
  source.name = spec.name;
  apply_common_options(spec, row->info, source);
  if (options.validation_split > 0) cut_validation(source, options.validation_split);
  if (source.test->size() > 0) return source;
  if (source.validation) {
    source.test = std::move(source.validation);
    source.notes.emplace_back("no test set: what is held back of the training set is the test set");
  } else if (options.needs_test) {
    base::fail(
        base::ErrorKind::usage,
        "data '{}': there is no test set; give the shards of one as test=PATTERN, or hold back a part of "
        "the training set: --validation-split 0.1",
        text);
  }
  return source;
}

}  // namespace paceline::data
