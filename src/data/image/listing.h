#pragma once

/// Paths of images, arranged: which belong to training, validation and test, and which class each shows.
///
/// Works on names alone, so a folder and an archive are understood alike.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::data {

/// Images by directory and name. Cost: 16 bytes an image and its name; directories are kept once.
class ImageListing {
 public:
  /// Paths are relative, with '/' between their parts; "" is the top. Returns the directory's number.
  std::uint32_t add_directory(std::string path);
  void add_image(std::uint32_t directory, std::string_view name);
  void shrink();  ///< gives back the memory that was taken ahead, when nothing more comes

  [[nodiscard]] std::size_t size() const { return images_.size(); }
  [[nodiscard]] const std::vector<std::string>& directories() const { return directories_; }
  [[nodiscard]] std::uint32_t directory(std::size_t image) const { return images_[image].directory; }
  [[nodiscard]] std::string path(std::size_t image) const;
  [[nodiscard]] std::string_view name(std::size_t image) const {
    return names_.c_str() + images_[image].name_at;
  }
  [[nodiscard]] std::int64_t bytes() const;

 private:
  struct Image {
    std::uint64_t name_at;  ///< in names_, ended by a zero
    std::uint32_t directory;
  };
  std::vector<std::string> directories_;
  std::vector<Image> images_;
  std::string names_;
};

/// Whether a file of this name is taken for an image: .jpg, .jpeg, .png or .ppm in any case. What it holds is
/// told by its first bytes.
[[nodiscard]] bool is_image_name(std::string_view name);

enum class ClassDepth {
  leaf,  ///< the folder that holds the image, with the path that leads to it: "animals/cat"
  top,   ///< the first folder below the split: "animals"
};

struct ArrangedPart {
  std::vector<std::uint32_t> images;  ///< in the listing, ordered by path
  std::vector<std::int32_t> labels;   ///< of each
};

struct Arranged {
  std::vector<std::string> class_names;  ///< sorted; a label is a place in it
  ArrangedPart train, validation, test;  ///< validation may be empty
  bool has_parts = false;                ///< these are folders, and nothing was cut off for the test
  std::vector<std::string> notes;        ///< how the folders were understood, where there was a choice
};

/// The rules, in this order:
/// - A common first folder of all images is passed over ("fruits-360/Training/..."), unless it is the only
///   one.
/// - train or training, beside val, valid or validation, and test or testing (in any case): these are the
///   parts; other folders beside them are left out, with a note. Without a test folder, val is the test set.
/// - Otherwise the whole is one set, and `test_part` of every class is cut from it as test set (split.h).
///
/// Errors   Error(data): no images; images outside of any class folder; a single class; a class in validation
///          or test that training does not have. Error(usage): both "train" and "Training" are there
[[nodiscard]] Arranged arrange(const std::string& spec, const ImageListing& listing, ClassDepth depth,
                               double test_part);

}  // namespace paceline::data
