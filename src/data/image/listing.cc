#include "data/image/listing.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/spec.h"

namespace paceline::data {
namespace {

using base::ErrorKind;

std::string_view first_part(std::string_view path) { return path.substr(0, path.find('/')); }
std::string_view after_first(std::string_view path) {
  const auto slash = path.find('/');
  return slash == std::string_view::npos ? std::string_view{} : path.substr(slash + 1);
}

enum Split : std::size_t { kTrain, kValidation, kTest, kSplits };

std::optional<Split> split_of(std::string_view folder) {
  const std::string word = base::lower_case(folder);
  if (word == "train" || word == "training") return kTrain;
  if (word == "val" || word == "valid" || word == "validation") return kValidation;
  if (word == "test" || word == "testing") return kTest;
  return std::nullopt;
}

/// Where the images of a directory belong: to a split and a class, or nowhere.
struct Destination {
  std::optional<Split> split;
  std::string class_name;
};

/// The directories that contain images, without a first folder that all have in common.
class Folders {
 public:
  Folders(const std::string& spec, const ImageListing& listing) : spec_(spec), listing_(listing) {
    counts_.resize(listing.directories().size());
    for (std::size_t i = 0; i < listing.size(); ++i) ++counts_[listing.directory(i)];
    paths_.assign(listing.directories().begin(), listing.directories().end());
    while (share_first() && !split_of(first_part(paths_[used()]))) strip();
    for (std::size_t d = 0; d < paths_.size(); ++d) {
      if (counts_[d] == 0) continue;
      if (const auto split = split_of(first_part(paths_[d]))) name_split(*split, first_part(paths_[d]));
    }
  }

  [[nodiscard]] bool has_parts() const {
    return !names_[kTrain].empty() && (!names_[kValidation].empty() || !names_[kTest].empty());
  }
  [[nodiscard]] bool has(Split split) const { return !names_[split].empty(); }

  [[nodiscard]] std::vector<Destination> destinations(ClassDepth depth, std::vector<std::string>& notes) {
    // If "train" is the only folder, it is the whole data set.
    if (!has_parts() && share_first() && split_of(first_part(paths_[used()]))) strip();
    if (!has_parts()) refuse_lone_part();
    std::map<std::string, std::int64_t, std::less<>> left_out;
    std::vector<Destination> result(paths_.size());
    for (std::size_t d = 0; d < paths_.size(); ++d) {
      if (counts_[d] == 0) continue;
      std::string_view path = paths_[d];
      Destination& destination = result[d];
      destination.split = kTrain;
      if (has_parts()) {
        destination.split = split_of(first_part(path));
        if (!destination.split) left_out[std::string(first_part(path))] += counts_[d];
        path = after_first(path);
      }
      if (!destination.split) continue;
      destination.class_name = std::string(depth == ClassDepth::top ? first_part(path) : path);
      if (destination.class_name.empty()) fail_without_class(d);
    }
    for (const auto& [folder, count] : left_out)
      notes.push_back(fmt::format("left out: {} images in '{}', which is not one of train, val and test",
                                  count, folder.empty() ? "." : folder));
    return result;
  }

 private:
  [[nodiscard]] std::size_t used() const {
    return static_cast<std::size_t>(
        std::find_if(counts_.begin(), counts_.end(), [](auto n) { return n > 0; }) - counts_.begin());
  }

  /// Whether all images are below one folder, but not all directly in it.
  [[nodiscard]] bool share_first() const {
    const auto first = first_part(paths_[used()]);
    bool deeper = false;
    for (std::size_t d = 0; d < paths_.size(); ++d) {
      if (counts_[d] == 0) continue;
      if (first_part(paths_[d]) != first) return false;
      deeper = deeper || !after_first(paths_[d]).empty();
    }
    return deeper;
  }

  void strip() {
    for (auto& path : paths_) path = after_first(path);
  }

  void name_split(Split split, std::string_view name) {
    if (names_[split].empty()) names_[split] = name;
    if (names_[split] != name)
      base::fail(ErrorKind::usage,
                 "data '{}': it has both '{}' and '{}', which name the same part; give the folder that "
                 "holds the classes, or rename one",
                 spec_, names_[split], name);
  }

  /// Refuses "train" beside a misspelt "tests": both would be read as classes, with train/cat and tests/cat.
  /// A folder "train" that contains images directly is a class (of vehicles).
  void refuse_lone_part() const {
    std::string_view part, other;
    for (std::size_t d = 0; d < paths_.size(); ++d) {
      if (counts_[d] == 0) continue;
      const auto first = first_part(paths_[d]);
      if (part.empty() && split_of(first) && !after_first(paths_[d]).empty()) part = first;
    }
    if (part.empty()) return;
    for (std::size_t d = 0; d < paths_.size(); ++d)
      if (counts_[d] > 0 && first_part(paths_[d]) != part) other = first_part(paths_[d]);
    if (other.empty()) return;
    base::fail(
        ErrorKind::data,
        "data '{}': the folder '{}' is a part of the set, but '{}' is beside it and there is no {} folder, "
        "so it is not clear whether their subfolders are classes; name the parts train, val and test",
        spec_, part, other, has(kTrain) ? "validation or test" : "training");
  }

  [[noreturn]] void fail_without_class(std::size_t directory) const {
    std::size_t image = 0;
    while (listing_.directory(image) != directory) ++image;
    base::fail(ErrorKind::data,
               "data '{}': {} lies in no class folder ({} in all); the folder that an image lies in "
               "names its class: DIR/train/CLASS/IMAGE.jpg or DIR/CLASS/IMAGE.jpg",
               spec_, listing_.path(image), counts_[directory]);
  }

  const std::string& spec_;
  const ImageListing& listing_;
  std::vector<std::int64_t> counts_;     ///< [directory]: images in it
  std::vector<std::string_view> paths_;  ///< [directory]
  std::array<std::string, kSplits> names_;
};

void require_known_class(const std::string& spec, const std::vector<std::string>& classes,
                         const std::string& name, const std::string& directory) {
  if (!std::binary_search(classes.begin(), classes.end(), name))
    base::fail(
        ErrorKind::data,
        "data '{}': the class '{}' of '{}' is not among the {} classes to train on; every class of the "
        "validation and test sets must have training images",
        spec, name, directory, classes.size());
}

void cut_test(Arranged& arranged, double test_part) {
  const Cut cut = stratified_cut(arranged.train.labels, test_part, CutFor::test);
  ArrangedPart rest;
  const auto move = [&](const std::vector<std::int64_t>& from, ArrangedPart& to) {
    for (const auto index : from) {
      to.images.push_back(arranged.train.images[static_cast<std::size_t>(index)]);
      to.labels.push_back(arranged.train.labels[static_cast<std::size_t>(index)]);
    }
  };
  move(cut.rest, rest);
  move(cut.part, arranged.test);
  arranged.notes.push_back(fmt::format(
      "no test folder: {} of {} images are the test set, {:g} of every class, the same ones for every seed",
      arranged.test.images.size(), arranged.train.images.size(), test_part));
  arranged.train = std::move(rest);
}

}  // namespace

std::uint32_t ImageListing::add_directory(std::string path) {
  directories_.push_back(std::move(path));
  return static_cast<std::uint32_t>(directories_.size() - 1);
}

void ImageListing::add_image(std::uint32_t directory, std::string_view name) {
  base::expects(directory < directories_.size() && images_.size() < UINT32_MAX,
                "an image lies in a directory");
  images_.push_back({names_.size(), directory});
  names_ += name;
  names_ += '\0';
}

void ImageListing::shrink() {
  directories_.shrink_to_fit();
  images_.shrink_to_fit();
  names_.shrink_to_fit();
}

std::string ImageListing::path(std::size_t image) const {
  const std::string& directory = directories_[images_[image].directory];
  return (directory.empty() ? "" : directory + "/") + (names_.c_str() + images_[image].name_at);
}

std::int64_t ImageListing::bytes() const {
  std::size_t total = images_.capacity() * sizeof(Image) + names_.capacity();
  for (const auto& path : directories_) total += sizeof path + path.capacity();
  return static_cast<std::int64_t>(total);
}

bool is_image_name(std::string_view name) {
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || name.front() == '.')
    return false;  // "._a.jpg" is not an image
  const std::string ending = base::lower_case(name.substr(dot));
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png" || ending == ".ppm";
}

Arranged arrange(const std::string& spec, const ImageListing& listing, ClassDepth depth, double test_part) {
  if (listing.size() == 0)
    base::fail(ErrorKind::data,
               "data '{}': there is no file that ends in .jpg, .jpeg, .png or .ppm; give the folder that "
               "holds train/ and test/, or a folder for each class",
               spec);
  Arranged arranged;
  Folders folders(spec, listing);
  const auto destinations = folders.destinations(depth, arranged.notes);

  for (const auto& destination : destinations)
    if (destination.split == kTrain) arranged.class_names.push_back(destination.class_name);
  std::sort(arranged.class_names.begin(), arranged.class_names.end());
  arranged.class_names.erase(std::unique(arranged.class_names.begin(), arranged.class_names.end()),
                             arranged.class_names.end());
  if (arranged.class_names.size() < 2)
    base::fail(
        ErrorKind::data,
        "data '{}': all images lie in one class folder ('{}'), but a classifier needs at least two classes; "
        "give the folder above",
        spec, arranged.class_names.empty() ? "" : arranged.class_names.front());

  std::vector<std::int32_t> labels(destinations.size());
  for (std::size_t d = 0; d < destinations.size(); ++d) {
    if (!destinations[d].split) continue;
    require_known_class(spec, arranged.class_names, destinations[d].class_name, listing.directories()[d]);
    labels[d] =
        static_cast<std::int32_t>(std::lower_bound(arranged.class_names.begin(), arranged.class_names.end(),
                                                   destinations[d].class_name) -
                                  arranged.class_names.begin());
  }
  ArrangedPart* const parts[kSplits] = {&arranged.train, &arranged.validation, &arranged.test};
  for (std::size_t i = 0; i < listing.size(); ++i) {
    const auto directory = listing.directory(i);
    if (!destinations[directory].split) continue;
    ArrangedPart& part = *parts[*destinations[directory].split];
    part.images.push_back(static_cast<std::uint32_t>(i));
    part.labels.push_back(labels[directory]);
  }
  if (folders.has_parts() && !folders.has(kTest)) {
    std::swap(arranged.test, arranged.validation);
    arranged.notes.push_back("no test folder: the validation folder is the test set");
  }
  arranged.has_parts = folders.has_parts();
  if (!arranged.has_parts) cut_test(arranged, test_part);
  if (arranged.test.images.empty())
    base::fail(ErrorKind::data,
               "data '{}': no class of the {} images is large enough to hold images back for testing; add "
               "images, or a folder test/",
               spec, listing.size());
  return arranged;
}

}  // namespace paceline::data
