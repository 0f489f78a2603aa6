#include "train/checkpoint/safetensors.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/text.h"

namespace paceline::train {
namespace {

using base::kSha256Digits;

/// Position of the digits in a header; nullopt if the key is missing or occurs twice. JSON escapes quotes
/// inside a text, so only a real metadata key is found.
std::optional<std::size_t> digits_in(std::string_view header) {
  const std::string key = fmt::format("\"{}\":\"", kChecksumKey);
  const auto found = header.find(key);
  if (found == std::string_view::npos || header.find(key, found + 1) != std::string_view::npos)
    return std::nullopt;
  const auto begin = found + key.size();
  const auto end = begin + kSha256Digits;
  if (end >= header.size() || header[end] != '"') return std::nullopt;
  return begin;
}

/// Computes the sum of a whole file in pieces, with zeros in place of the digits in the header.
class Sum {
 public:
  explicit Sum(std::string_view header) {
    const std::uint64_t length = header.size();
    sum_.update(std::as_bytes(std::span(&length, 1)));
    sum_.update(std::as_bytes(std::span(header)));
  }
  void data(std::span<const std::byte> bytes) { sum_.update(bytes); }
  [[nodiscard]] std::string digits() { return sum_.digits(); }

 private:
  base::Sha256 sum_;
};

/// A file that is read from begin to end.
class Input {
 public:
  /// O_NONBLOCK: opening a FIFO must not block, so that it can be refused.
  explicit Input(const std::filesystem::path& path)
      : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0) fail(errno);
    struct stat found {};
    if (::fstat(descriptor_, &found) == 0 && S_ISREG(found.st_mode)) {
      size_ = static_cast<std::uint64_t>(found.st_size);
      return;
    }
    ::close(descriptor_);
    base::fail(base::ErrorKind::data, "{}: is not a regular file; give a checkpoint", path.string());
  }
  ~Input() { ::close(descriptor_); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// Fills `dst` as far as the file reaches.
  std::size_t read(std::span<std::byte> dst) {
    std::size_t filled = 0;
    while (filled < dst.size()) {
      const ssize_t count = ::read(descriptor_, dst.data() + filled, dst.size() - filled);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail(errno);
      if (count == 0) break;
      filled += static_cast<std::size_t>(count);
    }
    return filled;
  }

 private:
  [[noreturn]] void fail(int error) const {
    base::fail(base::ErrorKind::data, "{}: cannot be read: {}", path_.string(), std::strerror(error));
  }

  const std::filesystem::path& path_;
  const int descriptor_;
  std::uint64_t size_ = 0;
};

constexpr const char* kOfAnotherModel =
    "it was written for another model or other images; give --model and --data as they were then";

using base::DType;
using base::ErrorKind;
using base::fail;
using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little,
              "safetensors is little-endian; so must this machine be");

constexpr std::string_view kMetadataKey = "__metadata__";

struct DTypeName {
  DType dtype;
  std::string_view name;
};
constexpr std::array<DTypeName, 6> kDTypes = {{{DType::f64, "F64"},
                                               {DType::f32, "F32"},
                                               {DType::bf16, "BF16"},
                                               {DType::i64, "I64"},
                                               {DType::i32, "I32"},
                                               {DType::u8, "U8"}}};

std::string_view name_of(DType dtype) {
  for (const auto& row : kDTypes)
    if (row.dtype == dtype) return row.name;
  return "";
}

std::optional<DType> dtype_named(const std::string& name) {
  for (const auto& row : kDTypes)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

std::string text_of_shape(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// Bytes of an array; nullopt if the product exceeds 63 bits.
std::optional<std::uint64_t> bytes_of(DType dtype, std::span<const std::int64_t> shape) {
  std::uint64_t product = base::size_of(dtype);
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  for (const auto extent : shape) {
    if (product > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) /
                      static_cast<std::uint64_t>(extent))
      return std::nullopt;
    product *= static_cast<std::uint64_t>(extent);
  }
  return product;
}

/// The JSON header, padded with spaces so that the data begins at a multiple of 8.
std::string header_of(std::span<const Tensor> tensors, const Metadata& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[std::string(kMetadataKey)] = metadata;
  std::uint64_t offset = 0;
  for (const auto& tensor : tensors) {
    base::expects(tensor.name != kMetadataKey && !header.contains(tensor.name),
                  "tensors have names of their own");
    base::expects(bytes_of(tensor.dtype, tensor.shape) == tensor.bytes.size(),
                  "bytes are as many as dtype and shape say");
    const std::uint64_t end = offset + tensor.bytes.size();
    header[tensor.name] = {
        {"dtype", name_of(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  // Metadata may hold a path or a command line in another encoding; invalid bytes become replacement
  // characters.
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

/// The sections of a file: the JSON header and the arrays.
struct Sections {
  std::string_view header;
  std::span<const std::byte> data;
};

Sections split(const std::string& path, std::span<const std::byte> file) {
  if (file.size() < kSafetensorsLengthBytes)
    fail(ErrorKind::data,
         "{}: a safetensors file begins with 8 bytes of header length, but this one has {} bytes in all; it "
         "is truncated or of another format",
         path, file.size());
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), kSafetensorsLengthBytes);
  const auto rest = file.subspan(kSafetensorsLengthBytes);
  if (length > rest.size() || length > kSafetensorsMostHeaderBytes)
    fail(ErrorKind::data,
         "{}: the header should have {} bytes, but {} bytes follow (and a header has at most {}); the file "
         "is truncated or not a safetensors file",
         path, length, rest.size(), kSafetensorsMostHeaderBytes);
  const auto header = rest.first(length);
  return {{reinterpret_cast<const char*>(header.data()), header.size()}, rest.subspan(length)};
}

/// The header of a file. Its objects find a key without comparing all, as those that keep their order would.
using Parsed = nlohmann::json;

/// Builds the header, and keeps the names in its order. (With a callback the parser would look at all members
/// of an object again at the end of each.)
class HeaderParser : public nlohmann::detail::json_sax_dom_parser<Parsed> {
 public:
  using Base = nlohmann::detail::json_sax_dom_parser<Parsed>;
  HeaderParser(Parsed& header, std::vector<std::string>& names) : Base(header), names_(names) {}

  bool start_object(std::size_t size) {
    ++depth_;
    return Base::start_object(size);
  }
  bool end_object() {
    --depth_;
    return Base::end_object();
  }
  bool start_array(std::size_t size) {
    ++depth_;
    return Base::start_array(size);
  }
  bool end_array() {
    --depth_;
    return Base::end_array();
  }
  bool key(std::string& name) {
    if (depth_ == 1) names_.push_back(name);
    return Base::key(name);
  }

 private:
  std::vector<std::string>& names_;
  int depth_ = 0;
};

/// `names` takes the keys of the header, in its order.
Parsed parse_header(const std::string& path, std::string_view text, std::vector<std::string>& names) {
  Parsed header;
  try {
    HeaderParser parser(header, names);
    Parsed::sax_parse(text, &parser);
  } catch (const Parsed::exception& error) {
    fail(ErrorKind::data,
         "{}: the header is not valid JSON ({}); the file is damaged or not a safetensors "
         "file",
         path, error.what());
  }
  if (!header.is_object())
    fail(ErrorKind::data,
         "{}: the header is a JSON {}, not an object of tensors; this is not a safetensors file", path,
         header.type_name());
  // The parser silently keeps the last of two equal keys.
  if (header.size() != names.size()) {
    std::set<std::string_view> seen;
    const auto repeated =
        std::ranges::find_if(names, [&](const std::string& name) { return !seen.insert(name).second; });
    fail(ErrorKind::data, "{}: the header has the name '{}' twice; the file is damaged: write it again", path,
         *repeated);
  }
  return header;
}

Metadata parse_metadata(const std::string& path, const Parsed& json) {
  Metadata metadata;
  if (!json.is_object())
    fail(ErrorKind::data, "{}: {} is not a JSON object of strings; write it again", path, kMetadataKey);
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string())
      fail(ErrorKind::data, "{}: {} must hold strings only, but '{}' is a JSON {}; write it again", path,
           kMetadataKey, key, value.type_name());
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

/// A list of non-negative integers that fit 63 bits; nullopt if it is anything else.
std::optional<std::vector<std::int64_t>> whole_numbers(const Parsed& json, const char* key) {
  if (!json.is_object() || !json.contains(key) || !json[key].is_array()) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const auto& value : json[key]) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
      return std::nullopt;
    numbers.push_back(value.get<std::int64_t>());
  }
  return numbers;
}

struct TensorEntry {
  Tensor tensor;
  std::uint64_t begin = 0, end = 0;
};

TensorEntry parse_entry(const std::string& path, const std::string& name, const Parsed& json) {
  const auto shape = whole_numbers(json, "shape");
  const auto offsets = whole_numbers(json, "data_offsets");
  if (!shape || !offsets || offsets->size() != 2 || !json.contains("dtype") || !json["dtype"].is_string())
    fail(ErrorKind::data,
         "{}: tensor '{}' needs a dtype, a shape and two data_offsets, whole numbers all, but has {}; the "
         "file is damaged: write it again",
         path, name, json.dump(-1, ' ', false, Parsed::error_handler_t::replace).substr(0, 200));
  const auto dtype_name = json["dtype"].get<std::string>();
  const auto dtype = dtype_named(dtype_name);
  if (!dtype)
    fail(ErrorKind::data,
         "{}: tensor '{}' has the dtype {}, but only F64, F32, BF16, I64, I32, U8 are known; convert it "
         "first",
         path, name, dtype_name);
  TensorEntry entry{.tensor = {.name = name, .dtype = *dtype, .shape = *shape, .bytes = {}},
                    .begin = static_cast<std::uint64_t>((*offsets)[0]),
                    .end = static_cast<std::uint64_t>((*offsets)[1])};
  const auto needed = bytes_of(*dtype, *shape);
  if (entry.end < entry.begin || needed != entry.end - entry.begin)
    fail(ErrorKind::data,
         "{}: tensor '{}', {} {}, needs {} bytes, but its data_offsets are {} and {}; the file is damaged: "
         "write it again",
         path, name, dtype_name, text_of_shape(*shape), needed ? std::to_string(*needed) : "more than 2^63",
         entry.begin, entry.end);
  return entry;
}

}  // namespace

std::string checksum_placeholder() { return std::string(kSha256Digits, '0'); }

std::string with_checksum(std::string header, std::span<const std::span<const std::byte>> data) {
  const auto at = digits_in(header);
  base::expects(at && header.compare(*at, kSha256Digits, checksum_placeholder()) == 0,
                "the header has the placeholder of its checksum once");
  Sum sum(header);
  for (const auto& piece : data) sum.data(piece);
  return header.replace(*at, kSha256Digits, sum.digits());
}

Checksum check_checksum(const std::filesystem::path& path) {
  Input file(path);
  std::uint64_t length = 0;
  if (file.read(std::as_writable_bytes(std::span(&length, 1))) < kSafetensorsLengthBytes)
    return Checksum::absent;
  if (length > kSafetensorsMostHeaderBytes || length > file.size() - kSafetensorsLengthBytes)
    return Checksum::absent;
  std::string header(length, '\0');
  if (file.read(std::as_writable_bytes(std::span(header))) < length) return Checksum::absent;
  const auto at = digits_in(header);
  if (!at) return Checksum::absent;
  const std::string written = header.substr(*at, kSha256Digits);
  Sum sum(header.replace(*at, kSha256Digits, checksum_placeholder()));
  std::vector<std::byte> piece(std::min<std::uint64_t>(file.size(), std::uint64_t{1} << 20));
  while (const auto count = file.read(piece)) sum.data(std::span(piece).first(count));
  return sum.digits() == written ? Checksum::right : Checksum::wrong;
}

void write_safetensors(const std::filesystem::path& path, std::span<const Tensor> tensors,
                       const Metadata& metadata) {
  std::string header;
  if (const auto sum = metadata.find(std::string(kChecksumKey)); sum == metadata.end()) {
    header = header_of(tensors, metadata);
  } else {
    auto summed = metadata;
    summed[sum->first] = checksum_placeholder();
    std::vector<std::span<const std::byte>> data;
    for (const auto& tensor : tensors) data.push_back(tensor.bytes);
    header = with_checksum(header_of(tensors, summed), data);
  }
  base::write_file(path, [&](const base::Sink& sink) {
    const std::uint64_t length = header.size();
    sink(std::as_bytes(std::span(&length, 1)));
    sink(std::as_bytes(std::span(header)));
    for (const auto& tensor : tensors) sink(tensor.bytes);
  });
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : path_(path), file_(data::FileBytes::map(path)) {
  const std::string where = path.string();
  const Sections sections = split(where, std::as_bytes(file_.bytes()));
  file_.require_read();
  std::vector<std::string> names;
  const Parsed header = parse_header(where, sections.header, names);
  std::vector<TensorEntry> entries;
  for (const auto& name : names) {
    if (name == kMetadataKey)
      metadata_ = parse_metadata(where, header[name]);
    else
      entries.push_back(parse_entry(where, name, header[name]));
  }
  std::stable_sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t covered = 0;
  for (auto& [tensor, begin, end] : entries) {
    if (begin != covered)
      fail(ErrorKind::data,
           "{}: tensors must lie one after the other without a gap, but '{}' begins at byte {} of the data "
           "and the one before it ends at {}; the file is damaged: write it again",
           where, tensor.name, begin, covered);
    if (end > sections.data.size())
      fail(ErrorKind::data,
           "{}: tensor '{}' ends at byte {} of the data, but the file has {} bytes of data; it is truncated: "
           "copy or write it again",
           where, tensor.name, end, sections.data.size());
    tensor.bytes = sections.data.subspan(begin, end - begin);
    covered = end;
    by_name_.emplace(tensor.name, tensors_.size());
    tensors_.push_back(std::move(tensor));
  }
  if (covered != sections.data.size())
    fail(ErrorKind::data,
         "{}: its tensors end at byte {} of the data, but the file has {} bytes of data; it is damaged or "
         "was appended to: write it again",
         where, covered, sections.data.size());
}

const Tensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

void SafetensorsFile::copy_f32(std::string_view name, std::span<const std::int64_t> shape,
                               std::span<float> dst) const {
  const Tensor* tensor = find(name);
  if (tensor == nullptr) {
    std::vector<std::string> names;
    for (const auto& known : tensors_) names.push_back(known.name);
    const auto near = base::nearest_name(name, names);
    fail(ErrorKind::data, "{}: there is no tensor '{}' among its {}{}; {}", path_.string(), name,
         tensors_.size(), near ? fmt::format(" (the nearest is '{}')", *near) : "", kOfAnotherModel);
  }
  if (tensor->dtype != DType::f32 || !std::ranges::equal(tensor->shape, shape))
    fail(ErrorKind::data, "{}: tensor '{}' is {} {}, but F32 {} is expected; {}", path_.string(), name,
         name_of(tensor->dtype), text_of_shape(tensor->shape), text_of_shape(shape), kOfAnotherModel);
  base::expects(dst.size_bytes() == tensor->bytes.size(), "dst has room for the shape");
  if (!dst.empty()) std::memcpy(dst.data(), tensor->bytes.data(), dst.size_bytes());
  file_.require_read();
}

}  // namespace paceline::train
