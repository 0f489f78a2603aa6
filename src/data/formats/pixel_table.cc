#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/file_bytes.h"
#include "data/formats/arrays.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using base::ErrorKind;

/// Images below this side are no images of digits, but a table of something else.
constexpr std::size_t kLeastTableSide = 8, kMostTableSide = 1024;

bool has_names(std::string_view line) {
  if (line.starts_with('"')) line.remove_prefix(1);
  return line.starts_with("label");
}

/// The side of the images whose lines are as `line`; 0: they are no squares.
std::size_t side_in(std::string_view line) {
  const auto pixels = static_cast<std::size_t>(std::ranges::count(line, ','));
  const auto side = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(pixels))));
  return side >= kLeastTableSide && side <= kMostTableSide && side * side == pixels ? side : 0;
}

}  // namespace

bool is_pixel_table(const fs::path& path) {
  if (!base::is_file(path)) return false;
  try {
    const auto file = FileBytes::map(path);
    auto text = as_chars(file.bytes()).substr(0, kMostTableSide * kMostTableSide * 4);
    const auto line = take_line(text);
    file.require_read();
    return side_in(line) > 0 &&
           (has_names(line) || line.find_first_not_of("0123456789,") == std::string_view::npos);
  } catch (const base::Error&) {
    return false;
  }
}

ArrayPart read_pixel_table(const fs::path& path) {
  const auto file = FileBytes::map(path);
  auto text = as_chars(file.bytes());
  if (text.empty()) base::fail(ErrorKind::data, "{}: is empty; fetch it again", path.string());
  std::size_t number = 1;
  auto first = text;
  const auto head = take_line(first);
  if (has_names(head)) {
    text = first;
    ++number;
  }
  const auto side = side_in(head);
  if (side == 0)
    base::fail(
        ErrorKind::data,
        "{}: a table of pixels has a label and as many grey values as a square has pixels in each line, but the "
        "first has {} commas; it is another table: check the file",
        path.string(), std::ranges::count(head, ','));
  ArrayPart part{.where = path.string(),
                 .format = {.height = static_cast<int>(side), .width = static_cast<int>(side), .channels = 1},
                 .pixels = {},
                 .where_labels = path.string()};
  part.pixels.reserve(
      std::min(text.size() / 2, static_cast<std::size_t>(std::ranges::count(text, '\n') + 1) * side * side));
  for (; !text.empty(); ++number) {
    const auto line = take_line(text);
    if (line.empty() && text.empty()) break;
    const char* at = line.data();
    const char* const end = line.data() + line.size();
    for (std::size_t column = 0; column <= side * side; ++column) {
      int value = -1;
      const auto [stop, error] = std::from_chars(at, end, value);
      const bool is_last = column == side * side;
      if (error != std::errc{} || value < 0 || value > 255 ||
          (is_last ? stop != end : stop == end || *stop != ','))
        base::fail(
            ErrorKind::data,
            "{}: line {}, column {}: a label and {} grey values from 0 to 255 are needed, but there is '{}'; the "
            "file is cut short or damaged: fetch it again",
            path.string(), number, column + 1, side * side,
            base::visible(
                std::string_view(at, std::min<std::size_t>(20, static_cast<std::size_t>(end - at)))));
      if (column == 0)
        part.labels.push_back(value);
      else
        part.pixels.push_back(static_cast<std::uint8_t>(value));
      at = stop + (is_last ? 0 : 1);
    }
  }
  file.require_read();
  return part;
}

}  // namespace paceline::data
