#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/archive.h"
#include "data/file_bytes.h"
#include "data/formats/arrays.h"
#include "data/formats/formats.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using base::ErrorKind;

constexpr std::int64_t kMostArraySide = 4096;
constexpr std::string_view kNumpyMagic = "\x93NUMPY";

/// Reads the header of a .npy file, a dictionary as Python prints it: {'descr': '<u2', 'fortran_order':
/// False, 'shape': (3, 4), }.
class HeaderReader {
 public:
  HeaderReader(const std::string& where, std::string_view text) : where_(where), rest_(text) {}

  /// Returns whether the values are in Fortran's order.
  bool read(NpyArray& array) {
    bool is_fortran = false;
    bool has_type = false, has_order = false, has_shape = false;
    require("{");
    while (!take("}")) {
      const auto key = quoted();
      require(":");
      if (key == "descr" && !has_type) {
        has_type = true;
        read_type(array);
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        is_fortran = take("True");
        if (!is_fortran) require("False");
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        read_shape(array.shape);
      } else {
        fail(fmt::format("the key '{}'", base::visible(key.substr(0, 40))));
      }
      if (!take(",") && !rest_.starts_with('}')) fail("no comma behind a value");
    }
    if (!has_type || !has_order || !has_shape) fail("not all of descr, fortran_order and shape");
    skip_blanks();
    if (!rest_.empty()) fail("text behind its end");
    return is_fortran;
  }

 private:
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size())); }
  bool take(std::string_view text) {
    skip_blanks();
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    skip_blanks();
    return true;
  }
  void require(std::string_view text) {
    if (!take(text)) fail(fmt::format("no '{}' where one is needed", text));
  }
  std::string_view quoted() {
    require("'");
    const auto end = rest_.find('\'');
    if (end == std::string_view::npos) fail("a quote that is not closed");
    const auto text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    skip_blanks();
    return text;
  }

  void read_type(NpyArray& array) {
    if (rest_.starts_with('['))
      base::fail(ErrorKind::data, "{}: has fields of several types; save each as an array of its own",
                 where_);
    const auto type = quoted();
    if (type.find('O') != std::string_view::npos)
      base::fail(
          ErrorKind::data,
          "{}: holds Python objects ('{}'), which are pickled, and reading a pickle can call any function; save "
          "an array of numbers (array.astype('uint8'), labels.astype('int64'))",
          where_, base::visible(type.substr(0, 20)));
    const bool is_known = type.size() == 3 &&
                          std::string_view("<>|").find(type[0]) != std::string_view::npos &&
                          std::string_view("uifb").find(type[1]) != std::string_view::npos &&
                          std::string_view("1248").find(type[2]) != std::string_view::npos;
    if (!is_known)
      base::fail(
          ErrorKind::data,
          "{}: has values of the type '{}', but whole numbers are read; save it so: array.astype('uint8')",
          where_, base::visible(type.substr(0, 20)));
    array.is_big_endian = type[0] == '>';
    array.kind = type[1];
    array.bytes = type[2] - '0';
  }

  void read_shape(std::vector<std::int64_t>& shape) {
    require("(");
    while (!take(")")) {
      const auto extent = base::take_number<std::int64_t>(rest_);
      if (!extent || *extent < 0 || shape.size() >= 8) fail("an extent that is no whole number");
      shape.push_back(*extent);
      if (!take(",") && !rest_.starts_with(')')) fail("no comma behind an extent");
    }
  }

  [[noreturn]] void fail(const std::string& what) const {
    base::fail(
        ErrorKind::data,
        "{}: the header of a .npy file is {{'descr': TYPE, 'fortran_order': False, 'shape': (N, ...)}}, but "
        "this one has {}; it is damaged: fetch or write the file again",
        where_, what);
  }

  const std::string& where_;
  std::string_view rest_;
};

std::string shape_of(const NpyArray& array) { return fmt::format("({})", fmt::join(array.shape, ", ")); }

/// A value of a whole-number array.
std::int64_t value_of(const NpyArray& array, std::size_t index) {
  const auto width = static_cast<std::size_t>(array.bytes);
  auto value = number_at(array.values, index * width, width, array.is_big_endian);
  const bool is_negative = array.kind == 'i' && (value >> (8 * width - 1) & 1) != 0;
  if (is_negative && width < 8) value |= ~std::uint64_t{0} << (8 * width);
  return static_cast<std::int64_t>(value);
}

[[noreturn]] void refuse_zip(const fs::path& path, const std::string& reason) {
  base::fail(
      ErrorKind::data,
      "{}: the zip archive that numpy.savez() writes is damaged or cut short ({}); fetch or write the file again",
      path.string(), base::visible(reason));
}

using Arrays = std::map<std::string, std::vector<std::uint8_t>>;

/// The contents of each NAME.npy in `wanted`; `others`: the names of the rest.
Arrays read_members(const fs::path& path, std::span<const std::string> wanted,
                    std::vector<std::string>& others) {
  constexpr std::int64_t kMostPacked = 1032;  // to 1, of deflate
  const auto file = FileBytes::map(path);
  const auto bytes = file.bytes();
  if (as_chars(bytes).starts_with(kNumpyMagic))
    base::fail(ErrorKind::data,
               "{}: is one array (.npy), but images and labels are several; write them into one file: "
               "numpy.savez('set.npz', train_images=..., train_labels=..., test_images=..., test_labels=...)",
               path.string());
  const auto zip = read_archive(ArchiveForm::zip, bytes);
  Arrays arrays;
  ArchiveMember member;
  auto next = ArchiveReader::Next::end;
  while ((next = zip->next(member)) == ArchiveReader::Next::member) {
    if (member.is_doubtful) refuse_zip(path, zip->reason());
    auto name = member.path;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    if (std::ranges::find(wanted, name) == wanted.end()) {
      others.push_back(name);
      continue;
    }
    if (member.bytes < 0 || member.bytes / kMostPacked > static_cast<std::int64_t>(bytes.size()))
      refuse_zip(path, "a length that cannot be true");
    std::vector<std::uint8_t> contents(static_cast<std::size_t>(member.bytes));
    if (!zip->read_all(contents)) refuse_zip(path, zip->reason());
    if (!arrays.emplace(name, std::move(contents)).second)
      base::fail(ErrorKind::data, "{}: holds {} twice; write the file again", path.string(), name);
  }
  if (next != ArchiveReader::Next::end) refuse_zip(path, zip->reason());
  file.require_read();
  return arrays;
}

/// Images [N, H, W] or [N, H, W, C].
void read_images(const Spec& spec, const NpyArray& array, ArrayPart& part) {
  const auto rank = array.shape.size();
  const bool is_first = rank == 4 && (array.shape[1] == 1 || array.shape[1] == 3) && array.shape[3] > 3;
  const auto channels = rank == 4 ? array.shape[3] : 1;
  if (rank < 3 || rank > 4 || is_first || (channels != 1 && channels != 3))
    base::fail(
        ErrorKind::data,
        "{}: images have the shape (images, height, width) or (images, height, width, channels) with 1 or 3 "
        "channels, but this has {}{}",
        part.where, shape_of(array),
        is_first    ? "; move the channels to the end: array.transpose(0, 2, 3, 1)"
        : rank == 5 ? "; volumes are not read"
        : rank == 4 ? "; leave out what is no colour: array[..., :3]"
                    : "; give the images their rows: array.reshape(-1, height, width)");
  const auto height = array.shape[1], width = array.shape[2];
  if (std::min(height, width) < 1 || std::max(height, width) > kMostArraySide)
    base::fail(ErrorKind::data, "{}: its images are {}x{}, but a side is 1 to {} pixels; check the array",
               part.where, height, width, kMostArraySide);
  part.format = {.height = static_cast<int>(height),
                 .width = static_cast<int>(width),
                 .channels = static_cast<int>(channels)};
  if (array.kind == 'u' && array.bytes == 1) {
    part.pixels.assign(array.values.begin(), array.values.end());
    return;
  }
  const auto range = range_option(spec);
  if (array.kind != 'u' || array.bytes != 2)
    base::fail(
        ErrorKind::data,
        "{}: pixels are bytes (uint8), or of 16 bits (uint16) with range=, but these have the type {}{}; write "
        "them as bytes: {}",
        part.where, array.kind, 8 * array.bytes,
        array.kind == 'f' ? "(array * 255).round().astype('uint8') where 1 is white"
                          : "array.astype('uint8')");
  if (!range)
    base::fail(
        ErrorKind::data,
        "{}: its pixels are of 16 bits, of which 8 are used; say which: range=0:4095 (these values become 0 and "
        "255), or range=own (each image's smallest and largest value)",
        part.where);
  const auto bytes = static_cast<std::size_t>(part.format.bytes());
  std::vector<std::uint16_t> values(bytes);
  part.pixels.resize(array.values.size() / 2);
  for (std::size_t i = 0; i < part.pixels.size(); i += bytes) {
    for (std::size_t v = 0; v < bytes; ++v) values[v] = static_cast<std::uint16_t>(value_of(array, i + v));
    scale_to_8_bits(values, *range, std::span(part.pixels).subspan(i, bytes));
  }
}

/// Labels [N] or [N, 1], or a row [N, K] with a single 1.
std::vector<std::int64_t> read_labels(const std::string& where, const NpyArray& array) {
  const auto rank = array.shape.size();
  if (rank < 1 || rank > 2 || array.kind == 'f')
    base::fail(
        ErrorKind::data,
        "{}: labels are whole numbers of the shape (images) or (images, 1), but these have the type {}{} and the "
        "shape {}; write them so: labels.astype('int64')",
        where, array.kind, 8 * array.bytes, shape_of(array));
  const auto count = static_cast<std::size_t>(array.shape[0]);
  const auto columns = rank == 1 ? std::size_t{1} : static_cast<std::size_t>(array.shape[1]);
  std::vector<std::int64_t> labels(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (columns == 1) {
      labels[i] = value_of(array, i);
      continue;
    }
    std::size_t ones = 0, others = 0;
    for (std::size_t c = 0; c < columns; ++c) {
      const auto value = value_of(array, i * columns + c);
      if (value == 1) labels[i] = static_cast<std::int64_t>(c);
      ones += value == 1 ? 1 : 0;
      others += value != 0 && value != 1 ? 1 : 0;
    }
    if (ones != 1 || others != 0)
      base::fail(
          ErrorKind::data,
          "{}: has {} numbers for each image, of which one is 1 and the others are 0, but row {} (from 0) has {} "
          "of 1 and {} others: an image of several classes, or of none, cannot be learned here; choose one label "
          "an image",
          where, columns, i, ones, others);
  }
  return labels;
}

}  // namespace

NpyArray parse_npy(const std::string& where, std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kBegin = 10;
  if (bytes.size() < kBegin || !as_chars(bytes).starts_with(kNumpyMagic))
    base::fail(ErrorKind::data,
               "{}: is no array of NumPy (it does not begin with \\x93NUMPY); write the file again", where);
  const int version = bytes[6];
  const std::size_t begin = version == 1 ? kBegin : kBegin + 2;
  if (version < 1 || version > 3 || bytes[7] != 0 || bytes.size() < begin)
    base::fail(ErrorKind::data,
               "{}: is of version {}.{} of the .npy format, but 1.0 to 3.0 are read; write it again", where,
               version, bytes[7]);
  const std::size_t length = number_at(bytes, 8, version == 1 ? 2 : 4);
  if (length > bytes.size() - begin)
    base::fail(ErrorKind::data, "{}: its header has {} bytes, but {} follow; it is cut short: fetch it again",
               where, length, bytes.size() - begin);
  NpyArray array;
  const bool is_fortran = HeaderReader(where, as_chars(bytes.subspan(begin, length))).read(array);
  array.values = bytes.subspan(begin + length);
  std::size_t needed = static_cast<std::size_t>(array.bytes);
  for (const auto extent : array.shape)
    if (__builtin_mul_overflow(needed, static_cast<std::size_t>(extent), &needed))
      base::fail(ErrorKind::data, "{}: its shape {} has more values than there can be; fetch the file again",
                 where, shape_of(array));
  if (needed != array.values.size())
    base::fail(
        ErrorKind::data,
        "{}: its shape {} needs {} bytes, but {} follow the header; it is cut short or damaged: fetch it again",
        where, shape_of(array), needed, array.values.size());
  if (is_fortran && array.shape.size() > 1)
    base::fail(ErrorKind::data,
               "{}: is stored column by column; save it row by row: numpy.ascontiguousarray(array)", where);
  return array;
}

ArrayParts read_npz(const Spec& spec, const fs::path& path) {
  struct Names {
    const char *images, *labels;
    std::optional<ArrayPart> ArrayParts::*part;
  };
  constexpr Names kNames[] = {{"train_images", "train_labels", &ArrayParts::train},
                              {"val_images", "val_labels", &ArrayParts::validation},
                              {"test_images", "test_labels", &ArrayParts::test},
                              {"x_train", "y_train", &ArrayParts::train},
                              {"x_val", "y_val", &ArrayParts::validation},
                              {"x_test", "y_test", &ArrayParts::test}};
  std::vector<std::string> wanted, others;
  for (const auto& one : kNames) wanted.insert(wanted.end(), {one.images, one.labels});
  auto arrays = read_members(path, wanted, others);
  ArrayParts parts;
  for (const auto& [images, labels, part] : kNames) {
    const bool has_images = arrays.contains(images), has_labels = arrays.contains(labels);
    if (!has_images && !has_labels) continue;
    if (has_images != has_labels)
      base::fail(ErrorKind::data, "{}: holds {} without {}; write both, or neither", path.string(),
                 has_images ? images : labels, has_images ? labels : images);
    if (parts.*part)
      base::fail(ErrorKind::data, "{}: holds a part twice, the second time as {}; leave one out",
                 path.string(), images);
    const auto name_of = [&](const char* array) { return fmt::format("{}: {}", path.string(), array); };
    ArrayPart made{.where = name_of(images), .format = {}, .pixels = {}};
    const auto array = parse_npy(made.where, arrays[images]);
    read_images(spec, array, made);
    made.where_labels = name_of(labels);
    made.labels = read_labels(name_of(labels), parse_npy(name_of(labels), arrays[labels]));
    if (static_cast<std::int64_t>(made.labels.size()) != array.shape[0])
      base::fail(ErrorKind::data, "{}: has {} labels, but {} has {} images; each image has one label",
                 name_of(labels), made.labels.size(), images, array.shape[0]);
    arrays.erase(images);  // its bytes are in the part
    parts.*part = std::move(made);
  }
  if (!parts.train)
    base::fail(ErrorKind::data,
               "{}: there is no train_images with train_labels, and no x_train with y_train{}; write them: "
               "numpy.savez('set.npz', train_images=..., train_labels=..., test_images=..., test_labels=...)",
               path.string(),
               others.empty()
                   ? std::string(" (it is empty)")
                   : fmt::format(" (it holds {})",
                                 base::visible(fmt::format("{}", fmt::join(others, ", ")).substr(0, 200))));
  parts.left_out = std::move(others);
  return parts;
}

Source open_npz(const Spec& spec) {
  const fs::path path = spec.directory;
  if (!base::is_file(path))
    base::fail(ErrorKind::data, "data '{}': there is no file {}; give a .npz file, as of MedMNIST", spec.text,
               path.string());
  Source source = source_of_arrays(spec, read_npz(spec, path));
  const auto format = source.train->format();
  source.description =
      fmt::format("arrays of {} classes: {} training images, {}{} test images, {}x{}x{}", source.classes(),
                  source.train->size(),
                  source.validation ? fmt::format("{} validation images, ", source.validation->size()) : "",
                  source.test->size(), format.height, format.width, format.channels);
  // Those of MedMNIST's own programs; mean= and std= replace them.
  source.mean.assign(static_cast<std::size_t>(format.channels), 0.5f);
  source.stddev = source.mean;
  return source;
}

}  // namespace paceline::data
