#pragma once

/// Assigns images to training, validation and test sets and to classes, by their paths.
///
/// It uses names only, so folders and archives follow the same rules.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace paceline::data {

/// A list of image paths, stored as directory and name.
///
/// Cost     16 bytes an image, and its name; a directory is stored once, by its caller's add_directory()
class ImageListing {
 public:
  /// Paths are relative, with '/' as separator; "" is the top. Returns the directory's number.
  std::uint32_t add_directory(std::string path);
  void add_image(std::uint32_t directory, std::string_view name);
  void shrink();  ///< frees spare capacity; call when nothing more is added

  [[nodiscard]] std::size_t size() const { return images_.size(); }
  [[nodiscard]] const std::vector<std::string>& directories() const { return directories_; }
  [[nodiscard]] std::uint32_t directory(std::size_t image) const { return images_[image].directory; }
  [[nodiscard]] std::string path(std::size_t image) const;
  /// Valid until the next add_image().
  [[nodiscard]] std::string_view name(std::size_t image) const {
    return names_.c_str() + images_[image].name_at;
  }
  [[nodiscard]] std::int64_t bytes() const;  ///< memory that the list takes

 private:
  struct Image {
    std::uint64_t name_at;  ///< in names_, ended by a zero
    std::uint32_t directory;
  };
  std::vector<std::string> directories_;
  std::vector<Image> images_;
  std::string names_;
};

/// "cat" of "animals/cat", and "animals"; "" if there is no folder.
[[nodiscard]] std::string_view last_part(std::string_view path);
[[nodiscard]] std::string_view before_last(std::string_view path);

/// How names of image files end, for messages.
inline constexpr const char* kImageEndings = ".jpg, .jpeg, .png, .ppm, .webp, .tif, .tiff, .gif or .bmp";

/// Whether a file of this name counts as an image: kImageEndings in any case. Only the name is
/// read; the decoder later finds the format from the first bytes, whatever the extension.
[[nodiscard]] bool is_image_name(std::string_view name);

// The parts of a set, by the names of folders (folder_names.cc).

enum Split : std::size_t { kTrain, kValidation, kTest, kSplits };

/// "training_set" is training, and "set" is left of it.
struct PartName {
  Split split;
  std::string rest;
};
/// What a folder is called, if one of the words of its name is that of a part: train or training, val, valid
/// or validation, test or testing.
[[nodiscard]] std::optional<PartName> part_name(std::string_view folder);
/// The part that a folder is, whatever stands beside it: its name says nothing else ("Test", "train_images",
/// "valset", "test1").
[[nodiscard]] std::optional<Split> split_of(std::string_view folder);
/// Whether a folder beside one of a part is hardly a class: "images", "extra", "unlabelled", "my_train".
[[nodiscard]] bool is_no_class_beside_a_part(std::string_view folder);
/// "test_" of "test_1", "sample_" of "sample_a": what several folders share that are numbered; "" if it has
/// no number.
[[nodiscard]] std::string_view series_of(std::string_view folder);

/// Refuses classes that hardly are some: of one name below several folders, as "a/cat", "a/dog", "b/cat",
/// "b/dog". Notes what is less of a sign.
///
/// Requires  sorted names
/// Errors    Error(data) with the folders, and what to write
void check_class_names(const std::string& spec, const std::vector<std::string>& classes, bool has_parts,
                       std::vector<std::string>& notes);

/// Pairs of names that differ in case, in blanks, '_', '-' and '.', or in a plural's s: perhaps one class.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> alike_names(
    const std::vector<std::string>& classes);

// Files that are no images by their names (passed_over.cc).

/// Those of one folder.
struct PassedOver {
  std::string folder;  ///< as in ImageListing::directories()
  std::int64_t files = 0;
  std::string ending;  ///< of most of them, in lower case: ".webp"; "" if they have none
};
/// ".webp", in lower case; "" if the name has none.
[[nodiscard]] std::string ending_of(std::string_view name);
/// Counts those of one folder.
class PassedOverCount {
 public:
  void add(std::string_view name) { ++files_of_[ending_of(name)]; }
  [[nodiscard]] std::int64_t files() const;
  [[nodiscard]] PassedOver in(std::string folder) const;

 private:
  std::map<std::string, std::int64_t> files_of_;  ///< by ending
};
/// Refuses folders that would be classes, or parts of a class, had they not lost all their files by the
/// files' endings. Notes folders that lost most of them.
///
/// Errors   Error(data) with the folders, the endings, and what to do
[[nodiscard]] std::vector<std::string> check_passed_over(const std::string& spec, const ImageListing& listing,
                                                         std::span<const PassedOver> passed);

enum class ClassDepth {
  unsaid,  ///< as leaf, but refused where folders are ambiguous
  leaf,    ///< the folder that holds the image, with its path: "animals/cat"
  top,     ///< the first folder below train, val or test, or below the top where there are none: "animals"
};

struct ArrangedPart {
  std::vector<std::uint32_t> images;  ///< in the listing, ordered by path
  std::vector<std::int32_t> labels;   ///< of each
};

struct Arranged {
  std::vector<std::string> class_names;  ///< sorted; a label is an index into it
  ArrangedPart train, validation, test;  ///< validation may be empty
  bool has_parts = false;          ///< train and test came as folders; false: the test set was split off
  std::vector<std::string> notes;  ///< how the folders were interpreted, where that was ambiguous
};

/// Makes the validation part the test set where there is no test part; without either holds back `test_part`
/// of every class. Notes say so.
///
/// Errors   Error(data): no class has an image to spare
void finish_parts(const std::string& spec, Arranged& arranged, double test_part);

/// The rules, in this order:
/// - A first folder that all paths share is skipped ("fruits-360/Training/..."), unless no class folder would
///   be left below it.
/// - The folders that split_of() knows are the parts; where there are none, those that differ in the name of
///   the part alone ("asl_train" and "asl_test"). Other folders beside them are left out, with a note.
///   Without a test folder, val is the test set and there is no validation set.
/// - Otherwise all images are one set, and the fraction `test_part` of every class becomes the test set
///   (data/spec.h).
///
/// `spec`: what the user gave as --data, for messages.
///
/// With ClassDepth::unsaid, folders are refused that read as classes although they hardly are: the same names
/// below several folders, the name of a part inside a class, a part whose images have no class folders.
///
/// Errors   Error(data): no images; images outside of class folders; a single class; a class in validation
///          or test that training lacks; an ambiguity. Error(usage): two folders claim one part, as "train"
///          and "Training"
[[nodiscard]] Arranged arrange(const std::string& spec, const ImageListing& listing, ClassDepth depth,
                               double test_part);

}  // namespace paceline::data
