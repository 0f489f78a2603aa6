/// Downloads from a server that breaks off, lies and falls silent; and packages as a whole.

#include "data/get/get.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/clock.h"
#include "base/file.h"
#include "base/sha256.h"
#include "data/dataset.h"
#include "data/files.h"
#include "data/get/server.h"
#include "data/image/tar.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string text_of(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(i * i % 251);
  return text;
}

class Download : public testing::Test {
 protected:
  std::string sum(const std::string& body) {
    base::write_file(folder_.path() / "sum", body);
    return base::sha256_of(folder_.path() / "sum");
  }
  RemoteFile file(const std::string& body) {
    return {.name = "f",
            .urls = {server_.address() + "/f"},
            .bytes = static_cast<std::int64_t>(body.size()),
            .sha256 = sum(body)};
  }
  void run(const RemoteFile& file, DownloadOptions options = {.pause_s = 0.01}) {
    download(file, path_, options);
  }
  [[nodiscard]] std::string failure(const RemoteFile& file,
                                    const DownloadOptions& options = {.tries = 2, .pause_s = 0.01}) {
    const auto caught = error_of([&] { download(file, path_, options); });
    EXPECT_EQ(caught.kind, base::ErrorKind::data);
    EXPECT_FALSE(fs::exists(path_)) << "what is not whole and right has no name";
    return caught.text;
  }

  const TemporaryDirectory folder_;
  const fs::path path_ = folder_.path() / "out";
  Server server_;
  const std::string body_ = text_of(300000);
};

TEST(Sha256, IsThatOfTheStandard) {
  const TemporaryDirectory folder;
  base::write_file(folder.path() / "a", "abc");
  EXPECT_EQ(base::sha256_of(folder.path() / "a"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_THAT(error_of([&] { (void)base::sha256_of(folder.path() / "none"); }).text,
              HasSubstr("cannot be read"));
}

TEST_F(Download, BringsTheFile) {
  server_.give("f", body_);
  std::int64_t told = 0;
  run(file(body_), {.progress = [&](const RemoteFile&, std::int64_t have) { told = have; }});
  EXPECT_EQ(base::read_file(path_), body_);
  EXPECT_EQ(told, 300000);
  EXPECT_FALSE(fs::exists(path_.string() + ".part"));
}

TEST_F(Download, GoesOnWhereATransferBroke) {
  server_.give("f", body_, {{.break_after = 100000}, {.break_after = 50000}, {}});
  run(file(body_));
  EXPECT_EQ(base::read_file(path_), body_);
  EXPECT_THAT(server_.requests(), ElementsAre("/f from 0", "/f from 100000", "/f from 150000"));
}

TEST_F(Download, GoesOnWhereAnEarlierCommandEnded) {
  base::write_file(path_.string() + ".part", body_.substr(0, 123456));
  server_.give("f", body_);
  run(file(body_));
  EXPECT_EQ(base::read_file(path_), body_);
  EXPECT_THAT(server_.requests(), ElementsAre("/f from 123456"));
}

TEST_F(Download, NeedsNoServerWhereAllHasCome) {
  base::write_file(path_.string() + ".part", body_);
  run(file(body_));
  EXPECT_EQ(base::read_file(path_), body_);
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(Download, BeginsAnewWhereTheServerGivesNoParts) {
  server_.give("f", body_, {{.break_after = 100000}, {.ranges = false}});
  run(file(body_));
  EXPECT_EQ(base::read_file(path_), body_);
}

TEST_F(Download, BeginsAnewWhereWhatLayThereWasOfAnotherFile) {
  base::write_file(path_.string() + ".part", std::string(1000, 'x'));
  server_.give("f", body_);
  run(file(body_));
  EXPECT_EQ(base::read_file(path_), body_);
  EXPECT_THAT(server_.requests(), ElementsAre("/f from 1000", "/f from 0"));
}

// The server's file changes between two tries: half of the one and half of the other is neither.
TEST_F(Download, BeginsAnewWhereTheFileChangedMeanwhile) {
  std::string before = body_;
  before[1000] ^= 1;
  server_.give("f", before, {{.break_after = 100000, .before = [&] { server_.give("f", body_); }}});
  run(file(body_));
  EXPECT_EQ(base::read_file(path_), body_);
  EXPECT_THAT(server_.requests(), ElementsAre("/f from 0", "/f from 100000", "/f from 0"));
}

TEST_F(Download, ThrowsAnotherContentAway) {
  std::string other = body_;
  other[200000] ^= 1;
  server_.give("f", other);
  EXPECT_THAT(failure(file(body_)), AllOf(HasSubstr("its SHA-256 is " + sum(other)),
                                          HasSubstr("that of the publisher's file is " + sum(body_))));
  EXPECT_EQ(fs::file_size(path_.string() + ".part"), 0u);
}

TEST_F(Download, RefusesAFileThatIsTooLongOrTooShort) {
  server_.give("f", body_ + "more");
  EXPECT_THAT(failure(file(body_)), HasSubstr("longer than 300000 bytes"));
  server_.give("f", body_.substr(0, 1000));
  EXPECT_THAT(failure(file(body_)), HasSubstr("could not be downloaded"));
}

TEST_F(Download, TriesAgainWhereTheServerIsBusyAndNotWhereTheFileIsMissing) {
  server_.give("f", body_, {{.status = 503}, {}});
  std::vector<std::string> said;
  run(file(body_), {.pause_s = 0.01, .say = [&](const std::string& why) { said.push_back(why); }});
  EXPECT_EQ(server_.requests().size(), 2u);
  EXPECT_THAT(said, ElementsAre(AllOf(HasSubstr("/f: "), HasSubstr("503"), HasSubstr("; again in 0.01 s"))));
  fs::remove(path_);
  auto missing = file(body_);
  missing.urls = {server_.address() + "/none"};
  EXPECT_THAT(failure(missing), AllOf(HasSubstr("404"), HasSubstr("/none")));
  EXPECT_EQ(server_.requests().size(), 3u);
}

TEST_F(Download, TakesTheNextAddress) {
  server_.give("f", body_);
  auto moved = file(body_);
  moved.urls.insert(moved.urls.begin(), server_.address() + "/none");
  run(moved);
  EXPECT_EQ(base::read_file(path_), body_);
}

TEST_F(Download, DoesNotWaitForASilentServer) {
  server_.give("f", body_, {{.silent = true}});
  const auto begin = base::Clock::now();
  EXPECT_THAT(failure(file(body_), {.tries = 1, .pause_s = 0.01, .connect_s = 1, .stall_s = 1}),
              HasSubstr("/f: "));
  EXPECT_LT(base::seconds_since(begin), 20);
}

TEST_F(Download, StopsWhenAskedAndKeepsWhatHasCome) {
  std::stop_source stop;
  server_.give("f", body_,
               {{.break_after = 100000}, {.silent = true, .before = [&] { stop.request_stop(); }}});
  EXPECT_THAT(failure(file(body_), {.pause_s = 0.01, .stop = stop.get_token()}), HasSubstr("stopped"));
  EXPECT_EQ(fs::file_size(path_.string() + ".part"), 100000u);
}

TEST_F(Download, IsAloneAtAFile) {
  std::string inner;
  server_.give("f", body_,
               {{.before = [&] { inner = error_of([&] { download(file(body_), path_, {}); }).text; }}});
  run(file(body_));
  EXPECT_THAT(inner, HasSubstr("another process is writing it"));
  EXPECT_EQ(base::read_file(path_), body_);
}

/// A set in MNIST's form, as its publisher would pack it, served from here.
class Packages : public Download {
 protected:
  Packages() {
    package_ = {.name = "small", .directory = "small", .format = "mnist", .source = "this test", .files = {}};
    const auto add = [&](const std::string& name, const Bytes& bytes) {
      const auto packed = gzip(bytes);
      const std::string text(packed.begin(), packed.end());
      server_.give(name, text);
      auto remote = file(text);
      remote.name = name;
      remote.urls = {server_.address() + "/" + name};
      package_.files.push_back(remote);
    };
    for (const std::string part : {"train", "t10k"}) {
      Bytes images{0, 0, 8, 3, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 2};
      for (std::uint8_t i = 0; i < 16; ++i) images.push_back(i);
      add(part + "-images-idx3-ubyte.gz", images);
      add(part + "-labels-idx1-ubyte.gz", Bytes{0, 0, 8, 1, 0, 0, 0, 4, 7, 1, 2, 3});
    }
  }
  Package package_;
};

TEST_F(Packages, AreUnpackedOnceAndKnownAgain) {
  const auto first = get(package_, folder_.path(), {});
  EXPECT_FALSE(first.was_there);
  EXPECT_EQ(open("mnist:" + first.directory.string()).train->size(), 4);
  const auto requests = server_.requests().size();
  const auto second = get(package_, folder_.path(), {});
  EXPECT_TRUE(second.was_there);
  EXPECT_EQ(server_.requests().size(), requests) << "nothing is asked for twice";
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder_.path())) left.insert(entry.path().filename());
  EXPECT_EQ(left, (std::set<std::string>{"downloads", "small", "sum"}));
  EXPECT_TRUE(fs::is_empty(folder_.path() / "downloads"));
}

TEST_F(Packages, LeaveNothingHalfBehind) {
  package_.files[2].sha256 = std::string(64, '0');
  EXPECT_THAT(error_of([&] { (void)get(package_, folder_.path(), {}); }).text, HasSubstr("SHA-256"));
  EXPECT_FALSE(fs::exists(folder_.path() / "small"));
}

TEST_F(Packages, DoNotTouchAFolderOfSomebodyElse) {
  fs::create_directories(folder_.path() / "small");
  base::write_file(folder_.path() / "small" / "mine", "x");
  EXPECT_THAT(error_of([&] { (void)get(package_, folder_.path(), {}); }).text,
              HasSubstr("'data get' did not make it"));
  EXPECT_TRUE(fs::exists(folder_.path() / "small" / "mine"));
}

TEST_F(Packages, OfATarLoseTheFolderInside) {
  {
    TarWriter tar(folder_.path() / "t.tar");
    const Bytes record(3073, 5);
    for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                             "data_batch_5.bin", "test_batch.bin", "../../escape.bin"})
      tar.add(std::string("cifar-10-batches-bin/") + name, record);
    tar.finish();
  }
  const auto tar = base::read_file(folder_.path() / "t.tar");
  const auto packed = gzip(Bytes(tar.begin(), tar.end()));
  const std::string text(packed.begin(), packed.end());
  server_.give("f", text);
  Package package{
      .name = "c", .directory = "c", .format = "cifar10", .source = "this test", .files = {file(text)}};
  package.files[0].name = "c.tar.gz";
  const auto got = get(package, folder_.path() / "cache", {});
  EXPECT_EQ(open("cifar10:" + got.directory.string()).train->size(), 5);
  EXPECT_FALSE(fs::exists(folder_.path() / "escape.bin"));
  EXPECT_TRUE(fs::exists(got.directory / "escape.bin")) << "only its last part counts";
}

// Caltech-256: one folder a class, in a plain archive that the folder reader opens as it is.
TEST_F(Packages, OfAPlainTarIsReadInPlace) {
  const fs::path tar_path = folder_.path() / "t.tar";
  {
    TarWriter tar(tar_path);
    const std::string pixels = "P6\n2 2\n255\n" + std::string(12, 'p');
    for (const std::string folder : {"Objects/001.ak47/", "Objects/002.flag/"})
      for (const char* name : {"1.ppm", "2.ppm", "3.ppm", "4.ppm", "5.ppm", "6.ppm", "RENAME2"})
        tar.add(folder + name, Bytes(pixels.begin(), pixels.end()));
    tar.finish();
  }
  const std::string body = base::read_file(tar_path);
  server_.give("f", body);
  Package package{.name = "c",
                  .directory = "c",
                  .format = "folder",
                  .source = "this test",
                  .files = {file(body)},
                  .read_in_place = "objects.tar"};
  package.files[0].name = "objects.tar";
  const auto got = get(package, folder_.path() / "cache", {});
  EXPECT_EQ(got.spec, "folder:" + (folder_.path() / "cache/c/objects.tar").string());
  const auto source = open(got.spec);
  EXPECT_EQ(source.train->size() + source.test->size(), 12);
  EXPECT_EQ(source.classes(), 2);
  EXPECT_EQ(get(package, folder_.path() / "cache", {}).spec, got.spec) << "known again";
}

TEST(PackageTable, IsWellFormed) {
  for (const auto& package : packages())
    for (const auto& file : package.files) {
      EXPECT_EQ(file.sha256.size(), 64u);
      EXPECT_EQ(file.sha256.find_first_not_of("0123456789abcdef"), std::string::npos);
      EXPECT_GT(file.bytes, 0);
      for (const auto& url : file.urls) EXPECT_TRUE(url.ends_with("/" + file.name)) << url;
    }
}

}  // namespace
}  // namespace paceline::data
