#include "init/data_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/formats/formats.h"
#include "data/image/dataset.h"
#include "data/image/inspect.h"
#include "data/image/label_table.h"
#include "data/image/scan.h"

namespace paceline::init {
namespace {

namespace fs = std::filesystem;

/// Finds files in which other programs store images, down to `kDeep` folders; "" where there are images that
/// are read.
std::string hint_of_other_files(const fs::path& folder) {
  std::error_code none;
  if (!base::is_folder(folder)) return "";
  constexpr int kDeep = 3;
  static const std::map<std::string, std::string> kKinds{{".npz", "arrays of NumPy"},
                                                         {".npy", "arrays of NumPy"},
                                                         {".h5", "HDF5"},
                                                         {".hdf5", "HDF5"},
                                                         {".parquet", "Parquet"},
                                                         {".tfrecord", "TFRecord"},
                                                         {".zip", "an archive of ZIP"},
                                                         {".webp", "WebP"},
                                                         {".bmp", "BMP"},
                                                         {".gif", "GIF"},
                                                         {".tif", "TIFF"},
                                                         {".tiff", "TIFF"},
                                                         {".heic", "HEIC"}};
  std::map<std::string, std::int64_t> counts;
  for (fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, none),
       end;
       !none && entry != end; entry.increment(none)) {
    if (entry.depth() >= kDeep) entry.disable_recursion_pending();
    if (data::is_image_name(entry->path().filename().string())) return "";  // those are read
    if (const auto ending = base::lower_case(entry->path().extension().string()); kKinds.contains(ending))
      ++counts[ending];
  }
  if (counts.empty()) return "";
  const auto most = std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; });
  return fmt::format(
      "{} in {} ({}), which this program does not read: write the images as JPEG or PNG "
      "files, a folder for each class{}",
      base::counted(most->second, "file there ends", "files there end"), most->first, kKinds.at(most->first),
      most->first == ".zip"   ? "; unpack it first"
      : most->first == ".npz" ? "; or give the file itself, if it holds train_images and train_labels"
                              : "");
}

using base::ErrorKind;

constexpr std::size_t kNamedDuplicates = 3;
constexpr std::size_t kNamedBroken = 3;

bool has_any(const fs::path& folder, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* name) { return base::is_there(folder / name); });
}

/// The spec for the files at the given path: "folder:/home/me/birds".
std::string spec_of(const std::string& given) {
  std::string path = given;
  std::error_code none;
  // It may be a spec copied from a --data option: folder:DIR.
  if (!base::is_there(path))
    for (const auto& format : data::known_formats())
      if (path.starts_with(format.name() + ":")) path = path.substr(format.name().size() + 1);
  if (!base::is_there(path))
    base::fail(
        ErrorKind::data,
        "init: there is no folder and no archive '{}'; give the one that holds a folder for each class, or "
        "train/ and test/ with these",
        path);
  const auto whole = fs::canonical(path, none).string();
  if (none) base::fail(ErrorKind::data, "init: '{}' cannot be opened: {}", path, none.message());
  if (whole.find(',') != std::string::npos)
    base::fail(ErrorKind::usage,
               "init: '{}' holds a comma, which begins the options of a data spec; rename it, or make a link "
               "without: ln -s {} images",
               whole, base::shell_word(whole));
  if (has_any(whole, {"data_batch_1.bin", "cifar-10-batches-bin", "data_batch_1", "cifar-10-batches-py"}))
    return "cifar10:" + whole;
  if (has_any(whole, {"cifar-100-binary", "cifar-100-python"}) ||
      (has_any(whole, {"fine_label_names.txt"}) && has_any(whole, {"train.bin"})) ||
      (has_any(whole, {"meta"}) && base::is_file(fs::path(whole) / "train")))
    return "cifar100:" + whole;
  if (base::is_folder(whole) && (data::find_mnist(whole) || data::is_mnist_of_others(whole)))
    return "mnist:" + whole;
  if (whole.ends_with(".npz")) return "npz:" + whole;
  return "folder:" + whole;
}

/// "/home/me/birds" of "folder:/home/me/birds,classes=top".
std::string directory_of(const std::string& spec) {
  const auto begin = spec.find(':') + 1;
  return spec.substr(begin, spec.find(',') - begin);
}

/// Whether a class folder is inside another one ("dog/greg" in "dog"); then the outer folders are the
/// classes.
bool has_class_in_class(const std::vector<std::string>& sorted) {
  return std::ranges::any_of(sorted, [&](const std::string& name) {
    for (auto slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1))
      if (std::ranges::binary_search(sorted, name.substr(0, slash))) return true;
    return false;
  });
}

/// Opens folders of which a class lies inside another: the outer ones are the classes. Nothing for others.
std::optional<data::Source> open_nested(std::string& spec) {
  try {
    if (!has_class_in_class(data::open(spec + ",classes=leaf").class_names)) return std::nullopt;
  } catch (const base::Error&) {
    return std::nullopt;  // not readable in this way either
  }
  spec += ",classes=top";
  return data::open(spec);
}

/// Opens a folder whose classes a table says, of several the first that does; nothing where none does.
/// `why_not` says why.
std::optional<data::Source> open_by_table(std::string& spec, std::string& why_not) {
  const auto folder = directory_of(spec);
  for (const auto& table : data::find_label_tables(folder)) {
    if (!table.why_not.empty()) {
      if (why_not.empty()) why_not = table.why_not;
      continue;
    }
    if (table.file.find(',') != std::string::npos) continue;  // which a spec cannot name
    try {
      auto source = data::open(fmt::format("{},labels={}", spec, table.file));
      spec += ",labels=" + table.file;
      return source;
    } catch (const base::Error& error) {
      if (why_not.empty()) why_not = error.what();
    }
  }
  return std::nullopt;
}

/// Says that a table beside the images has other classes than the folders that were read; "" otherwise.
std::string note_on_tables(const std::string& spec, const std::vector<std::string>& classes) {
  if (!spec.starts_with("folder:") || spec.find(",labels=") != std::string::npos) return "";
  const auto folder = directory_of(spec);
  for (const auto& table : data::find_label_tables(folder))
    if (table.why_not.empty() && !std::ranges::is_permutation(table.classes, classes))
      return fmt::format(
          "{} is a table that names images: the classes here are the folders, not its labels; for these: {},labels={}",
          (fs::path(folder) / table.file).string(), spec, table.file);
  return "";
}

/// Whether folders differ by a number alone, as "images_part_1" and "images_part_2": a set in several
/// archives.
bool are_numbered(const std::vector<std::string>& folders) {
  const auto series = data::series_of(folders.front());
  return !series.empty() &&
         std::ranges::all_of(folders, [&](const auto& folder) { return data::series_of(folder) == series; });
}

/// Opens the data. If that fails, a table may say the classes, or other files in the folder explain why.
data::Source open_it(std::string& spec) {
  try {
    auto source = data::open(spec);
    if (std::string ignored; spec.starts_with("folder:") && are_numbered(source.class_names))
      if (auto by_table = open_by_table(spec, ignored)) return std::move(*by_table);
    if (!has_class_in_class(source.class_names)) return source;
    spec += ",classes=top";
    return data::open(spec);
  } catch (const base::Error& error) {
    if (!spec.starts_with("folder:")) throw;
    std::string hint;
    if (!spec.ends_with(",classes=top")) {
      if (auto source = open_by_table(spec, hint)) return std::move(*source);
      if (auto source = open_nested(spec)) return std::move(*source);
    }
    if (hint.empty()) hint = hint_of_other_files(directory_of(spec));
    if (hint.empty()) throw;
    base::fail(error.kind(), "{}\n{}", error.what(), hint);
  }
}

/// Refuses a folder with files that list the images to train and to test on, as "train.txt" and "test.txt":
/// a test set that is drawn from the folders would hold some of the former, and the latter would be trained
/// on.
void refuse_lists_of_parts(const std::string& spec) {
  constexpr int kDeep = 2;
  const std::set<std::string> kinds{".txt", ".csv", ".tsv", ".json", ".mat", ".lst", ".list"};
  std::vector<std::string> train, test;
  std::error_code none;
  const fs::path folder = directory_of(spec);
  for (fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, none),
       end;
       !none && entry != end; entry.increment(none)) {
    if (entry.depth() >= kDeep) entry.disable_recursion_pending();
    const auto stem = base::lower_case(entry->path().stem().string());
    if (!kinds.contains(base::lower_case(entry->path().extension().string()))) continue;
    const auto part = data::part_name(stem);
    const bool is_both = stem.find("train") != std::string::npos && stem.find("test") != std::string::npos;
    const auto below = entry->path().lexically_relative(folder).string();
    if (is_both || stem.starts_with("train") || (part && part->split == data::kTrain)) train.push_back(below);
    if (is_both || stem.starts_with("test") || (part && part->split == data::kTest)) test.push_back(below);
  }
  if (train.empty() || test.empty()) return;
  const auto& one = *std::ranges::min_element(train);
  const auto& other = *std::ranges::min_element(test);
  base::fail(
      ErrorKind::data,
      "init: {}{} in {} {} which images are to test, and the folders do not; a test set that is drawn would "
      "be another, and its figures would compare with nobody's. Move the images into train/CLASS and test/CLASS "
      "as listed, or write a table of the columns image, label and split, and give it: --data {},labels=TABLE; "
      "or move the lists away, to draw a test set all the same",
      one, one == other ? "" : " and " + other, folder.string(), one == other ? "says" : "say", spec);
}

using Parts = std::vector<const data::ImageDataset*>;

void inspect_images(const Parts& parts, int threads, DataFacts& facts) {
  for (const auto* part : parts) {
    const auto share =
        std::max<std::int64_t>(1, kMostLookedAt * part->size() / std::max(kMostLookedAt, facts.all()));
    std::vector<std::int64_t> samples(static_cast<std::size_t>(std::min(part->size(), share)));
    for (std::size_t i = 0; i < samples.size(); ++i)  // evenly spaced
      samples[i] = static_cast<std::int64_t>(i) * part->size() / std::ssize(samples);
    const auto seen = data::examine_images(*part, samples, threads);
    facts.looked_at += static_cast<std::int64_t>(seen.size());
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const auto& one = seen[i];
      if (!one.broken.empty())
        facts.broken.push_back(fmt::format("{}: {}", part->sample_name(samples[i]), one.broken));
      facts.grey += one.grey;
      facts.plain += one.plain;
      facts.turned += one.header.turn > 1 ? 1 : 0;
      if (one.header.height == 0) continue;
      facts.short_sides.push_back(std::min(one.header.height, one.header.width));
      facts.long_sides.push_back(std::max(one.header.height, one.header.width));
      ++facts.kinds[fmt::format("{} {}", data::name(one.header.kind), one.header.colour)];
    }
  }
  std::ranges::sort(facts.short_sides);
  std::ranges::sort(facts.long_sides);
  if (10 * static_cast<std::int64_t>(facts.broken.size()) <= facts.looked_at) return;
  const auto named = std::min(kNamedBroken, facts.broken.size());
  base::fail(
      ErrorKind::data,
      "init: {} of the {} images that were looked at are broken, but a recipe is written for at most a "
      "tenth: {}{}; get the files again, or look at all of them: paceline data verify {}",
      facts.broken.size(), facts.looked_at,
      fmt::join(facts.broken.begin(), facts.broken.begin() + static_cast<std::ptrdiff_t>(named), "; "),
      facts.broken.size() > named ? "; ..." : "", base::shell_word(facts.spec));
}

void look_for_duplicates(const Parts& parts, int threads, DataFacts& facts) {
  facts.sought_duplicates = facts.all() <= kMostCompared;
  if (!facts.sought_duplicates) return;
  const auto count = [&](const std::vector<data::Duplicate>& found) {
    facts.contradicting += std::ranges::count_if(found, [](const auto& one) { return !one.same_label; });
    return static_cast<std::int64_t>(found.size());
  };
  facts.inside_train = count(data::find_duplicates(*parts.front(), *parts.front(), threads));
  for (std::size_t a = 0; a < parts.size(); ++a)
    for (std::size_t b = a + 1; b < parts.size(); ++b) {
      const auto found = data::find_duplicates(*parts[a], *parts[b], threads);
      facts.across_parts += count(found);
      for (const auto& one : found)
        if (facts.duplicates.size() < kNamedDuplicates)
          facts.duplicates.push_back(fmt::format("{} = {}", one.second, one.first));
    }
}

bool is_most(std::int64_t count, std::int64_t of) { return 10 * count >= 9 * of && of > 0; }

}  // namespace

int DataFacts::median_side() const {
  if (!has_sizes || short_sides.empty()) return std::min(format.height, format.width);
  return short_sides[short_sides.size() / 2];
}
std::int64_t DataFacts::fewest() const { return *std::ranges::min_element(per_class); }
std::int64_t DataFacts::most() const { return *std::ranges::max_element(per_class); }
bool DataFacts::is_mostly_grey() const { return has_sizes ? is_most(grey, looked_at) : format.channels == 1; }
bool DataFacts::is_mostly_plain() const { return has_sizes && is_most(plain, looked_at); }

DataFacts inspect_data(const std::string& path, int threads) {
  DataFacts facts;
  facts.spec = spec_of(path);
  const auto source = open_it(facts.spec);
  facts.format = source.train->format();
  facts.class_names = source.class_names;
  facts.notes = source.notes;
  if (auto note = note_on_tables(facts.spec, source.class_names); !note.empty())
    facts.notes.push_back(std::move(note));
  facts.train = source.train->size();
  facts.test = source.test->size();
  facts.validation = source.validation ? source.validation->size() : 0;
  for (const auto& note : source.notes)
    if (note.starts_with("no test folder: ") || note.starts_with("no test part: "))
      facts.test_from =
          note.find("the validation ") != std::string::npos ? TestFrom::validation_folder : TestFrom::cut;
  if (facts.test_from == TestFrom::cut && facts.spec.starts_with("folder:"))
    refuse_lists_of_parts(facts.spec);
  facts.per_class.resize(source.class_names.size());
  for (std::int64_t i = 0; i < facts.train; ++i)
    ++facts.per_class[static_cast<std::size_t>(source.train->label(i))];
  Parts parts;
  for (const auto* set : {source.train.get(), source.validation.get(), source.test.get()})
    if (const auto* images = dynamic_cast<const data::ImageDataset*>(set)) parts.push_back(images);
  facts.has_sizes = !parts.empty();
  if (!facts.has_sizes) return facts;
  inspect_images(parts, threads, facts);
  look_for_duplicates(parts, threads, facts);
  return facts;
}

}  // namespace paceline::init
