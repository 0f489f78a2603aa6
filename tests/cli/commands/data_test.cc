/// Image folders through the real program: info, verify, pack, and trainings that start from them.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <thread>

#include "base/file.h"
#include "cli/program.h"
#include "data/get/get.h"
#include "data/get/server.h"
#include "data/image/pictures.h"
#include "measure/record.h"

namespace paceline::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

using Words = std::vector<std::string>;

/// A PPM of one colour that differs with `seed`.
std::string picture(int side, int seed) {
  std::string file = "P6\n" + std::to_string(side) + " " + std::to_string(side) + "\n255\n";
  for (int i = 0; i < side * side; ++i)
    for (int c = 0; c < 3; ++c) file += static_cast<char>((seed * (40 + 60 * c) + i * seed) % 256);
  return file;
}

class Images : public testing::Test {
 protected:
  Images() {
    for (const char* part : {"train", "test"})
      for (const char* name : {"/a/", "/b/"})
        for (int i = 0; i < 16; ++i) {
          const std::string folder = std::string("images/") + part + name;
          std::filesystem::create_directories(folder_.path() / folder);
          folder_.write(folder + std::to_string(10 + i) + ".ppm",
                        picture(8 + i, 2 * i + (name[1] - 'a') + 100 * (part[1] == 'e')));
        }
  }
  Outcome run(const Words& words) const { return run_program(words, {.directory = folder_.path()}); }
  /// A training of an epoch; `out` is where its record and checkpoint go.
  Outcome train(const std::string& spec, const std::string& out, const Words& more = {}) const {
    Words words{"train",    "--model", "resnet8-cifar", "--data", spec,       "--local-batch", "8",
                "--epochs", "1",       "--threads",     "1",      "--no-pin", "--out",         out};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  [[nodiscard]] measure::Record record(const std::string& out) const {
    return measure::read_record(folder_.path() / out / "record.json");
  }
  const Folder folder_;
};

TEST_F(Images, AreDescribedAndVerified) {
  const auto info = run({"data", "info", "folder:images"});
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_THAT(info.out, AllOf(HasSubstr("2 classes"), HasSubstr("PPM RGB 32"), HasSubstr("8 / 16 / 23")));
  const auto whole = run({"data", "verify", "folder:images"});
  EXPECT_EQ(whole.code, 0) << whole.err;
  EXPECT_THAT(whole.out, AllOf(HasSubstr("all 64 images decode"), HasSubstr("in both train and test: none")));

  folder_.write("images/train/a/cut.jpg", "\xff\xd8\xff\xe0 no more than this");
  folder_.write("images/test/b/twin.ppm", picture(8, 0));  // as train/a/10.ppm is
  const auto broken = run({"data", "verify", "folder:images"});
  EXPECT_EQ(broken.code, 3);
  EXPECT_THAT(broken.out, AllOf(HasSubstr("broken: images/train/a/cut.jpg"),
                                HasSubstr("in both train and test: 1, of them 1 under another class")));
  EXPECT_THAT(broken.err, HasSubstr("1 of 66 images are broken"));
}

TEST_F(Images, AreNamedUnevenFromFourTimesOn) {
  const auto info = [&] { return run({"data", "info", "folder:uneven"}).out; };
  for (const char* part : {"train", "test"})
    for (int i = 0; i < 15; ++i)
      folder_.write(fmt::format("uneven/{}/{}/{}.ppm", part, i < 12 ? "a" : "b", i), picture(8, i));
  EXPECT_THAT(info(), HasSubstr("the largest class has 4 times the training images of the smallest"));
  folder_.write("uneven/train/b/15.ppm", picture(8, 15));
  EXPECT_THAT(info(), testing::Not(HasSubstr("training images of the smallest")));
}

// A list that is the input of the next step was cut after 20 names, like a message.
TEST_F(Images, BrokenOrTwiceAreAllNamed) {
  for (int i = 0; i < 25; ++i) {
    folder_.write("images/train/a/broken-" + std::to_string(i) + ".jpg", "\xff\xd8\xff\xe0 cut");
    folder_.write("images/train/b/twin-" + std::to_string(i) + ".ppm", picture(8, 0));
  }
  const auto count = [](const std::string& text, const std::string& what) {
    int found = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
  };
  const auto verified = run({"data", "verify", "folder:images"});
  EXPECT_EQ(verified.code, 3);
  EXPECT_EQ(count(verified.out, "broken: images/train/a/broken-"), 25);
  EXPECT_EQ(count(verified.out, "  images/train/b/twin-"), 25);
  EXPECT_THAT(verified.out, testing::Not(HasSubstr(" more")));
  const auto info = run({"data", "info", "folder:images"});
  EXPECT_THAT(info.out, AllOf(HasSubstr("broken: and 5 more"), HasSubstr("'paceline data verify'")));
}

TEST_F(Images, AreListedInAFile) {
  folder_.write("images/train/a/twin, b.ppm", picture(8, 1));  // as train/b/10.ppm is
  folder_.write("images/train/As/cut.jpg", "\xff\xd8\xff\xe0 cut");
  for (const char* name : {"red_fox", "Red Foxes", "red-fox"})
    folder_.write("images/train/" + std::string(name) + "/1.ppm", picture(9, 90 + name[3]));
  const auto verified = run({"data", "verify", "folder:images", "--list", "found.csv"});
  EXPECT_EQ(verified.code, 3) << verified.err;
  const auto list = base::read_file(folder_.path() / "found.csv");
  EXPECT_THAT(
      list,
      AllOf(
          testing::StartsWith("finding,part,first,second,reason\n"),
          HasSubstr(
              "duplicate,inside train,images/train/b/10.ppm,\"images/train/a/twin, b.ppm\",another class\n"),
          HasSubstr("broken,train,images/train/As/cut.jpg,,"),
          HasSubstr("class without images,train,As,,all 1 images are broken\n"),
          HasSubstr("alike classes,,red-fox,red_fox,\n")));
  EXPECT_EQ(run({"data", "info", "folder:images", "--list", "found.csv"}).code, 2);
}

TEST_F(Images, OneBrokenIsAnErrorOrLeftOut) {
  folder_.write("images/train/a/cut.jpg", "\xff\xd8\xff\xe0 no more than this");
  const auto refused = train("folder:images,size=16", "refused", {"--epochs", "2"});
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("images/train/a/cut.jpg"), HasSubstr("--bad-images skip")));
  const auto skipped = train("folder:images,size=16", "skipped", {"--bad-images", "skip"});
  EXPECT_EQ(skipped.code, 0) << skipped.err;
  EXPECT_EQ(record("skipped").data.train_samples, 32);
  EXPECT_THAT(record("skipped").notes, Contains(HasSubstr("1 of 33 training images are broken")));
}

TEST_F(Images, OfOtherFormatsAreSearchedForDuplicatesToo) {
  EXPECT_THAT(run({"data", "verify", "synthetic,train=40,test=20"}).out,
              AllOf(HasSubstr("inside train: none"), HasSubstr("in both train and test: none")));
  // Four images, five times over; one of them again in the test set, with another label.
  std::string batch;
  for (int i = 0; i < 4; ++i) batch += static_cast<char>(i) + std::string(3072, static_cast<char>(i));
  std::filesystem::create_directories(folder_.path() / "cifar");
  for (int i = 1; i <= 5; ++i) folder_.write("cifar/data_batch_" + std::to_string(i) + ".bin", batch);
  folder_.write("cifar/test_batch.bin",
                std::string(1, 9) + std::string(3072, 2) + std::string(1, 9) + std::string(3072, 77));
  EXPECT_THAT(run({"data", "verify", "cifar10:cifar"}).out,
              AllOf(HasSubstr("inside train: 16, of them 0 under another label"),
                    HasSubstr("in both train and test: 1, of them 1 under another label"),
                    HasSubstr("inside test: none")));
}

TEST_F(Images, ArePackedWithoutTheBrokenWhereThatIsAsked) {
  folder_.write("images/train/a/cut.jpg", "\xff\xd8\xff\xe0 no more than this");
  const auto refused = run({"data", "pack", "folder:images", "packed.tar"});
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("images/train/a/cut.jpg"), HasSubstr("--bad-images skip")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "packed.tar"));
  const auto packed = run({"data", "pack", "folder:images", "packed.tar", "--bad-images", "skip"});
  EXPECT_EQ(packed.code, 0) << packed.err;
  EXPECT_THAT(packed.out, AllOf(HasSubstr("1 of 33 training images are broken"), HasSubstr("64 images")));
  EXPECT_THAT(run({"data", "verify", "folder:packed.tar"}).out, HasSubstr("all 64 images decode"));
}

TEST_F(Images, PackedGiveTheSameTraining) {
  ASSERT_EQ(run({"data", "pack", "folder:images", "packed.tar"}).code, 0);
  ASSERT_EQ(run({"data", "pack", "folder:images", "pixels.tar", "--decoded"}).code, 0);
  const auto checkpoint = [&](const std::string& spec, const std::string& out, const Words& more = {}) {
    const auto outcome = train(spec + ",size=16,jitter=0.3", out, more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return base::read_file(folder_.path() / out / "checkpoint-00000004.safetensors");
  };
  // The headers differ: names and lengths of the files are those of the archive.
  const auto arrays = [](const std::string& bytes) {
    std::uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof header);
    return bytes.substr(sizeof header + header);
  };
  const auto folder = arrays(checkpoint("folder:images", "1"));
  ASSERT_GT(folder.size(), 10'000u);
  EXPECT_EQ(arrays(checkpoint("folder:packed.tar", "2")), folder);
  EXPECT_EQ(arrays(checkpoint("folder:pixels.tar", "3", {"--loader-threads", "3"})), folder);
  EXPECT_EQ(run({"data", "pack", "synthetic", "x.tar"}).code, 2);
  EXPECT_EQ(run({"data", "pack", "folder:images", "no/such/folder.tar"}).code, 3);
}

TEST_F(Images, GiveTheSameBitsForAnyWorkersAndLoaderThreads) {
  const auto checkpoint = [&](const char* workers, const char* loader_threads) {
    const std::string out = std::string("w") + workers + "t" + loader_threads;
    const auto outcome = run({"train",
                              "--model",
                              "resnet8-cifar",
                              "--data",
                              "folder:images,size=16,crop-area=0.3,jitter=0.3",
                              "--global-batch",
                              "8",
                              "--shard",
                              "2",
                              "--workers",
                              workers,
                              "--loader-threads",
                              loader_threads,
                              "--epochs",
                              "1",
                              "--threads",
                              "1",
                              "--no-pin",
                              "--out",
                              out});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return base::read_file(folder_.path() / out / "checkpoint-00000004.safetensors");
  };
  const auto one = checkpoint("1", "1");
  EXPECT_EQ(checkpoint("2", "3"), one);
  EXPECT_EQ(checkpoint("4", "2"), one);
}

// JPEGs of half a million pixels of noise for a network of one layer that sees 8x8 of them: 50 ms of
// work for the loader in a step that takes far below a millisecond.
TEST_F(Images, TooLargeForTheStepsAreCalledTheLimit) {
  constexpr int kSide = 700;
  unsigned noise = 1;
  const auto pixels = data::painted(kSide, kSide, [&](int, int) {
    noise = noise * 1664525u + 1013904223u;
    return data::Rgb{static_cast<std::uint8_t>(noise >> 24), static_cast<std::uint8_t>(noise >> 16), 0};
  });
  const auto bytes = data::jpeg(pixels);
  const std::string file(bytes.begin(), bytes.end());
  for (const char* name : {"a", "b"})
    for (int i = 0; i < 4; ++i) {
      const std::string folder = std::string("large/train/") + name;
      std::filesystem::create_directories(folder_.path() / folder);
      folder_.write(folder + "/" + std::to_string(i) + ".jpg", file);
    }
  folder_.write("one-layer.toml",
                "name = \"one-layer\"\n[[layer]]\nop = \"global_average_pool\"\n[[layer]]\nop = \"dense\"\n"
                "name = \"fc\"\nfeatures = \"classes\"\n");
  const auto outcome =
      run({"train", "--model", "one-layer.toml", "--data", "folder:large,size=8", "--local-batch", "6",
           "--steps", "12", "--threads", "1", "--no-pin", "--evaluate-every", "0", "--out", "slow"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("The loader is a limit: steps wait for data"));
  const auto rank = record("slow").ranks.at(0);
  EXPECT_GT(rank.loader_waits.value_or(0), 6);
  EXPECT_LT(rank.loader_ready.value_or(2), 1);
  EXPECT_EQ(rank.loader_queue, 2);
  EXPECT_GT(rank.loader_processor_s.value_or(0), 0);
  const auto report = run({"report", "slow", "--tables"});
  // Word by word: where lines break depends on the figures. Beside busy programs the loader waits for a core,
  // and that is what is said.
  EXPECT_THAT(report.out,
              AllOf(HasSubstr("The loader is a limit"), HasSubstr("--loader-threads"),
                    testing::AnyOf(HasSubstr("--decoded"),
                                   testing::ContainsRegex("[(]or[ \n]+for[ \n]+a[ \n]+core[)]"))));
}

TEST_F(Images, AValidationPartChoosesTheEpoch) {
  const auto outcome = train("folder:images,size=16", "o", {"--validation-split", "0.25", "--epochs", "2"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("validation"), HasSubstr("best epoch by validation accuracy")));
  const auto found = record("o");
  EXPECT_EQ(found.data.train_samples, 24);
  EXPECT_EQ(found.data.validation_samples, 8);
  ASSERT_EQ(found.epochs.size(), 2u);
  for (const auto& epoch : found.epochs) {
    ASSERT_TRUE(epoch.validation_accuracy && epoch.validation_loss);
    EXPECT_EQ(*epoch.validation_accuracy * 8, std::round(*epoch.validation_accuracy * 8));
  }
  EXPECT_EQ(found.settings.at("validation-split"), "0.25");
  EXPECT_THAT(found.notes, Contains(HasSubstr("best epoch by validation accuracy")));
}

TEST_F(Images, OpenFromTheirManifestUntilAFolderChanges) {
  const auto written = run({"data", "manifest", "folder:images"});
  EXPECT_EQ(written.code, 0) << written.err;
  EXPECT_THAT(written.out, HasSubstr("64 images in 7 folders"));
  const auto info = run({"data", "info", "folder:images"});
  EXPECT_THAT(info.out, AllOf(HasSubstr("32 training and 32 test"), testing::Not(HasSubstr("manifest"))));
  std::filesystem::remove(folder_.path() / "images/train/a/10.ppm");
  const auto changed = run({"data", "info", "folder:images"});
  EXPECT_THAT(changed.out, AllOf(HasSubstr("31 training"), HasSubstr("the manifest was not used")));
  EXPECT_EQ(run({"data", "manifest", "synthetic"}).code, 2);
  EXPECT_EQ(run({"data", "manifest", "folder:nowhere"}).code, 2);
}

}  // namespace

// `data get` as a student meets it: what is said, and what is left, when a download goes wrong.

namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

TEST(DataGet, NamesWhatIsMissingAndTouchesNothing) {
  const Folder folder;
  const data::Server server;  // has none of the files
  const auto missing =
      run_program({"data", "get", "fashion-mnist", "--from", server.address(), "--cache", "c"},
                  {.directory = folder.path()});
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("train-images-idx3-ubyte.gz could not be downloaded"),
                                 HasSubstr("404"), HasSubstr("--from")));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "c/fashion-mnist"));
  const auto unknown = run_program({"data", "get", "mnsit"}, {.directory = folder.path()});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'mnist'"));
  const auto elsewhere = run_program({"data", "get", "fruits-360"}, {.directory = folder.path()});
  EXPECT_EQ(elsewhere.code, 2);
  EXPECT_THAT(elsewhere.err, HasSubstr("train with --data folder:DIR"));
}

/// The set of fashion-mnist as this server gives it: the right lengths, zeros for bytes.
void give_lookalikes(data::Server& server, const std::vector<data::Behaviour>& behaviours = {{}}) {
  for (const auto& package : data::packages())
    if (package.name == "fashion-mnist")
      for (const auto& file : package.files)
        server.give(file.name, std::string(static_cast<std::size_t>(file.bytes), '\0'), behaviours);
}

Outcome get_fashion(const data::Server& server, RunConditions circumstances, const std::string& cache = "c") {
  return run_program({"data", "get", "fashion-mnist", "--from", server.address(), "--cache", cache},
                     circumstances);
}

TEST(DataGet, ThrowsAwayWhatHasTheRightLengthAndTheWrongSum) {
  const Folder folder;
  data::Server server;
  give_lookalikes(server, {{.break_after = 1000}, {}});  // and the transfer breaks, once
  const auto outcome = get_fashion(server, {.directory = folder.path()});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("train-images-idx3-ubyte.gz: "));
  EXPECT_THAT(outcome.err, HasSubstr("; again in 1 s"));
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("of 26.4 MB"), HasSubstr("its SHA-256 is "),
                                 HasSubstr("that of the publisher's file is 3aede38d"),
                                 HasSubstr("was deleted"), HasSubstr("login page")));
  EXPECT_THAT(server.requests(), Contains("/train-images-idx3-ubyte.gz from 1000"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "c/fashion-mnist"));
}

TEST(DataGet, SaysThatTheDiskIsFullAndGoesOnOnceItIsNot) {
  const Folder folder;
  data::Server server;
  give_lookalikes(server);
  const auto full = get_fashion(server, {.directory = folder.path(), .largest_file = 100000});
  EXPECT_EQ(full.code, 3);
  EXPECT_THAT(full.err, AllOf(HasSubstr("train-images-idx3-ubyte.gz.part: cannot be written: File too large"),
                              HasSubstr("is the disk full")));
  EXPECT_EQ(server.requests().size(), 1u) << "a full disk is no reason to ask the server again";
  (void)get_fashion(server, {.directory = folder.path()});
  EXPECT_THAT(server.requests(), Contains("/train-images-idx3-ubyte.gz from 100000"));
}

TEST(DataGet, SaysWhereItMayNotWrite) {
  const Folder folder;
  const data::Server server;
  folder.write("file", "no folder");
  const auto outcome = get_fashion(server, {.directory = folder.path()}, "file/c");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("file/c/downloads/fashion-mnist: cannot be made: Not a directory"),
                                 HasSubstr("give another folder with --cache")));
  EXPECT_TRUE(server.requests().empty());
}

TEST(DataGet, InterruptedKeepsWhatHasComeAndGoesOn) {
  const Folder folder;
  data::Server server;
  give_lookalikes(server, {{.break_after = 1 << 20}, {.silent = true}});
  Program program({"data", "get", "fashion-mnist", "--from", server.address(), "--cache", "c"},
                  {.directory = folder.path()});
  ASSERT_TRUE(program.wait_for("of 26.4 MB"));
  while (server.requests().size() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  program.signal(SIGINT);
  const auto stopped = program.finish();
  EXPECT_EQ(stopped.code, 130);
  EXPECT_THAT(stopped.err, HasSubstr("stopped; the same command continues where this one stopped"));
  give_lookalikes(server);
  (void)get_fashion(server, {.directory = folder.path()});
  EXPECT_THAT(server.requests(), Contains("/train-images-idx3-ubyte.gz from 1048576"));
}

TEST(DataGet, RefusesAnotherContent) {
  const Folder folder;
  data::Server server;
  server.give("cifar-10-binary.tar.gz", "this is no archive");
  const auto outcome = run_program({"data", "get", "cifar10", "--from", server.address(), "--cache", "c"},
                                   {.directory = folder.path()});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("the server gave 18 bytes of a file of 170052171"));
}

}  // namespace
}  // namespace paceline::cli
