#include "train/checkpoint/torch_file.h"

#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "base/error.h"
#include "data/pickles.h"

namespace paceline::train {
namespace tests {
namespace {

using base::DType;
using data::PickleWriter;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// What _rebuild_tensor_v2() is called with.
struct Array {
  std::string name, type, part;
  std::int64_t offset;
  std::vector<std::int64_t> shape, strides;
};

/// Writes a pickle as torch.save() does.
class StateWriter {
 public:
  StateWriter& op(std::string_view bytes) { return pickle_.op(bytes), *this; }
  StateWriter& name(std::string_view module, std::string_view name) {
    return pickle_.name(module, name), *this;
  }
  StateWriter& text(std::string_view text) {
    pickle_.op("X").number(text.size(), 4).op(text).remember();
    return *this;
  }
  StateWriter& whole(std::int64_t value) {
    if (std::in_range<std::int32_t>(value))
      pickle_.integer(value);
    else
      pickle_.op("\x8a\x08").number(static_cast<std::uint64_t>(value), 8);
    return *this;
  }
  StateWriter& wholes(const std::vector<std::int64_t>& values) {
    op("(");
    for (const auto value : values) whole(value);
    return op("t");
  }
  StateWriter& tensor(const Array& array) {
    name("torch._utils", "_rebuild_tensor_v2").op("((").text("storage").name("torch", array.type + "Storage");
    text(array.part).text("cpu").whole(1).op("tQ").whole(array.offset).wholes(array.shape);
    return wholes(array.strides).op("\x89").name("collections", "OrderedDict").op(")RtR");
  }
  StateWriter& state_dict(const std::vector<Array>& arrays) {
    name("collections", "OrderedDict").op(")R(");
    for (const Array& array : arrays) text(array.name).tensor(array);
    return op("u}").text("_metadata").name("collections", "OrderedDict").op(")Rsb");
  }
  std::string end() {
    const auto bytes = pickle_.op(".").take();
    return {bytes.begin(), bytes.end()};
  }

 private:
  PickleWriter pickle_;
};

template <typename T>
std::string bytes_of(std::initializer_list<T> values) {
  std::string bytes(values.size() * sizeof(T), 0);
  std::memcpy(bytes.data(), std::data(values), bytes.size());
  return bytes;
}

using Parts = std::vector<std::pair<std::string, std::string>>;

class TorchFile : public testing::Test {
 protected:
  void write_zip(const Parts& parts, const std::string& name = "given.pth", const char* packing = "store") {
    path_ = folder_.path() / name;
    archive* const zip = archive_write_new();
    archive_write_set_format_zip(zip);
    archive_write_set_format_option(zip, "zip", "compression", packing);
    ASSERT_EQ(archive_write_open_filename(zip, path_.c_str()), ARCHIVE_OK);
    for (const auto& [part, bytes] : parts) {
      archive_entry* const entry = archive_entry_new();
      archive_entry_set_pathname(entry, ("given/" + part).c_str());
      archive_entry_set_size(entry, static_cast<std::int64_t>(bytes.size()));
      archive_entry_set_filetype(entry, AE_IFREG);
      archive_write_header(zip, entry);
      archive_write_data(zip, bytes.data(), bytes.size());
      archive_entry_free(entry);
    }
    archive_write_free(zip);
  }
  void write_bytes(const std::string& bytes, const std::string& name = "given.pth") {
    path_ = folder_.path() / name;
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  [[nodiscard]] std::string file() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// "name type [shape]: bytes as they are read" of all tensors.
  static std::map<std::string, std::string> contents(train::TorchFile& opened) {
    std::vector<const Tensor*> all;
    for (const Tensor& tensor : opened.tensors()) all.push_back(&tensor);
    opened.load(all);
    std::map<std::string, std::string> result;
    for (const Tensor* tensor : all)
      result[tensor->name] = {reinterpret_cast<const char*>(tensor->bytes.data()), tensor->bytes.size()};
    return result;
  }
  /// What is said when the file is opened and all its tensors are read.
  [[nodiscard]] std::string said() const {
    try {
      if (!is_torch_file(path_)) return "no file of torch.save()";
      train::TorchFile opened(path_);
      (void)contents(opened);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.kind(), base::ErrorKind::data);
      EXPECT_THAT(error.what(), HasSubstr(path_.string()));
      return error.what();
    }
    return "nothing";
  }
  std::string said_of(const Array& array) {
    write_zip({{"data.pkl", StateWriter().state_dict({array}).end()}, {"data/0", std::string(48, 'x')}});
    return said();
  }

  data::TemporaryDirectory folder_;
  std::filesystem::path path_;
};

TEST_F(TorchFile, ReadsEachTypeHoweverItLies) {
  StateWriter state;
  state.state_dict({{"f32", "Float", "0", 0, {2, 3}, {3, 1}},
                    {"transposed", "Float", "0", 0, {3, 2}, {1, 3}},
                    {"last", "Float", "0", 4, {2}, {1}},
                    {"spread", "Float", "0", 5, {2, 2}, {0, 0}},
                    {"f16", "Half", "1", 0, {2}, {1}},
                    {"bf16", "BFloat16", "1", 1, {}, {}},
                    {"f64", "Double", "2", 0, {1, 1}, {1, 1}},
                    {"count", "Long", "3", 0, {}, {}},
                    {"mask", "Bool", "3", 7, {1}, {1}},
                    {"none", "Float", "9", 0, {0, 4}, {4, 1}}});
  write_zip({{"data.pkl", state.end()},
             {"data/0", bytes_of<float>({1, 2, 3, 4, 5, 6})},
             {"data/1", bytes_of<std::uint16_t>({0x3c00, 0x3f80})},
             {"data/2", bytes_of<double>({0.1})},
             {"data/3", bytes_of<std::int64_t>({7})}});
  ASSERT_TRUE(is_torch_file(path_));
  train::TorchFile opened(path_);
  std::vector<std::string> names;
  std::vector<DType> types;
  for (const Tensor& tensor : opened.tensors()) names.push_back(tensor.name), types.push_back(tensor.dtype);
  EXPECT_THAT(names, ElementsAre("f32", "transposed", "last", "spread", "f16", "bf16", "f64", "count", "mask",
                                 "none"));  // in the order of the file
  EXPECT_THAT(types, ElementsAre(DType::f32, DType::f32, DType::f32, DType::f32, DType::f16, DType::bf16,
                                 DType::f64, DType::i64, DType::u8, DType::f32));
  EXPECT_THAT(opened.tensors()[1].shape, ElementsAre(3, 2));
  auto read = contents(opened);
  EXPECT_EQ(read["f32"], bytes_of<float>({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(read["transposed"], bytes_of<float>({1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(read["last"], bytes_of<float>({5, 6}));
  EXPECT_EQ(read["spread"], bytes_of<float>({6, 6, 6, 6}));
  EXPECT_EQ(read["f16"], bytes_of<std::uint16_t>({0x3c00, 0x3f80}));
  EXPECT_EQ(read["bf16"], bytes_of<std::uint16_t>({0x3f80}));
  EXPECT_EQ(read["f64"], bytes_of<double>({0.1}));
  EXPECT_EQ(read["count"], bytes_of<std::int64_t>({7}));
  EXPECT_EQ(read["none"], "");
}

TEST_F(TorchFile, TurnsBigEndianNumbers) {
  write_zip({{"data.pkl", StateWriter().state_dict({{"a", "Float", "0", 0, {2}, {1}}}).end()},
             {"byteorder", "big"},
             {"data/0", std::string("\x3f\x80\0\0\x40\0\0\0", 8)}});
  train::TorchFile opened(path_);
  EXPECT_EQ(contents(opened)["a"], bytes_of<float>({1, 2}));
}

// A dictionary of the whole training, as people keep it.
TEST_F(TorchFile, FindsWeightsAmongWhatLiesBeside) {
  const Array weight{"conv.weight", "Float", "0", 0, {1}, {1}};
  StateWriter state;
  state.op("}(").text("epoch").whole(3).text("state_dict").state_dict({weight});
  state.text("optimizer").op("}").text("state").op("}").whole(0).op("}").text("exp_avg").tensor(weight);
  state.op("sss").text("param_groups").op("]}").text("lr").op(std::string("G\0\0\0\0\0\0\0\0", 9)).op("sas");
  state.text("best").name("numpy.core.multiarray", "scalar").name("numpy", "dtype").text("f8");
  state.op("\x89\x88\x87R").name("_codecs", "encode").text("12345678").text("latin1").op("\x86R\x86R");
  state.text("args").name("argparse", "Namespace").op(")\x81}").text("lr").whole(1).op("sb");
  state.text("milestones").name("collections", "Counter").op("}").whole(30).whole(1).op("s\x85R");
  state.text("weight").name("torch._utils", "_rebuild_parameter").op("(").tensor(weight);
  state.op("\x88").name("collections", "OrderedDict").op(")RtR");
  state.text("typed").name("torch._tensor", "_rebuild_from_type_v2").op("(");
  state.name("torch._utils", "_rebuild_tensor_v2").name("torch", "Tensor").op("((").text("storage");
  state.name("torch", "FloatStorage").text("0").text("cpu").whole(1).op("tQK").op(std::string(1, 0));
  state.wholes({1}).wholes({1}).op("t}tR");
  write_zip({{"data.pkl", state.op("u").end()}, {"data/0", "1234"}});
  EXPECT_EQ(said(), "nothing");
  const train::TorchFile opened(path_);
  std::vector<std::string> names;
  for (const Tensor& tensor : opened.tensors()) names.push_back(tensor.name);
  EXPECT_THAT(names, ElementsAre("state_dict.conv.weight", "weight", "typed"));
}

TEST_F(TorchFile, RunsNothing) {
  const auto ran = folder_.path() / "ran";
  const std::string command = "touch " + ran.string();
  const std::string size(1, static_cast<char>(command.size()));
  for (const std::string& pickle :
       {"\x80\x02"
        "cposix\nsystem\nX" +
            size + std::string(3, 0) + command + "\x85R.",
        "\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c" + size + command + "\x94\x85\x94R\x94.",
        "cposix\nsystem\n(S'" + command + "'\ntR.",
        StateWriter().op("}").text("w").name("posix", "system").text(command).op("\x85Rs").end()}) {
    write_zip({{"data.pkl", pickle}, {"data/0", "1234"}});
    EXPECT_THAT(said(),
                AllOf(HasSubstr("it holds posix.system, which only Python can make, and nothing of it "
                                "was run; save the weights alone"),
                      Not(HasSubstr("\n"))));
    EXPECT_FALSE(std::filesystem::exists(ran));
  }
  // A model that was pickled whole, and a name that would colour the terminal.
  for (const auto& [module, name, shown] :
       {std::tuple("models", "Net", "models.Net"), std::tuple("builtins", "eval", "builtins.eval"),
        std::tuple("torch.Size torch", "device", "torch.Size torch.device"),
        std::tuple("\x1b[31m", "x", "\\x1b[31m.x")}) {
    write_zip({{"data.pkl", StateWriter().name(module, name).op(")\x81.").end()}});
    EXPECT_THAT(said(), HasSubstr(std::string("it holds ") + shown + ", which"));
  }
}

TEST_F(TorchFile, NamesOtherKindsOfFiles) {
  for (const auto& [bytes, sentence] : std::map<std::string, const char*>{
           {std::string("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.", 19),
            "was written by PyTorch before 1.6, or as those did, and is not read; 'paceline_model.py "
            "MODULE:CALLABLE --state given.pth' converts it"},
           {std::string(257, 'a') + "ustar", "is a tar archive"},
           {"\x80\x04\x95", "is a Python pickle, but none of torch.save()"},
           {"\x89HDF\r\n\x1a\n", "is an HDF5 file, as Keras and TensorFlow write"},
           {"\x93NUMPY", "is an array of NumPy"},
           {"\x1f\x8b\x08", "unpack it first: gzip -d given.pth"},
           {"<!DOCTYPE html>", "is a page of the web"},
           {"version https://git-lfs.github.com/spec/v1", "git lfs pull"},
           {"", "is named like a file of torch.save(), but is no zip archive"},
           {"1234", "is named like a file of torch.save(), but is no zip archive"}}) {
    write_bytes(bytes);
    EXPECT_THAT(said(), HasSubstr(sentence));
  }
  // What the file is decides, not its name; and a header of 640 bytes is no pickle.
  write_bytes(std::string("\x80\x02\0\0\0\0\0\0{", 9));
  EXPECT_FALSE(is_torch_file(path_));
  write_bytes("1234", "given.safetensors");
  EXPECT_FALSE(is_torch_file(path_));

  const std::string pickle = StateWriter().state_dict({}).end();
  write_zip({{"data.pkl", pickle}, {"constants.pkl", ""}});
  EXPECT_THAT(said(), HasSubstr("is a TorchScript archive (torch.jit.save()), which is not read; take its"));
  write_zip({{"fc.weight.npy", "x"}}, "given.npz");
  EXPECT_THAT(said(), HasSubstr("is a zip archive of NumPy (.npz), but has no 'data.pkl'"));
  write_zip({{"config.json", "x"}}, "given.keras");
  EXPECT_THAT(said(), HasSubstr("is a zip archive, but has no 'data.pkl'"));
  write_zip({{"data.pkl", pickle}});
  EXPECT_THAT(said(), HasSubstr("it holds a dictionary without arrays, but must hold a state dict"));
  write_zip({{"data.pkl", StateWriter().op("]").end()}});
  EXPECT_THAT(said(), HasSubstr("it holds no dictionary, but must hold a state dict"));
  write_zip({{"data.pkl", StateWriter().tensor({"", "Float", "0", 0, {1}, {1}}).end()}, {"data/0", "1234"}});
  EXPECT_THAT(said(), HasSubstr("it holds one array, but must hold a state dict"));
}

TEST_F(TorchFile, RefusesArraysThatLieNowhere) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  EXPECT_EQ(said_of({"a", "Float", "0", 0, {12}, {1}}), "nothing");
  EXPECT_THAT(said_of({"a", "Float", "0", 1, {12}, {1}}),
              HasSubstr("'a' of shape [12] should lie in 'data/0' from element 1 on, which has 12 elements"));
  for (const Array& array :
       {Array{"a", "Float", "0", 0, {2, 3}, {12, 1}}, Array{"a", "Float", "0", kHuge, {1}, {1}},
        Array{"a", "Double", "0", 0, {12}, {1}}, Array{"a", "Float", "0", 0, {kHuge}, {4}},
        Array{"a", "Float", "0", kHuge, {3, 3}, {kHuge, kHuge}}})
    EXPECT_THAT(said_of(array), HasSubstr("should lie in 'data/0' from element"));
  EXPECT_THAT(said_of({"a", "Float", "1", 0, {1}, {1}}), HasSubstr("part 'data/1', which is not there"));
  EXPECT_THAT(said_of({"a", "Float", "0", -1, {1}, {1}}), HasSubstr("-1 is below 0"));
  EXPECT_THAT(said_of({"a", "Float", "0", 0, {1}, {}}), HasSubstr("as many strides as extents"));
  EXPECT_THAT(said_of({"a", "Float", "0", 0, std::vector<std::int64_t>(65, 1), {}}),
              HasSubstr("at most 64 dimensions"));
  EXPECT_THAT(said_of({"a", "QInt8", "0", 0, {1}, {1}}), HasSubstr("it holds torch.QInt8Storage"));
  EXPECT_THAT(said_of({std::string(1001, 'a'), "Float", "0", 0, {1}, {1}}),
              HasSubstr("at most 1000 letters"));
}

/// A dictionary that is remembered under `level`, and holds that of the level below twice.
void put_level(StateWriter& state, char level) {
  const std::string number{level, 0, 1, 0};
  state.op("}r").op(number);
  if (level == 0) {
    state.text("w").tensor({"w", "Float", "0", 0, {1}, {1}}).op("s");
    return;
  }
  state.text("a");
  put_level(state, static_cast<char>(level - 1));
  state.op("s").text("b").op("j").op(std::string{static_cast<char>(level - 1), 0, 1, 0}).op("s");
  state.text("self").op("j").op(number).op("s");
}

TEST_F(TorchFile, VisitsEachDictionaryOnce) {
  for (const char levels : {'\5', '\100'}) {
    StateWriter state;
    put_level(state, levels);
    write_zip({{"data.pkl", state.end()}, {"data/0", "1234"}});
    if (levels > 8) {
      EXPECT_THAT(said(), HasSubstr("it holds a dictionary without arrays"));
      continue;
    }
    train::TorchFile opened(path_);
    EXPECT_THAT(contents(opened), ElementsAre(testing::Pair("a.a.a.a.a.w", "1234")));
  }
}

TEST_F(TorchFile, IsRefusedCutOrChangedAnywhere) {
  write_zip({{"data.pkl", StateWriter().state_dict({{"a", "Float", "0", 0, {3}, {1}}}).end()},
             {"data/0", bytes_of<float>({1, 2, 3})}});
  const std::string whole = file();
  for (std::size_t length = 4; length < whole.size(); ++length) {
    write_bytes(whole.substr(0, length));
    EXPECT_THAT(said(), HasSubstr("damaged or cut short")) << length;
  }
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const char change : {'\x01', '\x80', '\xff'}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      write_bytes(bytes);
      if (said() != "nothing") continue;
      train::TorchFile opened(path_);
      EXPECT_EQ(contents(opened)["a"], bytes_of<float>({1, 2, 3})) << at;
    }
  std::string bytes = whole;
  bytes[bytes.find(bytes_of<float>({1, 2, 3}))] = 1;
  write_bytes(bytes);
  EXPECT_THAT(said(), HasSubstr("CRC"));
}

TEST_F(TorchFile, HoldsNoMoreThanItsFile) {
  const Parts parts{{"data.pkl", StateWriter().state_dict({{"a", "Float", "0", 0, {3}, {1}}}).end()},
                    {"data/0", std::string(100'000, 0)}};
  write_zip(parts, "packed.pth", "deflate");
  EXPECT_THAT(said(), AllOf(HasSubstr("its parts should have 100"), HasSubstr("or was packed again")));
  write_zip({parts[0], parts[0]});
  EXPECT_THAT(said(), HasSubstr("it has the part 'data.pkl' twice"));
}

}  // namespace
}  // namespace tests
}  // namespace paceline::train
