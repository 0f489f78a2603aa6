#include "train/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace paceline::train {
namespace {

using base::DType;
using base::ErrorKind;
using base::fail;
using Json = nlohmann::ordered_json;

constexpr std::array kNames{
    std::pair{DType::f64, std::string_view("F64")},   std::pair{DType::f32, std::string_view("F32")},
    std::pair{DType::bf16, std::string_view("BF16")}, std::pair{DType::i64, std::string_view("I64")},
    std::pair{DType::i32, std::string_view("I32")},   std::pair{DType::u8, std::string_view("U8")},
};

std::string_view name_of(DType dtype) {
  return std::find_if(kNames.begin(), kNames.end(), [&](const auto& row) { return row.first == dtype; })
      ->second;
}

std::optional<DType> dtype_of(std::string_view name) {
  for (const auto& [dtype, text] : kNames)
    if (text == name) return dtype;
  return std::nullopt;
}

/// The elements of `shape`; nothing when the product overflows or a dimension is negative.
std::optional<std::uint64_t> elements_of(const std::vector<std::int64_t>& shape) {
  std::uint64_t elements = 1;
  for (const std::int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(elements, static_cast<std::uint64_t>(size), &elements))
      return std::nullopt;
  return elements;
}

/// One file's checks: every sentence begins with its path.
class Reader {
 public:
  Reader(std::string path, std::string_view bytes) : path_(std::move(path)), bytes_(bytes) {}

  void read(std::vector<TensorView>& tensors, Metadata& metadata) {
    const Json header = parse_header();
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__")
        read_metadata(entry, metadata);
      else
        tensors.push_back(read_tensor(name, entry));
    }
    std::sort(tensors.begin(), tensors.end(),
              [](const TensorView& a, const TensorView& b) { return a.bytes.data() < b.bytes.data(); });
    check_no_holes(tensors);
  }

 private:
  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::data, "{}: {}; the file is damaged or no safetensors file", path_,
         fmt::format(format, std::forward<Args>(args)...));
  }

  Json parse_header() {
    std::uint64_t length = 0;
    if (bytes_.size() < sizeof length)
      refuse("{} bytes are too few for the length of a header (8)", bytes_.size());
    std::memcpy(&length, bytes_.data(), sizeof length);
    if (length > bytes_.size() - sizeof length)
      refuse("the header should be {} bytes, and {} follow", length, bytes_.size() - sizeof length);
    const auto text = bytes_.substr(sizeof length, length);
    data_ = bytes_.substr(sizeof length + length);
    Json header = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!header.is_object()) refuse("the header is no JSON object");
    return header;
  }

  void read_metadata(const Json& entry, Metadata& metadata) const {
    if (!entry.is_object()) refuse("__metadata__ is no object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) refuse("__metadata__ '{}' is no text", key);
      metadata[key] = value.get<std::string>();
    }
  }

  TensorView read_tensor(const std::string& name, const Json& entry) const {
    if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
        !entry.contains("shape") || !entry.contains("data_offsets"))
      refuse("tensor '{}' lacks dtype, shape or data_offsets", name);
    TensorView tensor{.name = name};
    const auto dtype = dtype_of(entry["dtype"].get<std::string>());
    if (!dtype) refuse("tensor '{}' has the unknown dtype '{}'", name, entry["dtype"].get<std::string>());
    tensor.dtype = *dtype;
    tensor.shape = integers(name, entry["shape"]);
    const auto offsets = integers(name, entry["data_offsets"]);
    if (offsets.size() != 2 || offsets[0] < 0 || offsets[1] < offsets[0] ||
        static_cast<std::uint64_t>(offsets[1]) > data_.size())
      refuse("tensor '{}' has data_offsets outside the {} bytes of data", name, data_.size());
    const auto begin = static_cast<std::size_t>(offsets[0]), end = static_cast<std::size_t>(offsets[1]);
    const auto elements = elements_of(tensor.shape);
    if (!elements || *elements > data_.size() || *elements * base::size_of(*dtype) != end - begin)
      refuse("tensor '{}' has {} bytes, which its shape and dtype do not explain", name, end - begin);
    tensor.bytes = std::as_bytes(std::span(data_.substr(begin, end - begin)));
    return tensor;
  }

  std::vector<std::int64_t> integers(const std::string& name, const Json& list) const {
    std::vector<std::int64_t> values;
    if (!list.is_array()) refuse("tensor '{}' has a shape or data_offsets that is no list", name);
    for (const auto& value : list) {
      if (!value.is_number_integer())
        refuse("tensor '{}' has a shape or data_offsets that are no whole numbers", name);
      values.push_back(value.get<std::int64_t>());
    }
    return values;
  }

  void check_no_holes(const std::vector<TensorView>& tensors) const {
    const std::byte* expected = reinterpret_cast<const std::byte*>(data_.data());
    const std::byte* const end = expected + data_.size();
    for (const auto& tensor : tensors) {
      if (tensor.bytes.empty()) continue;
      if (tensor.bytes.data() != expected)
        refuse("tensor '{}' overlaps another or leaves a hole before it", tensor.name);
      expected += tensor.bytes.size();
    }
    if (expected != end) refuse("{} bytes at the end belong to no tensor", end - expected);
  }

  std::string path_;
  std::string_view bytes_;
  std::string_view data_;
};

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const Metadata& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const auto& tensor : tensors) {
    const auto elements = elements_of(tensor.shape);
    base::expects(elements && *elements * base::size_of(tensor.dtype) == tensor.bytes.size(),
                  "a tensor's bytes are those of its shape and dtype");
    base::expects(!header.contains(tensor.name), "a tensor's name is given once");
    const std::uint64_t end = offset + tensor.bytes.size();
    header[tensor.name] = {{"dtype", std::string(name_of(tensor.dtype))},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  base::write_file(path, [&](const base::Sink& sink) {
    sink(std::as_bytes(std::span(&length, 1)));
    sink(std::as_bytes(std::span(text)));
    for (const auto& tensor : tensors) sink(tensor.bytes);
  });
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : bytes_(base::read_file(path)) {
  Reader(path.string(), bytes_).read(tensors_, metadata_);
}

const TensorView* SafetensorsFile::find(const std::string& name) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                  [&](const TensorView& tensor) { return tensor.name == name; });
  return found == tensors_.end() ? nullptr : &*found;
}

}  // namespace paceline::train
