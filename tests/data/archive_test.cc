#include "data/archive.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "data/file_bytes.h"
#include "data/files.h"
#include "data/npz_files.h"

namespace paceline::data {
namespace {

using Next = ArchiveReader::Next;

Bytes counted(std::size_t bytes) {
  Bytes all(bytes);
  for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<std::uint8_t>(i % 251);
  return all;
}

/// A tar of these members.
Bytes tar_of(const Members& members) {
  const TemporaryDirectory folder;
  const auto path = folder.path() / "a.tar";
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const auto archive = write_tar(descriptor);
  for (const auto& [name, bytes] : members) EXPECT_TRUE(archive->add(name, bytes)) << archive->reason();
  EXPECT_TRUE(archive->finish()) << archive->reason();
  ::close(descriptor);
  const auto file = FileBytes::map(path);
  return {file.bytes().begin(), file.bytes().end()};
}

/// The paths and contents of all members, and how they end.
std::pair<Members, Next> all_of(ArchiveForm form, const Bytes& bytes) {
  Members found;
  const auto archive = read_archive(form, bytes);
  ArchiveMember member;
  Next next{};
  while ((next = archive->next(member)) == Next::member) {
    EXPECT_TRUE(member.is_file);
    Bytes contents(static_cast<std::size_t>(std::max<std::int64_t>(member.bytes, 0)));
    if (!archive->read_all(contents)) break;
    found.emplace_back(member.path, contents);
  }
  return {found, next};
}

const Members kThree{{"a/b.bin", counted(1000)}, {"gr\xc3\xbc\xc3\x9f", {}}, {"c", counted(70'000)}};

TEST(Archive, GivesBackWhatATarHolds) {
  const auto tar = tar_of(kThree);
  EXPECT_EQ(all_of(ArchiveForm::tar, tar), std::pair(kThree, Next::end));
  EXPECT_EQ(all_of(ArchiveForm::tar_gzip, gzip(tar)), std::pair(kThree, Next::end));
  EXPECT_EQ(tar_of(kThree), tar) << "the same contents are the same archive";
}

TEST(Archive, AMembersContentsBeginWhereItSays) {
  const auto tar = tar_of(kThree);
  const auto archive = read_archive(ArchiveForm::tar, tar);
  ArchiveMember member;
  for (const auto& [path, contents] : kThree) {
    ASSERT_EQ(archive->next(member), Next::member);
    ASSERT_EQ(member.bytes, static_cast<std::int64_t>(contents.size()));
    EXPECT_EQ(Bytes(tar.begin() + static_cast<std::ptrdiff_t>(member.begin),
                    tar.begin() + static_cast<std::ptrdiff_t>(member.begin + contents.size())),
              contents)
        << path;
  }
}

TEST(Archive, AGzipFileIsOneMember) {
  const auto contents = counted(200'000);
  const auto packed = gzip(contents);
  const auto archive = read_archive(ArchiveForm::gzip, packed);
  ArchiveMember member;
  ASSERT_EQ(archive->next(member), Next::member);
  Bytes found(contents.size());
  EXPECT_TRUE(archive->read_all(found)) << archive->reason();
  EXPECT_EQ(found, contents);
  EXPECT_EQ(archive->next(member), Next::end);
}

TEST(Archive, AZipHasNamesInAnyLetters) {
  const Members members{{"\xce\xb1/\xd0\xb1", counted(3000)}, {"plain", counted(1)}};
  const Members with_ending{{members[0].first + ".npy", members[0].second}, {"plain.npy", members[1].second}};
  for (const bool is_packed : {false, true})
    EXPECT_EQ(all_of(ArchiveForm::zip, npz(members, is_packed)), std::pair(with_ending, Next::end));
}

TEST(Archive, ReadAllWantsTheContentsLength) {
  const auto tar = tar_of({{"a", counted(100)}, {"b", counted(100)}, {"c", counted(100)}});
  const auto archive = read_archive(ArchiveForm::tar, tar);
  ArchiveMember member;
  for (const std::size_t length : {99, 100, 101}) {
    ASSERT_EQ(archive->next(member), Next::member);
    Bytes contents(length);
    EXPECT_EQ(archive->read_all(contents), length == 100) << length;
  }
}

TEST(Archive, SaysWhatIsDamaged) {
  auto zip = npz({{"a", counted(5000)}});
  zip[500] ^= 1;  // of the contents, whose checksum stands in the archive
  const auto damaged = read_archive(ArchiveForm::zip, zip);
  ArchiveMember member;
  ASSERT_EQ(damaged->next(member), Next::member);
  Bytes contents(static_cast<std::size_t>(member.bytes));
  EXPECT_FALSE(damaged->read_all(contents));
  EXPECT_NE(damaged->reason().find("CRC"), std::string::npos) << damaged->reason();

  zip.resize(zip.size() / 2);  // without the directory at its end
  EXPECT_EQ(all_of(ArchiveForm::zip, zip).second, Next::failed);
  const Bytes other(2000, 'x');
  for (const auto form : {ArchiveForm::tar, ArchiveForm::tar_gzip, ArchiveForm::zip}) {
    const auto none = read_archive(form, other);
    EXPECT_EQ(none->next(member), Next::failed);
    EXPECT_NE(none->reason(), "");
  }
}

TEST(Archive, SaysWhyNothingCanBeWritten) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  const auto archive = write_tar(full);
  const bool is_added = archive->add("a", counted(100'000));
  EXPECT_FALSE(is_added && archive->finish());
  EXPECT_NE(archive->reason().find("No space left"), std::string::npos) << archive->reason();
  ::close(full);
}

}  // namespace
}  // namespace paceline::data
