#include "train/checkpoint/torch_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"
#include "data/archive.h"
#include "data/formats/pickle.h"

namespace paceline::train {
namespace {

using base::DType;
using base::ErrorKind;
using data::ArchiveReader;
using data::Pickle;
using Kind = Pickle::Kind;
using Value = Pickle::Value;

constexpr int kDeepest = 8;               // dictionaries in dictionaries
constexpr std::size_t kMostExtents = 64;  // PyTorch's own limit
constexpr std::size_t kLongestTensorName = 1000;
constexpr const char* kSaveAlone =
    "save the weights alone in Python: torch.save(model.state_dict(), 'weights.pth')";

constexpr std::string_view kTensor = "torch._utils\n_rebuild_tensor_v2";
constexpr std::string_view kTypedTensor = "torch._tensor\n_rebuild_from_type_v2";
constexpr std::string_view kParameter = "torch._utils\n_rebuild_parameter";  // and .._with_state
constexpr std::string_view kDictionary = "collections\nOrderedDict";

/// What a file may name. Of the first line tensors are made; the others hold plain values beside the weights:
/// settings, counters, best results, the state of random numbers.
constexpr std::string_view kKnown =
    " collections.OrderedDict torch._utils._rebuild_tensor_v2 torch._utils._rebuild_parameter"
    " torch._utils._rebuild_parameter_with_state torch._tensor._rebuild_from_type_v2"
    " torch.Tensor torch.nn.parameter.Parameter torch.nn.parameter.Buffer torch.Size torch.device"
    " torch.float64 torch.float32 torch.float16 torch.bfloat16 torch.torch_version.TorchVersion"
    " numpy.dtype numpy.ndarray numpy.core.multiarray.scalar numpy._core.multiarray.scalar"
    " numpy.core.multiarray._reconstruct numpy._core.multiarray._reconstruct _codecs.encode"
    " collections.defaultdict collections.Counter argparse.Namespace types.SimpleNamespace"
    " pathlib.PosixPath datetime.datetime __builtin__.set __builtin__.list __builtin__.dict __builtin__.int"
    " __builtin__.float builtins.set builtins.list builtins.dict builtins.int builtins.float ";

/// The types of arrays. Those that are no weights count as whole numbers, and only their size matters.
struct StorageType {
  std::string_view name;
  DType dtype;
  std::uint64_t bytes;
};
constexpr std::array<StorageType, 10> kStorageTypes = {{{"torch\nFloatStorage", DType::f32, 4},
                                                        {"torch\nHalfStorage", DType::f16, 2},
                                                        {"torch\nBFloat16Storage", DType::bf16, 2},
                                                        {"torch\nDoubleStorage", DType::f64, 8},
                                                        {"torch\nLongStorage", DType::i64, 8},
                                                        {"torch\nIntStorage", DType::i32, 4},
                                                        {"torch\nShortStorage", DType::i32, 2},
                                                        {"torch\nCharStorage", DType::u8, 1},
                                                        {"torch\nByteStorage", DType::u8, 1},
                                                        {"torch\nBoolStorage", DType::u8, 1}}};

/// How files of other kinds begin, and what is said of them; {} is the file.
struct OtherKind {
  std::size_t at;
  std::string_view bytes;
  const char* sentence;
};
constexpr std::array<OtherKind, 9> kOtherKinds = {{
    {2, "\x8a\x0al\xfc\x9c\x46\xf9",
     "was written by PyTorch before 1.6, or as those did, and is not read; 'paceline_model.py MODULE:CALLABLE "
     "--state {}' converts it (docs/models.md)"},
    {257, "ustar", "is a tar archive; unpack it, or take weights of PyTorch 1.6 or later, or safetensors"},
    {0, "\x80",
     "is a Python pickle, but none of torch.save(); make its arrays tensors and write them in Python: "
     "torch.save({{name: torch.as_tensor(a) for name, a in arrays.items()}}, 'weights.pth')"},
    {0, "\x89HDF", "is an HDF5 file, as Keras and TensorFlow write; take weights of PyTorch, or safetensors"},
    {0, "\x93NUMPY", "is an array of NumPy; take weights of PyTorch, or safetensors"},
    {0, "\x1f\x8b", "is packed; unpack it first: gzip -d {}"},
    {0, "GGUF", "is a GGUF file; take weights of PyTorch, or safetensors"},
    {0, "version https://git-lfs", "is a pointer of Git LFS; fetch the file itself: git lfs pull"},
    {0, "<", "is a page of the web, as a failed download leaves; fetch the file again"},
}};

/// "torch._utils\n_rebuild" as Python writes it, fit to be printed.
std::string python_name(std::string_view name) {
  std::string text(name.substr(0, 200));
  std::ranges::replace(text, '\n', '.');
  return base::visible(text);
}

[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view rule) {
  base::fail(ErrorKind::data, "{}: {}", path.string(), rule);
}

[[noreturn]] void refuse_damaged(const std::filesystem::path& path, const std::string& reason) {
  base::fail(ErrorKind::data,
             "{}: the zip archive that torch.save() writes is damaged or cut short ({}); fetch or write the "
             "file again",
             path.string(), base::visible(reason));
}

/// Calls `each` with the name of every part, without the folder that all lie in, its size, and the archive.
void for_each_part(const std::filesystem::path& path, std::span<const std::uint8_t> bytes,
                   const std::function<void(const std::string&, std::uint64_t, ArchiveReader&)>& each) {
  const auto zip = data::read_archive(data::ArchiveForm::zip, bytes);
  data::ArchiveMember member;
  auto next = ArchiveReader::Next::end;
  while ((next = zip->next(member)) == ArchiveReader::Next::member) {
    if (member.path.empty() || !member.is_file) continue;
    if (member.bytes < 0) refuse_damaged(path, "a part without a length");
    each(member.path.substr(member.path.find('/') + 1), static_cast<std::uint64_t>(member.bytes), *zip);
  }
  if (next != ArchiveReader::Next::end) refuse_damaged(path, zip->reason());
}

/// The part that `zip` stands at.
///
/// Requires  the file is as long, so that a false size allocates no more
template <typename Bytes>
Bytes read_part(const std::filesystem::path& path, ArchiveReader& zip, std::uint64_t size) {
  Bytes bytes(static_cast<std::size_t>(size), {});
  if (!zip.read_all({reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()}))
    refuse_damaged(path, zip.reason());
  return bytes;
}

std::string_view name_called(const Pickle& pickle, const Value& value) {
  return value.kind == Kind::call ? pickle.at(value.members[0]).text : std::string_view();
}

/// The arguments of _rebuild_tensor_v2(), of which the value is made; or null.
const Value* tensor_arguments(const Pickle& pickle, const Value* value) {
  const auto argument = [&](std::size_t index) -> const Value* {
    const Value& arguments = pickle.at(value->members[1]);
    if (arguments.kind != Kind::tuple || arguments.members.size() <= index) return nullptr;
    return &pickle.at(arguments.members[index]);
  };
  for (int depth = 0; depth < kDeepest && value != nullptr; ++depth) {
    const std::string_view name = name_called(pickle, *value);
    if (name == kTensor) return &pickle.at(value->members[1]);
    // Of a class or with attributes: (function, class, its arguments, attributes).
    if (name == kTypedTensor) {
      const Value* const function = argument(0);
      return function != nullptr && function->kind == Kind::name && function->text == kTensor ? argument(2)
                                                                                              : nullptr;
    }
    value = name.starts_with(kParameter) ? argument(0) : nullptr;
  }
  return nullptr;
}

bool is_dictionary(const Pickle& pickle, const Value& value) {
  return value.kind == Kind::dictionary || name_called(pickle, value) == kDictionary;
}

void check_name(const std::filesystem::path& path, std::string_view name) {
  const std::string shown = python_name(name);
  if (shown.find(' ') == std::string::npos &&
      (kKnown.find(" " + shown + " ") != std::string_view::npos ||
       std::ranges::find(kStorageTypes, name, &StorageType::name) != kStorageTypes.end()))
    return;
  base::fail(ErrorKind::data,
             "{}: it holds {}, which only Python can make, and nothing of it was run; {}, or let "
             "paceline_model.py record the loaded model with its weights (docs/models.md)",
             path.string(), shown, kSaveAlone);
}

}  // namespace

/// Finds the tensors of a pickle, and where they lie.
class TorchFile::Collector {
 public:
  Collector(TorchFile& file, const Pickle& pickle) : file_(file), pickle_(pickle) {}

  /// Of a dictionary and of those that it holds. Keys that are no texts are an optimizer's numbers.
  void collect(const Value& dictionary, const std::string& prefix = "", int depth = 0) {
    const auto items = std::span(dictionary.members).subspan(dictionary.kind == Kind::call ? 2 : 0);
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      const Value &key = pickle_.at(items[i]), &value = pickle_.at(items[i + 1]);
      const Value* const arguments = tensor_arguments(pickle_, &value);
      const bool is_inside = is_dictionary(pickle_, value) && depth < kDeepest;
      if (key.kind != Kind::text || (arguments == nullptr && !is_inside)) continue;
      if (prefix.size() + key.text.size() > kLongestTensorName)
        pickle_.fail(key.offset, fmt::format("a name must have at most {} letters", kLongestTensorName));
      const std::string name = fmt::format("{}{}", prefix, key.text);
      if (arguments != nullptr)
        add(*arguments, name);
      else if (visited_.insert(&value).second)
        collect(value, name + ".", depth + 1);
    }
  }

 private:
  /// From what _rebuild_tensor_v2() is called with: (storage, offset, extents, strides, ...).
  void add(const Value& arguments, const std::string& name) {
    const auto part_of = [&](const Value& value, Kind kind, std::size_t least, std::size_t index) {
      if (pickle_.expect(value, kind, "a tensor has a storage, an offset, extents and strides")
              .members.size() < least)
        pickle_.fail(value.offset, "a tensor has a storage, an offset, extents and strides");
      return &pickle_.at(value.members[index]);
    };
    // ("storage", type, name, device, elements)
    const Value& storage = *part_of(*part_of(arguments, Kind::tuple, 4, 0), Kind::stored, 1, 0);
    const Value& type_name = *part_of(storage, Kind::tuple, 5, 1);
    const Value& part_name =
        pickle_.expect(*part_of(storage, Kind::tuple, 5, 2), Kind::text, "a storage has a name");
    const auto type = std::ranges::find(kStorageTypes, type_name.text, &StorageType::name);
    if (type_name.kind != Kind::name || type == kStorageTypes.end())
      pickle_.fail(type_name.offset, "a storage has a type of numbers");
    const std::string part(part_name.text);

    Tensor tensor{.name = name, .dtype = type->dtype, .shape = wholes(arguments.members[2])};
    Place place{.element_bytes = type->bytes,
                .offset = whole(arguments.members[1]),
                .strides = wholes(arguments.members[3])};
    if (place.strides.size() != tensor.shape.size())
      pickle_.fail(arguments.offset, "a tensor has as many strides as extents");
    if (std::ranges::find(tensor.shape, 0) == tensor.shape.end()) {
      const auto found = file_.parts_.find("data/" + part);
      if (found == file_.parts_.end())
        refuse(file_.path_, fmt::format("'{}' should lie in its part 'data/{}', which is not there; fetch or "
                                        "write the file again",
                                        base::visible(name), base::visible(part.substr(0, 100))));
      place.part = &found->first;
      const auto elements = static_cast<std::int64_t>(found->second / type->bytes);
      if (!is_within(tensor, place, elements))
        refuse(file_.path_,
               fmt::format("'{}' of shape [{}] should lie in 'data/{}' from element {} on, which "
                           "has {}; the file is damaged: fetch or write it again",
                           base::visible(name), fmt::join(tensor.shape, ","), part, place.offset,
                           base::counted(elements, "element")));
    }
    const auto [known, is_new] = by_name_.emplace(name, file_.tensors_.size());
    if (is_new) {
      file_.tensors_.push_back(std::move(tensor));
      file_.places_.push_back(std::move(place));
    } else {  // as in Python: the last value of a key counts
      file_.tensors_[known->second] = std::move(tensor);
      file_.places_[known->second] = std::move(place);
    }
  }

  static bool is_within(const Tensor& tensor, const Place& place, std::int64_t elements) {
    std::int64_t last = place.offset;
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      std::int64_t reach = 0;
      if (__builtin_mul_overflow(tensor.shape[i] - 1, place.strides[i], &reach) ||
          __builtin_add_overflow(last, reach, &last))
        return false;
    }
    return last < elements;
  }

  [[nodiscard]] std::int64_t whole(int index) const {
    const Value& value = pickle_.expect(pickle_.at(index), Kind::integer, "a whole number is needed");
    if (value.number < 0) pickle_.fail(value.offset, fmt::format("{} is below 0", value.number));
    return value.number;
  }

  [[nodiscard]] std::vector<std::int64_t> wholes(int index) const {
    const Value& tuple = pickle_.expect(pickle_.at(index), Kind::tuple, "extents and strides are tuples");
    if (tuple.members.size() > kMostExtents)
      pickle_.fail(tuple.offset, fmt::format("a tensor has at most {} dimensions", kMostExtents));
    std::vector<std::int64_t> numbers;
    for (const int member : tuple.members) numbers.push_back(whole(member));
    return numbers;
  }

  TorchFile& file_;
  const Pickle& pickle_;
  std::unordered_set<const Value*> visited_;  ///< one may lie in several, and in itself
  std::unordered_map<std::string, std::size_t> by_name_;
};

bool is_torch_file(const std::filesystem::path& path) {
  const auto file = data::FileBytes::map(path);
  const auto bytes = file.bytes().first(std::min<std::size_t>(file.bytes().size(), 512));
  const std::string beginning(bytes.begin(), bytes.end());
  file.require_read();
  const auto has = [&](std::size_t at, std::string_view text) {
    return beginning.size() >= at && beginning.compare(at, text.size(), text) == 0;
  };
  if (has(8, "{")) return false;  // safetensors: a length, whose bytes may be any, then JSON
  if (has(0, "PK")) return true;
  for (const OtherKind& other : kOtherKinds)
    if (has(other.at, other.bytes))
      refuse(path, fmt::format(fmt::runtime(other.sentence), base::shell_word(path.filename().string())));
  const std::string ending = base::lower_case(path.extension().string());
  if (ending == ".pth" || ending == ".pt" || ending == ".bin" || ending == ".ckpt" || ending == ".tar")
    refuse(path,
           "is named like a file of torch.save(), but is no zip archive, as those are; it is damaged or of "
           "another program: fetch or write it again");
  return false;
}

TorchFile::TorchFile(const std::filesystem::path& path) : path_(path), file_(data::FileBytes::map(path)) {
  read_parts();
  const Pickle pickle(path.string() + ": data.pkl",
                      std::span(reinterpret_cast<const std::uint8_t*>(pickle_.data()), pickle_.size()),
                      {.next_step = "the file is damaged, or no state dict: fetch or write it again",
                       .takes_all_protocols = true,
                       .check_name = [&](std::string_view name) { check_name(path, name); }});
  const Value& root = pickle.root();
  if (is_dictionary(pickle, root)) Collector(*this, pickle).collect(root);
  if (tensors_.empty())
    refuse(path, fmt::format("it holds {}, but must hold a state dict, arrays under their names; {}",
                             is_dictionary(pickle, root)                  ? "a dictionary without arrays"
                             : tensor_arguments(pickle, &root) != nullptr ? "one array"
                                                                          : "no dictionary",
                             kSaveAlone));
}

void TorchFile::read_parts() {
  std::uint64_t total = 0;
  std::string first, byte_order;
  for_each_part(path_, file_.bytes(), [&](const std::string& name, std::uint64_t size, ArchiveReader& zip) {
    total = std::max({total, size, total + size});  // of which a sum beyond 64 bits is the least
    if (parts_.empty()) first = name;
    if (!parts_.emplace(name, size).second)
      refuse(path_, fmt::format("it has the part '{}' twice; fetch or write it again", base::visible(name)));
    if (size > file_.bytes().size()) return;
    if (name == "data.pkl") pickle_ = read_part<std::string>(path_, zip, size);
    if (name == "byteorder") byte_order = read_part<std::string>(path_, zip, size);
  });
  file_.require_read();
  is_big_endian_ = byte_order == "big";
  if (parts_.contains("constants.pkl"))
    refuse(path_,
           "is a TorchScript archive (torch.jit.save()), which is not read; take its weights in Python: "
           "torch.save(torch.jit.load(FILE).state_dict(), 'weights.pth')");
  if (!parts_.contains("data.pkl"))
    refuse(path_, fmt::format("is a zip archive{}, but has no 'data.pkl' as those of torch.save() have; take "
                              "weights of PyTorch, or safetensors",
                              first.ends_with(".npy") ? " of NumPy (.npz)" : ""));
  // Parts are stored, not packed: together they are no longer than the file, and so is what is read.
  if (total > file_.bytes().size())
    refuse(path_,
           fmt::format("its parts should have {} bytes or more, but the file has {}; it is damaged, or "
                       "was packed again: fetch or write it again",
                       total, file_.bytes().size()));
}

void TorchFile::load(std::span<const Tensor* const> wanted) {
  for_each_part(path_, file_.bytes(), [&](const std::string& name, std::uint64_t size, ArchiveReader& zip) {
    std::vector<std::byte> part;
    for (const Tensor* const tensor : wanted) {
      const auto i = static_cast<std::size_t>(tensor - tensors_.data());
      if (places_[i].part == nullptr || *places_[i].part != name) continue;
      if (size != parts_.at(name)) refuse_damaged(path_, "it has changed meanwhile");
      if (part.empty()) part = read_part<std::vector<std::byte>>(path_, zip, size);
      tensors_[i].bytes = loaded_.emplace_back(gathered(tensors_[i], places_[i], part));
    }
  });
  file_.require_read();
}

/// The elements in C order, and little-endian.
std::vector<std::byte> TorchFile::gathered(const Tensor& tensor, const Place& place,
                                           std::span<const std::byte> part) const {
  const std::size_t size = place.element_bytes;
  std::size_t elements = 1;
  for (const auto extent : tensor.shape) elements *= static_cast<std::size_t>(extent);
  std::vector<std::byte> bytes(elements * size);
  std::vector<std::int64_t> index(tensor.shape.size());
  std::int64_t from = place.offset;
  for (auto to = bytes.begin(); to != bytes.end(); to += static_cast<std::ptrdiff_t>(size)) {
    const std::byte* const element = part.data() + static_cast<std::size_t>(from) * size;
    if (is_big_endian_)
      std::reverse_copy(element, element + size, to);
    else
      std::copy_n(element, size, to);
    for (std::size_t d = index.size(); d-- > 0;) {  // the next one; the last dimension runs first
      from += place.strides[d];
      if (++index[d] < tensor.shape[d]) break;
      from -= place.strides[d] * tensor.shape[d];
      index[d] = 0;
    }
  }
  return bytes;
}

}  // namespace paceline::train
