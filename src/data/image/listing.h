#pragma once

/// Sorts image paths into training, validation and test, and into classes.
///
/// It uses names only, so folders and archives follow the same rules.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::data {

/// Images by directory and name.
///
/// Cost     16 bytes an image and its name; directories are stored once
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

/// Whether a file of this name counts as an image: .jpg, .jpeg, .png or .ppm in any case. Its first bytes
/// determine its kind.
[[nodiscard]] bool is_image_name(std::string_view name);

enum class ClassDepth {
  leaf,  ///< the folder that holds the image, with its path: "animals/cat"
  top,   ///< the first folder below train, val or test: "animals"
};

struct ArrangedPart {
  std::vector<std::uint32_t> images;  ///< in the listing, ordered by path
  std::vector<std::int32_t> labels;   ///< of each
};

struct Arranged {
  std::vector<std::string> class_names;  ///< sorted; a label is an index into it
  ArrangedPart train, validation, test;  ///< validation may be empty
  bool has_parts = false;                ///< the parts are folders; no test set was cut off
  std::vector<std::string> notes;        ///< how the folders were interpreted, where that was ambiguous
};

/// The rules, in this order:
/// - A common first folder of all images is skipped ("fruits-360/Training/..."), unless it is the only one.
/// - train or training, val, valid or validation, test or testing (in any case) are the parts. Other folders
///   beside them are left out, with a note. Without a test folder, val is the test set.
/// - Otherwise all images are one set, and `test_part` of every class becomes the test set (split.h).
///
/// Errors   Error(data): no images; images outside of class folders; a single class; a class in validation
///          or test that training lacks. Error(usage): both "train" and "Training" exist
[[nodiscard]] Arranged arrange(const std::string& spec, const ImageListing& listing, ClassDepth depth,
                               double test_part);

}  // namespace paceline::data
