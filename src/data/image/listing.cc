#include "data/image/listing.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <iterator>
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

/// "thumbnails", as a program that shows pictures keeps smaller copies of a folder's images inside of it.
bool is_of_thumbnails(std::string_view path) {
  const auto name = base::lower_case(last_part(path));
  return name == "thumbnails" || name == "thumbnail" || name == "thumbs";
}

/// Where the images of a directory belong: to a split and a class, or nowhere.
struct Destination {
  std::optional<Split> split;
  std::string class_name;
  std::string_view path;  ///< below the part
};

/// The directories that contain images, without the first folders that all have in common.
class Folders {
 public:
  Folders(const std::string& spec, const ImageListing& listing) : spec_(spec), listing_(listing) {
    counts_.resize(listing.directories().size());
    for (std::size_t i = 0; i < listing.size(); ++i) ++counts_[listing.directory(i)];
    paths_.assign(listing.directories().begin(), listing.directories().end());
    while (const auto shared = shared_first(kSplits, false)) {
      strip(kSplits);
      if (split_of(*shared)) break;  // "train" alone is the whole set
    }
    for (const auto& first : firsts())
      if (const auto split = split_of(first)) splits_[first] = *split;
    if (!has_parts()) find_pairs();
    leave_out_numbered();
    std::array<std::string, kSplits> names;
    for (const auto& [name, split] : splits_)
      if (has_parts()) name_split(names[split], name);
    for (const Split split : {kTrain, kValidation, kTest}) strip_repeated(split);
  }

  [[nodiscard]] bool has_parts() const { return has(kTrain) && (has(kValidation) || has(kTest)); }
  [[nodiscard]] bool has(Split split) const {
    return std::ranges::any_of(splits_, [&](const auto& one) { return one.second == split; });
  }

  [[nodiscard]] std::vector<Destination> destinations(ClassDepth depth, std::vector<std::string>& notes) {
    if (!has_parts()) {
      refuse_lone_part();
      if (depth == ClassDepth::unsaid) refuse_part_as_class(notes);
    }
    std::map<std::string, std::int64_t, std::less<>> left_out;
    std::vector<std::size_t> without_class, copies;
    std::vector<Destination> result(paths_.size());
    for (std::size_t d = 0; d < paths_.size(); ++d) {
      if (counts_[d] == 0) continue;
      if (depth != ClassDepth::leaf && is_copy_of_above(d)) {
        copies.push_back(d);
        continue;
      }
      std::string_view path = paths_[d];
      Destination& destination = result[d];
      destination.split = kTrain;
      if (has_parts()) {
        destination.split = split_at(d);
        if (!destination.split) left_out[std::string(first_part(path))] += counts_[d];
        path = after_first(path);
      }
      if (!destination.split) continue;
      destination.path = path;
      destination.class_name = std::string(depth == ClassDepth::top ? first_part(path) : path);
      if (path.empty()) without_class.push_back(d);
    }
    if (!without_class.empty()) fail_without_class(without_class);
    if (!copies.empty())
      notes.push_back(
          fmt::format("left out: the images of {} inside of classes ('{}'), whose names say that they are "
                      "smaller copies; with classes=leaf each is a class",
                      base::counted(copies.size(), "folder"), listing_.directories()[copies.front()]));
    for (const auto& [folder, count] : left_out)
      notes.push_back(fmt::format("left out: {} in '{}', which is not one of train, val and test",
                                  base::counted(count, "image"), folder.empty() ? "." : folder));
    return result;
  }

 private:
  /// Whether directory `d` lies as thumbnails in another with images: a copy of a test image would be trained
  /// on.
  [[nodiscard]] bool is_copy_of_above(std::size_t d) const {
    const auto& all = listing_.directories();
    if (!is_of_thumbnails(all[d])) return false;
    const auto above = std::ranges::find(all, before_last(all[d]));
    return above != all.end() && counts_[static_cast<std::size_t>(above - all.begin())] > 0;
  }

  /// The first folders of all paths, in order.
  [[nodiscard]] std::vector<std::string> firsts() const {
    std::vector<std::string> names;
    for (std::size_t d = 0; d < paths_.size(); ++d)
      if (counts_[d] > 0) names.emplace_back(first_part(paths_[d]));
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }

  [[nodiscard]] std::optional<Split> split_at(std::size_t d) const {
    const auto found = splits_.find(first_part(paths_[d]));
    return found == splits_.end() ? std::nullopt : std::optional(found->second);
  }

  /// "test2" beside "test" is another set than that which is used, and left out as others are.
  void leave_out_numbered() {
    const auto is_numbered = [](const std::string& name) { return name.back() >= '0' && name.back() <= '9'; };
    std::array<bool, kSplits> has_plain{};
    for (const auto& [name, split] : splits_) has_plain[split] = has_plain[split] || !is_numbered(name);
    std::erase_if(splits_, [&](const auto& one) { return has_plain[one.second] && is_numbered(one.first); });
  }

  /// "asl_alphabet_train" beside "asl_alphabet_test": names that differ in the part alone.
  void find_pairs() {
    std::map<std::string, std::map<std::string, Split>> by_rest;
    for (const auto& first : firsts())
      if (const auto name = part_name(first)) by_rest[name->rest][first] = name->split;
    for (const auto& [rest, names] : by_rest) {
      const auto is = [](Split split) { return [split](const auto& one) { return one.second == split; }; };
      if (std::ranges::any_of(names, is(kTrain)) && !std::ranges::all_of(names, is(kTrain)))
        splits_.insert(names.begin(), names.end());
    }
  }

  /// Whether directory `d` has images, and is of `part`; kSplits: of any or none.
  [[nodiscard]] bool is_of(std::size_t d, Split part) const {
    return counts_[d] > 0 && (part == kSplits || split_at(d) == part);
  }
  /// Its path, below the folder of `part` if one is given.
  [[nodiscard]] std::string_view below(std::size_t d, Split part) const {
    return part == kSplits ? paths_[d] : after_first(paths_[d]);
  }

  /// The first folder of all paths of `part`, if they share it and not all of them end there.
  [[nodiscard]] std::optional<std::string_view> shared_first(Split part, bool all_deeper) const {
    std::optional<std::string_view> shared;
    bool any = false, all = true;
    for (std::size_t d = 0; d < paths_.size(); ++d) {
      if (!is_of(d, part)) continue;
      const auto path = below(d, part), first = first_part(path);
      if (shared && *shared != first) return std::nullopt;
      shared = first;
      if (after_first(path).empty())
        all = false;
      else
        any = true;
    }
    return (all_deeper ? any && all : any) ? shared : std::nullopt;
  }

  void strip(Split part) {
    for (std::size_t d = 0; d < paths_.size(); ++d)
      if (is_of(d, part)) paths_[d] = after_first(paths_[d]);
  }

  /// "train/train/cat", as some archives unpack: the folder of a part inside itself.
  void strip_repeated(Split part) {
    for (auto shared = shared_first(part, true); shared; shared = shared_first(part, true)) {
      const bool is_itself = std::ranges::any_of(splits_, [&](const auto& one) {
        return one.second == part && (one.first == *shared || split_of(*shared) == part);
      });
      if (!is_itself || !has_parts()) return;
      const std::string name(*shared);
      strip(part);  // of the outer one: the inner one names the part from here on
      splits_[name] = part;
    }
  }

  void name_split(std::string& known, std::string_view name) const {
    if (known.empty()) known = name;
    if (known != name)
      base::fail(ErrorKind::usage,
                 "data '{}': it has both '{}' and '{}', which name the same part; give the folder that "
                 "holds the classes, or rename one",
                 spec_, known, name);
  }

  /// Refuses "train" beside a misspelt "tests": both would be read as classes, with train/cat and tests/cat.
  void refuse_lone_part() const {
    std::string_view part, other;
    for (std::size_t d = 0; d < paths_.size(); ++d)
      if (part.empty() && counts_[d] > 0 && split_at(d) && !after_first(paths_[d]).empty())
        part = first_part(paths_[d]);
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

  /// Refuses a part whose images lie in it directly, beside another folder: a network would learn from which
  /// folder an image came. "train" is also a vehicle, and "valid" the opposite of "invalid".
  void refuse_part_as_class(std::vector<std::string>& notes) const {
    const auto all = firsts();
    if (are_numbered_classes(all)) {
      notes.push_back(fmt::format("the folder '{}' is read as a class, as '{}' is", splits_.begin()->first,
                                  all.front() == splits_.begin()->first ? all.back() : all.front()));
      return;
    }
    for (const auto& [name, split] : splits_) {
      std::vector<std::string> others, no_classes;
      for (const auto& other : all)
        if (other != name) (is_no_class_beside_a_part(other) ? no_classes : others).push_back(other);
      const auto word = base::lower_case(name);
      const bool may_be_class =
          word == "train" || (word == "valid" && std::ranges::find(others, "invalid", [](const auto& other) {
                                                   return base::lower_case(other);
                                                 }) != others.end());
      if (all.size() == 1) continue;
      if (may_be_class && no_classes.empty()) {
        notes.push_back(fmt::format("the folder '{}' is read as a class, as '{}' is", name, others.front()));
        continue;
      }
      base::fail(
          ErrorKind::data,
          "data '{}': the folder '{}' is called as a part of a set, but images lie in it directly, beside "
          "'{}'; put them into class folders ({}/CLASS/IMAGE.jpg), move the folder away if they have no labels, "
          "or add classes=leaf if it is a class",
          spec_, name, no_classes.empty() ? others.front() : no_classes.front(), name);
    }
  }

  /// Whether folders as "test_1" and "test_2" are classes: each folder holds images directly, and those that
  /// are called as a part, or as no class, are numbered. A training set in pieces is called so too.
  [[nodiscard]] bool are_numbered_classes(const std::vector<std::string>& names) const {
    std::map<std::string_view, int> series;
    for (const auto& name : names) ++series[series_of(name)];
    for (std::size_t d = 0; d < paths_.size(); ++d)
      if (counts_[d] > 0 && (paths_[d].empty() || !after_first(paths_[d]).empty())) return false;
    return has(kTest) && !has(kTrain) && !has(kValidation) &&
           std::ranges::all_of(names, [&](const auto& name) {
             const auto begin = series_of(name);
             return !is_no_class_beside_a_part(name) || (!begin.empty() && series[begin] > 1);
           });
  }

  [[noreturn]] void fail_without_class(const std::vector<std::size_t>& directories) const {
    // Of training first: without it nothing else is of use.
    const auto trained = std::ranges::find_if(
        directories, [&](std::size_t d) { return !has_parts() || split_at(d) == kTrain; });
    const auto directory = trained == directories.end() ? directories.front() : *trained;
    std::size_t image = 0;
    while (listing_.directory(image) != directory) ++image;
    std::string others, advice;
    for (const auto d : directories) {
      if (d != directory) others += fmt::format(", and {} in '{}'", counts_[d], paths_[d]);
      if (has_parts() && split_at(d) != kTrain)
        advice += fmt::format("; if the images of '{}' have no labels, move that folder away", paths_[d]);
    }
    base::fail(ErrorKind::data,
               "data '{}': {} lies in no class folder ({} in all){}; the folder that an image lies in "
               "names its class: DIR/train/CLASS/IMAGE.jpg or DIR/CLASS/IMAGE.jpg{}",
               spec_, listing_.path(image), counts_[directory], others, advice);
  }

  const std::string& spec_;
  const ImageListing& listing_;
  std::vector<std::int64_t> counts_;                  ///< [directory]: images in it
  std::vector<std::string_view> paths_;               ///< [directory]
  std::map<std::string, Split, std::less<>> splits_;  ///< by the first folder of a path
};

/// Refuses parts inside the classes, "cat/train" and "cat/test".
void refuse_parts_inside(const std::string& spec, const std::vector<Destination>& destinations) {
  std::map<Split, std::string_view> inside;
  for (const auto& destination : destinations)
    for (auto rest = after_first(destination.path); !rest.empty(); rest = after_first(rest))
      if (const auto split = split_of(first_part(rest))) inside.emplace(*split, destination.path);
  if (inside.size() < 2) return;
  base::fail(ErrorKind::data,
             "data '{}': parts lie inside of classes, as '{}' and '{}'; put the parts above: "
             "DIR/train/CLASS/IMAGE.jpg, DIR/test/CLASS/IMAGE.jpg",
             spec, inside.begin()->second, std::next(inside.begin())->second);
}

/// The place of `name` among the classes to train on.
std::int32_t label_of_class(const std::string& spec, const std::vector<std::string>& classes,
                            const std::string& name, const std::string& directory) {
  const auto found = std::ranges::lower_bound(classes, name);
  if (found == classes.end() || *found != name)
    base::fail(
        ErrorKind::data,
        "data '{}': the class '{}' of '{}' is not among the {} classes to train on; every class of the "
        "validation and test sets must have training images; if the images there have no labels, move them away",
        spec, name, directory, classes.size());
  return static_cast<std::int32_t>(found - classes.begin());
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
  const std::string ending = ending_of(name);
  constexpr std::string_view kEndings[]{".jpg", ".jpeg", ".png", ".ppm", ".webp",
                                        ".tif", ".tiff", ".gif", ".bmp"};
  return std::ranges::find(kEndings, ending) != std::end(kEndings);
}

Arranged arrange(const std::string& spec, const ImageListing& listing, ClassDepth depth, double test_part) {
  if (listing.size() == 0)
    base::fail(ErrorKind::data,
               "data '{}': there is no file that ends in {}; give the folder that "
               "holds train/ and test/, or a folder for each class",
               spec, kImageEndings);
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

  if (depth != ClassDepth::leaf) refuse_parts_inside(spec, destinations);
  if (depth == ClassDepth::unsaid)
    check_class_names(spec, arranged.class_names, folders.has_parts(), arranged.notes);

  std::vector<std::int32_t> labels(destinations.size());
  for (std::size_t d = 0; d < destinations.size(); ++d)
    if (destinations[d].split)
      labels[d] =
          label_of_class(spec, arranged.class_names, destinations[d].class_name, listing.directories()[d]);
  ArrangedPart* const parts[kSplits] = {&arranged.train, &arranged.validation, &arranged.test};
  for (std::size_t i = 0; i < listing.size(); ++i) {
    const auto directory = listing.directory(i);
    if (!destinations[directory].split) continue;
    ArrangedPart& part = *parts[*destinations[directory].split];
    part.images.push_back(static_cast<std::uint32_t>(i));
    part.labels.push_back(labels[directory]);
  }
  arranged.has_parts = folders.has_parts();
  finish_parts(spec, arranged, test_part);
  return arranged;
}

void finish_parts(const std::string& spec, Arranged& arranged, double test_part) {
  const auto images = arranged.train.images.size();
  if (arranged.test.images.empty() && !arranged.validation.images.empty()) {
    std::swap(arranged.test, arranged.validation);
    arranged.notes.emplace_back("no test folder: the validation folder is the test set");
  } else if (arranged.test.images.empty()) {
    cut_test(arranged, test_part);
    arranged.has_parts = false;
  }
  if (arranged.test.images.empty())
    base::fail(ErrorKind::data,
               "data '{}': no class of the {} images is large enough to hold images back for testing; add "
               "images, or a folder test/",
               spec, images);
}

}  // namespace paceline::data
