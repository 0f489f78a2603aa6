#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "train/checkpoint/safetensors.h"
#include "train/fixture.h"

namespace paceline::train {
namespace {

using base::DType;
using testing::AllOf;
using testing::HasSubstr;

class Safetensors : public testing::Test {
 protected:
  Safetensors() {
    std::string name = (std::filesystem::temp_directory_path() / "paceline-test-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = folder_ / "model.safetensors";
  }
  ~Safetensors() override { std::filesystem::remove_all(folder_); }

  /// Writes a file with this header, as it stands, and so many bytes of data.
  void write_raw(const std::string& header, std::size_t data_bytes) const {
    const std::uint64_t length = header.size();
    std::string file(reinterpret_cast<const char*>(&length), 8);
    file += header + std::string(data_bytes, 'x');
    std::ofstream(path_, std::ios::binary) << file;
  }
  /// What opening the file says.
  [[nodiscard]] std::string said() const {
    try {
      const SafetensorsFile file(path_);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.kind(), base::ErrorKind::data);
      EXPECT_THAT(error.what(), HasSubstr(path_.string()));
      return error.what();
    }
    return "nothing";
  }

  std::filesystem::path folder_, path_;
};

template <typename T>
Tensor tensor(std::string name, DType dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) {
  return {std::move(name), dtype, std::move(shape), std::as_bytes(std::span(values))};
}

template <typename T>
std::vector<T> values_of(const Tensor& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

TEST_F(Safetensors, GivesBackWhatWasWritten) {
  const std::vector<float> f32 = {1.5f, -0.0f, 3e38f, 1e-45f, 0, 7};
  const std::vector<double> f64 = {3.141592653589793};
  const std::vector<std::uint16_t> bf16 = {0x3f80, 0xffff, 0x0001};
  const std::vector<std::int64_t> i64 = {-1, 1LL << 62};
  const std::vector<std::int32_t> i32 = {-5};
  const std::vector<std::uint8_t> u8 = {0, 255, 7};
  const std::vector<Tensor> tensors = {tensor("layer1.0.conv1.weight", DType::f32, {1, 2, 3}, f32),
                                       tensor("scalar", DType::f64, {}, f64),
                                       tensor("b \"quoted\" \n \xc3\xa4", DType::bf16, {3}, bf16),
                                       tensor("counts", DType::i64, {2, 1}, i64),
                                       tensor("empty", DType::f32, {4, 0, 5}, std::vector<float>{}),
                                       tensor("a", DType::i32, {1}, i32),
                                       tensor("bytes", DType::u8, {3}, u8)};
  const Metadata metadata = {{"format", "pt"}, {"update", "123"}, {"empty", ""}};
  write_safetensors(path_, tensors, metadata);

  const SafetensorsFile file(path_);
  EXPECT_EQ(file.metadata(), metadata);
  ASSERT_EQ(file.tensors().size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& read = file.tensors()[i];  // the order is kept
    EXPECT_EQ(read.name, tensors[i].name);
    EXPECT_EQ(read.dtype, tensors[i].dtype);
    EXPECT_EQ(read.shape, tensors[i].shape);
    EXPECT_TRUE(std::ranges::equal(read.bytes, tensors[i].bytes));
    EXPECT_EQ(file.find(tensors[i].name), &read);
  }
  EXPECT_EQ(values_of<std::int64_t>(*file.find("counts")), i64);
  EXPECT_EQ(file.find("missing"), nullptr);
}

TEST_F(Safetensors, BeginsTheDataAtAMultipleOfEight) {
  const std::vector<float> values = {1, 2};
  for (int length = 1; length < 20; ++length) {
    const std::vector<Tensor> tensors = {
        tensor(std::string(static_cast<std::size_t>(length), 'n'), DType::f32, {2}, values)};
    write_safetensors(path_, tensors);
    EXPECT_EQ(std::filesystem::file_size(path_) % 8, 0u);
    EXPECT_EQ(values_of<float>(SafetensorsFile(path_).tensors()[0]), values);
  }
}

// The layout, byte by byte, as the format's description has it: our reader alone could agree with our own
// mistake.
TEST_F(Safetensors, WritesTheFormat) {
  const std::vector<float> values = {1.0f};
  const std::vector<Tensor> tensors = {tensor("w", DType::f32, {1}, values)};
  write_safetensors(path_, tensors, {{"k", "v"}});
  const std::string header =
      R"({"__metadata__":{"k":"v"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string expected(1, static_cast<char>((header.size() + 7) / 8 * 8));
  expected += std::string(7, '\0') + header + std::string((8 - header.size() % 8) % 8, ' ') +
              std::string("\x00\x00\x80\x3f", 4);
  EXPECT_EQ(base::read_file(path_), expected);
}

TEST_F(Safetensors, ReadsFilesOfOtherWriters) {
  // Keys in another order than the data, blanks, no padding, an unaligned float, no metadata.
  write_raw(
      R"( { "b" : {"data_offsets":[1,5],"shape":[1],"dtype":"F32"}, "a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}  )",
      5);
  const SafetensorsFile file(path_);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_EQ(values_of<std::uint8_t>(file.tensors()[0])[0], 'x');
  float value = 0;
  file.copy_f32("b", std::array<std::int64_t, 1>{1}, {&value, 1});
  EXPECT_EQ(std::bit_cast<std::uint32_t>(value), 0x78787878u);
  write_raw("{}", 0);
  EXPECT_TRUE(SafetensorsFile(path_).tensors().empty());
}

/// A reader that compares each name with all before it would not come to an end within the limit of the test.
TEST_F(Safetensors, ManyNamesKeepTheirOrder) {
  constexpr int kNames = 1000000;
  std::string header = "{";
  for (int i = kNames; i-- > 0;)
    header +=
        fmt::format(R"("n{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}{})", i, i > 0 ? "," : "}");
  write_raw(header, 0);
  const SafetensorsFile file(path_);
  ASSERT_EQ(file.tensors().size(), static_cast<std::size_t>(kNames));
  EXPECT_EQ(file.tensors().front().name, fmt::format("n{}", kNames - 1));
  EXPECT_EQ(file.tensors().back().name, "n0");
  EXPECT_NE(file.find("n7"), nullptr);
}

TEST_F(Safetensors, SaysWhatIsWrongWithAFile) {
  EXPECT_THAT(said(), HasSubstr("No such file"));
  for (const int bytes : {0, 7}) {
    std::ofstream(path_, std::ios::binary) << std::string(static_cast<std::size_t>(bytes), '\0');
    EXPECT_THAT(said(), HasSubstr("this one has " + std::to_string(bytes) + " bytes in all"));
  }
  std::ofstream(path_, std::ios::binary) << "\x89PNG\r\n\x1a\n and so on";
  EXPECT_THAT(said(), AllOf(HasSubstr("should have 727905341920923785 bytes, but 10 bytes follow"),
                            HasSubstr("not a safetensors file")));

  struct Case {
    const char* header;
    std::size_t data_bytes;
    std::vector<const char*> said;
  };
  const Case cases[] = {
      {"", 0, {"not valid JSON"}},
      {"{\"a\":", 0, {"not valid JSON"}},
      {"{} x", 0, {"not valid JSON"}},
      {"{\"\xff\":1}", 0, {"not valid JSON"}},
      {"[]", 0, {"a JSON array, not an object"}},
      {"7", 0, {"a JSON number, not an object"}},
      {R"({"a":7})", 0, {"tensor 'a' needs a dtype, a shape and two data_offsets", "has no object"}},
      {R"({"a":{}})", 0, {"tensor 'a' needs", "has no text as dtype"}},
      {R"({"a":{"dtype":"F32","shape":{"b":[1]},"data_offsets":[0,4]}})", 4, {"has no list as shape"}},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4, {"tensor 'a' needs"}},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,2,4]}})", 4, {"has no two data_offsets"}},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, {"whole numbers"}},
      {R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, {"whole numbers"}},
      {R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4, {"whole numbers"}},
      {R"({"a":{"dtype":32,"shape":[1],"data_offsets":[0,4]}})", 4, {"tensor 'a' needs a dtype"}},
      {R"({"a":{"dtype":"I16","shape":[1],"data_offsets":[0,2]}})",
       2,
       {"'a' has the dtype I16", "only F64, F32, F16, BF16"}},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})",
       4,
       {"F32 [2], needs 8 bytes", "are 0 and 4"}},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, {"needs 4 bytes", "are 4 and 0"}},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})",
       0,
       {"more than 2^63 bytes"}},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, {"'a' begins at byte 4", "ends at 0"}},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
       6,
       {"'b' begins at byte 2", "ends at 4"}},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[6,10]}})",
       10,
       {"'b' begins at byte 6", "ends at 4"}},
      {R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}})",
       4,
       {"'a' ends at byte 5", "has 4 bytes", "truncated"}},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
       5,
       {"end at byte 4 of the data", "has 5 bytes"}},
      {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
       0,
       {"the name 'a' twice"}},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, {"the name '__metadata__' twice"}},
      {R"({"__metadata__":[]})", 0, {"__metadata__ is not a JSON object"}},
      {R"({"__metadata__":{"k":1}})", 0, {"'k' is a JSON number"}},
      {R"({"__metadata__":{"k":{"l":"m"}}})", 0, {"'k' is a JSON object"}},
  };
  for (const auto& c : cases) {
    write_raw(c.header, c.data_bytes);
    for (const char* part : c.said) EXPECT_THAT(said(), HasSubstr(part)) << c.header;
  }
}

// Every shorter file and every single changed bit of the length and header: an Error or a valid file, never
// more.
TEST_F(Safetensors, SurvivesAnyTruncationAndAnyChangedBit) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::vector<Tensor> tensors = {
      {"first", DType::f32, {2, 2}, std::as_bytes(std::span(values).first(4))},
      {"second", DType::f32, {2}, std::as_bytes(std::span(values).last(2))}};
  write_safetensors(path_, tensors, {{"k", "v"}});
  const std::string whole = base::read_file(path_);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    std::ofstream(path_, std::ios::binary) << whole.substr(0, length);
    EXPECT_NE(said(), "nothing") << length;
  }
  for (std::size_t at = 0; at < whole.size() - 24; ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      std::ofstream(path_, std::ios::binary) << changed;
      (void)said();  // checks kind and path itself
    }
}

TEST_F(Safetensors, SaysWhichTensorDoesNotFit) {
  const std::vector<float> values = {1, 2, 3, 4};
  const std::vector<std::int32_t> counts = {1, 2, 3, 4};
  const std::vector<Tensor> tensors = {tensor("fc.weight", DType::f32, {2, 2}, values),
                                       tensor("counts", DType::i32, {4}, counts)};
  write_safetensors(path_, tensors);
  const SafetensorsFile file(path_);
  std::vector<float> dst(4);
  file.copy_f32("fc.weight", std::array<std::int64_t, 2>{2, 2}, dst);
  EXPECT_EQ(dst, values);
  const auto said = [&](const char* name, std::vector<std::int64_t> shape) -> std::string {
    try {
      file.copy_f32(name, shape, dst);
    } catch (const base::Error& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_THAT(said("fc.weihgt", {2, 2}),
              AllOf(HasSubstr("no tensor 'fc.weihgt' among its 2"), HasSubstr("'fc.weight'")));
  EXPECT_THAT(said("fc.weight", {4}), HasSubstr("'fc.weight' is F32 [2, 2], but F32 [4] is expected"));
  EXPECT_THAT(said("counts", {4}), HasSubstr("'counts' is I32 [4], but F32 [4] is expected"));
}

// A limit on the size of files stands in for a full disk: both make write() fail half way. In a process of
// its own, as the limit is the process's.
TEST_F(Safetensors, KeepsTheOldFileWhenTheDiskIsFull) {
  const std::vector<float> small = {1, 2, 3};
  const std::vector<Tensor> old_tensors = {tensor("old", DType::f32, {3}, small)};
  write_safetensors(path_, old_tensors);
  const std::string before = base::read_file(path_);

  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = 65536, .rlim_max = 65536};
    setrlimit(RLIMIT_FSIZE, &limit);
    const std::vector<float> large(1 << 20);
    const std::vector<Tensor> tensors = {tensor("large", DType::f32, {1 << 20}, large)};
    int status = 1;  // nothing was thrown
    try {
      write_safetensors(path_, tensors);
    } catch (const base::Error& error) {
      status =
          error.kind() == base::ErrorKind::data && std::strstr(error.what(), "cannot be written") ? 0 : 2;
    }
    _exit(status);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);

  EXPECT_EQ(base::read_file(path_), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}),
            1);  // and no remains of the new one
}

}  // namespace

namespace {

using testing::HasSubstr;

class SafetensorsChecksum : public TrainingTest {
 protected:
  SafetensorsChecksum() {
    const std::vector<float> values{1, 2, 3};
    const Tensor tensor{"fc.bias", base::DType::f32, {3}, std::as_bytes(std::span(values))};
    write_safetensors(path_, std::span(&tensor, 1),
                      {{"model", "small"}, {std::string(kChecksumKey), "whatever"}});
    bytes_ = base::read_file(path_);
  }
  [[nodiscard]] Checksum of(std::string_view bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    return check_checksum(path_);
  }
  /// A file with this header, and nothing else.
  [[nodiscard]] Checksum of_header(const std::string& header) const {
    const std::uint64_t length = header.size();
    return of(std::string(reinterpret_cast<const char*>(&length), sizeof length) + header);
  }
  std::filesystem::path path_ = directory_ / "c.safetensors";
  std::string bytes_;
};

TEST_F(SafetensorsChecksum, IsOverHeaderAndDataWithItsOwnDigitsAsZeros) {
  EXPECT_EQ(check_checksum(path_), Checksum::right);
  const auto digits = SafetensorsFile(path_).metadata().at(std::string(kChecksumKey));
  EXPECT_EQ(checksum_placeholder(), std::string(64, '0'));
  auto zeros = bytes_;
  zeros.replace(zeros.find(digits), digits.size(), checksum_placeholder());
  std::ofstream(directory_ / "zeros", std::ios::binary) << zeros;
  EXPECT_EQ(base::sha256_of(directory_ / "zeros"), digits);
}

TEST_F(SafetensorsChecksum, NoFlippedBitAndNoTruncationIsRight) {
  for (std::size_t at = 0; at < bytes_.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      auto damaged = bytes_;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      EXPECT_NE(of(damaged), Checksum::right) << "byte " << at << ", bit " << bit;
    }
  for (std::size_t length = 0; length < bytes_.size(); ++length)
    EXPECT_NE(of(bytes_.substr(0, length)), Checksum::right) << length;
  EXPECT_EQ(of(bytes_ + " "), Checksum::wrong);
  EXPECT_EQ(of(bytes_), Checksum::right);
}

TEST_F(SafetensorsChecksum, OfDataInPiecesIsThatOfTheWhole) {
  const std::string data = "0123456789abcdef";
  const std::string header = R"({"__metadata__":{"sha256":")" + checksum_placeholder() + R"("}})";
  const auto whole = std::as_bytes(std::span(data));
  const std::span<const std::byte> one[] = {whole},
                                   three[] = {whole.first(1), whole.subspan(1, 0), whole.subspan(1)};
  const auto summed = with_checksum(header, one);
  EXPECT_EQ(summed.size(), header.size());
  EXPECT_NE(summed, header);
  EXPECT_EQ(with_checksum(header, three), summed);
  const std::uint64_t length = summed.size();
  EXPECT_EQ(of(std::string(reinterpret_cast<const char*>(&length), sizeof length) + summed + data),
            Checksum::right);
}

TEST_F(SafetensorsChecksum, IsAbsentWhereNoHeaderHasExactlyOne) {
  const std::string key = R"("sha256":")", digits(64, 'a');
  EXPECT_EQ(of_header("{}"), Checksum::absent);
  EXPECT_EQ(of_header("{" + key + digits + "\"}"), Checksum::wrong);
  EXPECT_EQ(of_header("{" + key + digits + "\"," + key + digits + "\"}"), Checksum::absent) << "twice";
  EXPECT_EQ(of_header("{" + key + "abc\"}"), Checksum::absent) << "too short";
  EXPECT_EQ(of_header("{" + key + digits), Checksum::absent) << "without an end";
  EXPECT_EQ(of(""), Checksum::absent);
  EXPECT_EQ(of("short"), Checksum::absent);
  EXPECT_EQ(of(std::string(8, '\xff') + key + digits + "\""), Checksum::absent)
      << "a header beyond all files";
}

/// None of these is waited for, and none ends in a signal.
TEST_F(SafetensorsChecksum, WhatIsNoRegularFileIsRefused) {
  const auto refusal_of = [](const std::filesystem::path& path) -> std::string {
    try {
      (void)check_checksum(path);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.kind(), base::ErrorKind::data);
      return error.what();
    }
    return "nothing is refused";
  };
  const auto fifo = directory_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const auto& path : {fifo, directory_, directory_ / "nowhere"})
    EXPECT_THAT(refusal_of(path), HasSubstr(path.string()));
}

}  // namespace
}  // namespace paceline::train
