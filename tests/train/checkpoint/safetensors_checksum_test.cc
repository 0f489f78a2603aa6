#include "train/checkpoint/safetensors_checksum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <fstream>

#include "base/error.h"
#include "base/sha256.h"
#include "fixture.h"
#include "train/checkpoint/safetensors.h"

namespace paceline::train {
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
