#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>

#include "data/dataset.h"
#include "data/file_bytes.h"
#include "data/files.h"

namespace paceline::data {
namespace {

using testing::HasSubstr;

TEST(MappedFile, OfAFileThatBecameShorterTheRestIsZerosAndSaidSo) {
  const TemporaryDirectory folder;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto path = folder.path() / "three-pages";
  write_bytes(path, Bytes(3 * page, 7));
  const MappedFile file(path);
  EXPECT_EQ(file.bytes()[3 * page - 1], 7);
  file.require_read();

  std::filesystem::resize_file(path, page);
  EXPECT_EQ(file.bytes()[0], 7) << "what is still there is read";
  file.require_read();
  const int sum = std::accumulate(file.bytes().begin(), file.bytes().end(), 0);
  EXPECT_EQ(sum, static_cast<int>(7 * page)) << "and the rest is zeros";
  const auto said = error_of([&] { file.require_read(); }).text;
  EXPECT_THAT(said, HasSubstr(path.string()));
  EXPECT_THAT(said, HasSubstr("from byte " + std::to_string(page) + " on"));
  EXPECT_THAT(said, HasSubstr("it had " + std::to_string(3 * page) + " bytes when it was opened and has " +
                              std::to_string(page) + " now"));

  std::filesystem::remove(path);
  EXPECT_THAT(error_of([&] { file.require_read(); }).text, HasSubstr("is no longer there"));
}

TEST(MappedFile, AnotherMappingOfTheSameProcessIsNotBlamed) {
  const TemporaryDirectory folder;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  write_bytes(folder.path() / "good", Bytes(2 * page, 1));
  write_bytes(folder.path() / "cut", Bytes(2 * page, 2));
  const MappedFile good(folder.path() / "good");
  MappedFile moved;
  {
    MappedFile cut(folder.path() / "cut");
    moved = std::move(cut);
  }
  std::filesystem::resize_file(folder.path() / "cut", 0);
  EXPECT_EQ(moved.bytes()[page], 0);
  EXPECT_EQ(good.bytes()[page], 1);
  good.require_read();
  EXPECT_THAT(error_of([&] { moved.require_read(); }).text, HasSubstr("has 0 now"));
}

TEST(MappedFile, ASlotIsFreeAgainAfterItsMapping) {
  const TemporaryDirectory folder;
  const auto path = folder.path() / "file";
  write_bytes(path, Bytes(100, 1));
  for (int i = 0; i < 3000; ++i) MappedFile(path).require_read();
  const MappedFile file(path);
  std::filesystem::resize_file(path, 0);
  EXPECT_EQ(file.bytes()[0], 0);
  EXPECT_THAT(error_of([&] { file.require_read(); }).text, HasSubstr("from byte 0 on"));
}

TEST(MappedFileDeathTest, ABusErrorElsewhereIsNotSwallowed) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own action for the signal reports it, and ends the process with 1";
#endif
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const TemporaryDirectory folder;
  const auto path = folder.path() / "file";
  write_bytes(path, Bytes(100, 1));
  const MappedFile guarded(path);
  EXPECT_EXIT(
      {
        const int file = ::open(path.c_str(), O_RDONLY);
        const void* const own = ::mmap(nullptr, 100, PROT_READ, MAP_SHARED, file, 0);
        std::filesystem::resize_file(path, 0);
        _exit(*static_cast<const volatile unsigned char*>(own));
      },
      testing::KilledBySignal(SIGBUS), "");
}

TEST(MappedFile, AFifoIsRefusedAndNotWaitedFor) {
  const TemporaryDirectory folder;
  const auto path = folder.path() / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { const MappedFile file(path); }).text, HasSubstr("it is a FIFO or a device"));
}

TEST(MappedFile, AnImageThatCannotBeReadIsAnErrorOfTheDataSet) {
  const TemporaryDirectory folder;
  for (int f = 1; f <= 6; ++f) {
    Bytes records;
    for (int r = 0; r < 8; ++r) {
      records.push_back(static_cast<std::uint8_t>(r));
      records.insert(records.end(), 3072, 9);
    }
    write_bytes(folder.path() / (f == 6 ? "test_batch.bin" : "data_batch_" + std::to_string(f) + ".bin"),
                records);
  }
  const auto source = open("cifar10:" + folder.path().string());
  std::vector<std::uint8_t> pixels(3072);
  EXPECT_EQ(source.train->read(7, pixels), 7);
  std::filesystem::resize_file(folder.path() / "data_batch_1.bin", 3073);
  EXPECT_EQ(source.train->read(0, pixels), 0);
  EXPECT_THAT(
      error_of([&] { source.train->read(7, pixels); }).text,
      testing::AllOf(HasSubstr("data_batch_1.bin: cannot be read from byte "), HasSubstr("3073 now")));
}

}  // namespace
}  // namespace paceline::data
