#include "train/checkpoint/safetensors.h"

#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace paceline::train {
namespace {

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
constexpr std::array<DTypeName, 7> kDTypes = {{{DType::f64, "F64"},
                                               {DType::f32, "F32"},
                                               {DType::f16, "F16"},
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

[[noreturn]] void refuse_twice(const std::string& path, std::string_view name) {
  fail(ErrorKind::data, "{}: the header has the name '{}' twice; the file is damaged: write it again", path,
       name);
}

struct TensorEntry {
  Tensor tensor;
  std::uint64_t begin = 0, end = 0;
};

/// Takes the header from the JSON parser piece by piece, so that a million names cost no tree of a million
/// objects. Depth 1 holds the names, depth 2 what is said of one, depth 3 its lists of numbers.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(const std::string& path, std::vector<TensorEntry>& entries, Metadata& metadata)
      : path_(path), entries_(entries), metadata_(metadata) {}

  bool null() override { return take_other("null"); }
  bool boolean(bool) override { return take_other("boolean"); }
  bool number_integer(number_integer_t) override { return take_other("number"); }
  bool number_float(number_float_t, const string_t&) override { return take_other("number"); }
  bool binary(binary_t&) override { return take_other("binary"); }

  bool number_unsigned(number_unsigned_t value) override {
    constexpr auto kMost = static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max());
    if (list_ == nullptr || depth_ != kListDepth || value > kMost) return take_other("number");
    (*list_)->push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(string_t& text) override {
    if (depth_ != kEntryDepth || (!is_metadata() && field_ != "dtype")) return take_other("string");
    (is_metadata() ? metadata_[field_] : dtype_.emplace()) = std::move(text);
    return true;
  }

  bool key(string_t& key) override {
    if (depth_ == 1) {
      name_ = std::move(key);
      if (is_metadata() && std::exchange(has_metadata_, true)) refuse_twice(path_, name_);
    } else if (depth_ == kEntryDepth) {
      field_ = std::move(key);
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (depth_ > 1) take_other("object");
    if (++depth_ == kEntryDepth) dtype_ = {}, shape_ = {}, offsets_ = {};
    return true;
  }

  bool end_object() override {
    if (depth_-- == kEntryDepth && !is_metadata()) entries_.push_back(finished_entry());
    return true;
  }

  bool start_array(std::size_t) override {
    const bool is_list = !is_metadata() && (field_ == "shape" || field_ == "data_offsets");
    if (depth_ != kEntryDepth || !is_list) {
      take_other("array");
    } else {
      list_ = field_ == "shape" ? &shape_ : &offsets_;
      list_->emplace();
    }
    ++depth_;
    return true;
  }

  bool end_array() override {
    if (--depth_ == kEntryDepth) list_ = nullptr;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) override {
    fail(ErrorKind::data,
         "{}: the header is not valid JSON ({}); the file is damaged or not a safetensors file", path_,
         error.what());
  }

 private:
  static constexpr int kEntryDepth = 2, kListDepth = 3;
  using List = std::optional<std::vector<std::int64_t>>;

  [[nodiscard]] bool is_metadata() const { return name_ == kMetadataKey; }

  /// A value of a kind that does not belong where it stands. What this program does not know of a tensor is
  /// passed over.
  bool take_other(const char* kind) {
    if (depth_ == 0)
      fail(ErrorKind::data,
           "{}: the header is a JSON {}, not an object of tensors; this is not a safetensors file", path_,
           kind);
    if (is_metadata() && depth_ == 1)
      fail(ErrorKind::data, "{}: {} is not a JSON object of strings; write it again", path_, kMetadataKey);
    if (is_metadata())
      fail(ErrorKind::data, "{}: {} must hold strings only, but '{}' is a JSON {}; write it again", path_,
           kMetadataKey, field_, kind);
    if (depth_ == 1) refuse_without("object of them");
    if (list_ != nullptr) refuse_without(fmt::format("{} of whole numbers", field_));
    return true;
  }

  [[noreturn]] void refuse(const std::string& rule) const {
    fail(ErrorKind::data, "{}: tensor '{}'{}", path_, name_, rule);
  }

  [[noreturn]] void refuse_without(std::string_view part) const {
    refuse(fmt::format(
        " needs a dtype, a shape and two data_offsets, whole numbers all, but has no {}; the file is damaged: "
        "write it again",
        part));
  }

  TensorEntry finished_entry() {
    if (!dtype_) refuse_without("text as dtype");
    if (!shape_) refuse_without("list as shape");
    if (!offsets_ || offsets_->size() != 2) refuse_without("two data_offsets");
    const auto dtype = dtype_named(*dtype_);
    if (!dtype)
      refuse(fmt::format(
          " has the dtype {}, but only F64, F32, F16, BF16, I64, I32, U8 are known; convert it first",
          *dtype_));
    const auto begin = static_cast<std::uint64_t>((*offsets_)[0]),
               end = static_cast<std::uint64_t>((*offsets_)[1]);
    const auto needed = bytes_of(*dtype, *shape_);
    if (end < begin || needed != end - begin)
      refuse(fmt::format(
          ", {} {}, needs {} bytes, but its data_offsets are {} and {}; the file is damaged: write it again",
          *dtype_, text_of_shape(*shape_), needed ? std::to_string(*needed) : "more than 2^63", begin, end));
    return {{.name = name_, .dtype = *dtype, .shape = std::move(*shape_)}, begin, end};
  }

  const std::string& path_;
  std::vector<TensorEntry>& entries_;
  Metadata& metadata_;
  int depth_ = 0;
  bool has_metadata_ = false;
  std::string name_, field_;          ///< of depth 1 and of depth 2
  std::optional<std::string> dtype_;  ///< of the tensor that is read, as its shape and offsets
  List shape_, offsets_;
  List* list_ = nullptr;  ///< the one that is read
};

}  // namespace

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
  std::vector<TensorEntry> entries;
  HeaderReader reader(where, entries, metadata_);
  nlohmann::json::sax_parse(sections.header, &reader);
  const auto place = [](const TensorEntry& entry) { return std::pair(entry.begin, entry.end); };
  if (!std::ranges::is_sorted(entries, {}, place)) std::ranges::stable_sort(entries, {}, place);
  tensors_.reserve(entries.size());
  by_name_.reserve(entries.size());
  for (auto& entry : entries) {
    const auto& name = tensors_.emplace_back(std::move(entry.tensor)).name;
    if (!by_name_.emplace(name, tensors_.size() - 1).second) refuse_twice(where, name);
  }
  std::uint64_t covered = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto begin = entries[i].begin, end = entries[i].end;
    if (begin != covered)
      fail(ErrorKind::data,
           "{}: tensors must lie one after the other without a gap, but '{}' begins at byte {} of the data "
           "and the one before it ends at {}; the file is damaged: write it again",
           where, tensors_[i].name, begin, covered);
    if (end > sections.data.size())
      fail(ErrorKind::data,
           "{}: tensor '{}' ends at byte {} of the data, but the file has {} bytes of data; it is truncated: "
           "copy or write it again",
           where, tensors_[i].name, end, sections.data.size());
    tensors_[i].bytes = sections.data.subspan(begin, end - begin);
    covered = end;
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
    const auto near = base::nearest_name(name, base::texts_of(tensors_, &Tensor::name));
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
