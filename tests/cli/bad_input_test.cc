/// Bad input gets one clear sentence and an exit code: each case is run through the real program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <functional>

#include "program.h"

namespace paceline::cli {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr int kUsage = 2, kData = 3, kMemory = 4;

/// A training that would be short if its input were good.
Words training(const Words& more) {
  Words words{"train", "--model", "resnet8-cifar", "--data", "synthetic,train=128,test=32", "--steps", "2"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// CIFAR-10 as five files of `records` records and a test file of as many.
void write_cifar(const Folder& folder, int records, char label = 3) {
  std::string bytes;
  for (int i = 0; i < records; ++i) bytes += std::string(1, label) + std::string(3072, static_cast<char>(i));
  for (int i = 1; i <= 5; ++i) (void)folder.write("data_batch_" + std::to_string(i) + ".bin", bytes);
  (void)folder.write("test_batch.bin", bytes);
}

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

std::string gzipped(const std::string& bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return "";
  std::string packed(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// MNIST with training images in a .gz that breaks off in the middle.
void write_mnist_with_broken_gzip(const Folder& folder) {
  std::string pixels;
  for (int i = 0; i < 100 * 784; ++i) pixels += static_cast<char>(i * 7919 >> 3);
  const auto images = big_endian(2051) + big_endian(100) + big_endian(28) + big_endian(28) + pixels;
  const auto labels = big_endian(2049) + big_endian(100) + std::string(100, '\1');
  const auto packed = gzipped(images);
  (void)folder.write("train-images-idx3-ubyte.gz", packed.substr(0, packed.size() / 2));
  (void)folder.write("train-labels-idx1-ubyte", labels);
  (void)folder.write("t10k-images-idx3-ubyte", images);
  (void)folder.write("t10k-labels-idx1-ubyte", labels);
}

struct Case {
  const char* name;
  Words words;  ///< DIR in them is the case's folder
  int code;
  std::vector<std::string> says;  ///< each stands in the sentence
  std::function<void(const Folder&)> prepare = [](const Folder&) {};
};

class BadInput : public testing::TestWithParam<Case> {};

TEST_P(BadInput, GetsOneSentenceAndItsExitCode) {
  const auto& given = GetParam();
  const Folder folder;
  given.prepare(folder);
  Words words = given.words;
  for (auto& word : words)
    if (const auto at = word.find("DIR"); at != std::string::npos)
      word.replace(at, 3, folder.path().string());
  const auto outcome = run_program(words, {.directory = folder.path()});
  EXPECT_EQ(outcome.code, given.code) << outcome.err;
  for (const auto& text : given.says) EXPECT_THAT(outcome.err, HasSubstr(text));
  EXPECT_TRUE(outcome.err.starts_with("paceline: ")) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BadInput,
    testing::Values(
        Case{"UnknownCommand", {"trian"}, kUsage, {"no command 'trian'", "did you mean 'train'?"}},
        Case{"UnknownOption",
             training({"--momentumm", "0.9"}),
             kUsage,
             {"--momentumm", "did you mean --momentum?"}},
        Case{"BareBatch", training({"--batch", "32"}), kUsage, {"--local-batch", "--global-batch"}},
        Case{"UnknownModel",
             training({"--model", "resnet18-cifr"}),
             kUsage,
             {"did you mean 'resnet18-cifar'?"}},
        Case{"MissingModelFile", training({"--model", "DIR/net.toml"}), kData, {"net.toml"}},
        Case{"UnknownData", training({"--data", "cifar:DIR"}), kUsage, {"'cifar'", "cifar10"}},
        Case{"BatchZero",
             training({"--global-batch", "0"}),
             kUsage,
             {"--global-batch must be a whole number", "'0'"}},
        Case{"BatchNegative", training({"--local-batch", "-32"}), kUsage, {"--local-batch", "'-32'"}},
        Case{"BothBatches", training({"--local-batch", "8", "--global-batch", "8"}), kUsage, {"both given"}},
        Case{"GlobalBatchOverTheDataSet",
             training({"--global-batch", "256"}),
             kUsage,
             {"256", "128 training samples"}},
        Case{"GlobalBatchNotDivisible",
             training({"--global-batch", "31", "--workers", "2"}),
             kUsage,
             {"31", "30 and 32"}},
        Case{"ShardNotDivisible", training({"--local-batch", "32", "--shard", "5"}), kUsage, {"--shard 5"}},
        Case{"PlanLargerThanMemory",
             {"train", "--model", "resnet18-cifar", "--data", "synthetic,train=2000000,test=10",
              "--local-batch", "2000000", "--workers", "1", "--precision", "fp32", "--steps", "1"},
             kMemory,
             {"GB", "largest"}},
        // It used to go and make the arrays, for as long as the machine bore it.
        Case{"KernelsOfAModelLargerThanMemory",
             {"doctor", "--kernels", "DIR/huge.toml", "--no-measure"},
             kMemory,
             {"--kernels", "huge.toml", "GB", "smaller"},
             [](const Folder& f) {
               std::string model;
               for (const char* features : {"131072", "131072", "\"classes\""})
                 model += std::string("[[layer]]\nop = \"dense\"\nfeatures = ") + features + "\n";
               (void)f.write("huge.toml", model);
             }},
        Case{"DataThatIsABarePath", {"data", "info", "DIR"}, kUsage, {"folder:", "format in front"}},
        Case{"RecipeWithAWrongKey",
             training({"DIR/r.toml"}),
             kUsage,
             {"r.toml:2: ", "momentun", "did you mean momentum?"},
             [](const Folder& f) { (void)f.write("r.toml", "lr = 0.1\nmomentun = 0.9\n"); }},
        Case{"MissingData",
             training({"--data", "cifar10:DIR/nowhere"}),
             kData,
             {"nowhere", "data_batch_1.bin"}},
        Case{"MissingDataFile",
             training({"--data", "cifar10:DIR"}),
             kData,
             {"data_batch_4.bin"},
             [](const Folder& f) {
               write_cifar(f, 40);
               std::filesystem::remove(f.path() / "data_batch_4.bin");
             }},
        Case{"TruncatedDataFile",
             training({"--data", "cifar10:DIR"}),
             kData,
             {"data_batch_2.bin", "truncated"},
             [](const Folder& f) {
               write_cifar(f, 40);
               std::filesystem::resize_file(f.path() / "data_batch_2.bin", 40 * 3073 - 1);
             }},
        Case{"LabelOutOfRange",
             training({"--data", "cifar10:DIR"}),
             kData,
             {"label 11", "0 to 9"},
             [](const Folder& f) { write_cifar(f, 40, 11); }},
        Case{"GzipBreaksOff",
             training({"--model", "mnist-cnn", "--data", "mnist:DIR"}),
             kData,
             {"train-images-idx3-ubyte.gz"},
             write_mnist_with_broken_gzip},
        Case{"OutputIsNoDirectory",
             training({"--out", "DIR/file"}),
             kData,
             {"--out", "file", "Not a directory"},
             [](const Folder& f) { (void)f.write("file", "x"); }},
        Case{"OutputOfAnotherRun",
             training({"--out", "DIR"}),
             kUsage,
             {"--out", "holds another run", "give another --out"},
             [](const Folder& f) { (void)f.write("record.json", "{}"); }},
        Case{"MissingCheckpoint",
             training({"--resume", "DIR/nowhere.safetensors"}),
             kData,
             {"nowhere.safetensors"}},
        Case{"DamagedCheckpoint",
             training({"--resume", "DIR/c.safetensors"}),
             kData,
             {"c.safetensors"},
             [](const Folder& f) { (void)f.write("c.safetensors", "no checkpoint at all"); }},
        Case{"MissingRecord", {"report", "DIR/nowhere.json"}, kData, {"nowhere.json", "no such record"}},
        // What the system refuses where nothing was expected of it was called a bug in paceline.
        Case{"LinkThatLeadsToItself",
             training({"--resume", "DIR/loop"}),
             kData,
             {"loop: ", "symbolic links", "check the path"},
             [](const Folder& folder) {
               std::filesystem::create_symlink(folder.path() / "loop", folder.path() / "loop");
             }},
        Case{"StudyOfNothing",
             {"study", "--no-with-sweep", "--no-with-scale", "--no-with-converge"},
             kUsage,
             {"leave a study nothing to measure"}},
        Case{"DirectoryWithoutRecords", {"report", "DIR"}, kData, {"it holds no record"}},
        Case{"DamagedRecord",
             {"report", "DIR/r.json"},
             kData,
             {"r.json"},
             [](const Folder& f) {
               (void)f.write("r.json", "{\"schema\": \"paceline-record-1\", \"kind\": ");
             }},
        Case{"RecordOfAnotherSchema",
             {"report", "DIR"},
             kData,
             {"paceline-record-99"},
             [](const Folder& f) { (void)f.write("r.json", "{\"schema\": \"paceline-record-99\"}"); }},
        Case{"DataOfNoKnownName", {"data", "info", "minst:DIR"}, kUsage, {"did you mean 'mnist'?"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(BadInput, AnErrorPrintsNothingOnStandardOutputWithJson) {
  const auto outcome = run_program(training({"--json", "--global-batch", "256"}));
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_EQ(outcome.out, "");
}

TEST(BadInput, DoctorNamesAnUnknownModelInsteadOfThisMachine) {
  // It used to be said last, below the machine and what had been measured meanwhile.
  const auto unlike = run_program({"doctor", "--kernels", "transformer"});
  EXPECT_EQ(unlike.code, kUsage);
  EXPECT_EQ(unlike.out, "");
  for (const char* text :
       {"model 'transformer' is not known", "resnet18-cifar", "mnist-cnn", "a file of layers ends in .toml"})
    EXPECT_THAT(unlike.err, HasSubstr(text));
  const auto near = run_program({"doctor", "--kernels", "resnet18-cifr"});
  EXPECT_EQ(near.code, kUsage);
  EXPECT_THAT(near.err, HasSubstr("did you mean 'resnet18-cifar'?"));
  const auto file = run_program({"doctor", "--kernels", "none.toml"});
  EXPECT_EQ(file.code, kData);
  EXPECT_EQ(file.out, "");
  EXPECT_THAT(file.err, HasSubstr("none.toml: cannot be read"));
}

TEST(BadInput, ATimelineThatCannotBeWrittenIsFoundBeforeTheTraining) {
  const Folder folder;
  const auto outcome =
      run_program(training({"--steps", "1000000", "--timeline", "/proc/t.json", "--out", "o"}),
                  {.directory = folder.path()});
  EXPECT_EQ(outcome.code, kData);
  EXPECT_THAT(outcome.err, HasSubstr("/proc/t.json: cannot be written"));
}

TEST(BadInput, TwoRunsAtOnceDoNotShareADirectory) {
  const Folder folder;
  Program first(training({"--out", "o", "--local-batch", "16", "--steps", "1000000"}),
                {.directory = folder.path()});
  ASSERT_TRUE(first.wait_for("epoch 1 "));
  for (const auto& more : {std::vector<std::string>{}, {"--resume", "o"}}) {
    auto words = training({"--out", "o", "--local-batch", "16", "--steps", "1000000"});
    words.insert(words.end(), more.begin(), more.end());
    const auto second = run_program(words, {.directory = folder.path()});
    EXPECT_EQ(second.code, kUsage);
    EXPECT_THAT(second.err, HasSubstr("--out o: another run is writing to it"));
  }
  first.signal(SIGTERM);
  EXPECT_EQ(first.finish().code, 128 + SIGTERM);
}

TEST(BadInput, AFullStandardOutputIsAnError) {
  const auto outcome = run_program({"data", "info", "synthetic,train=20,test=10"},
                                   {.directory = {}, .largest_file = {}, .out_path = "/dev/full"});
  EXPECT_EQ(outcome.code, kData);
  EXPECT_THAT(outcome.err, HasSubstr("standard output could not be written"));
}

TEST(BadInput, ALossThatIsNotFiniteNamesStepRateAndCheckpoint) {
  const Folder folder;
  const auto outcome = run_program(training({"--local-batch", "16", "--lr", "1e30", "--out", "o"}),
                                   {.directory = folder.path()});
  EXPECT_EQ(outcome.code, kData);
  EXPECT_THAT(outcome.err, HasSubstr("step 2 of 2: the loss is no longer finite"));
  EXPECT_THAT(outcome.err, HasSubstr("learning rate 1e+30"));
  EXPECT_THAT(outcome.err, HasSubstr("there is no earlier checkpoint to go back to"));
}

TEST(BadInput, SentencesSayWhatWasMeantAndWhatToDo) {
  const Folder folder;
  const RunConditions here{.directory = folder.path()};
  (void)folder.write("quote.toml", "lr = 0.1\nmodel = \"resnet8-cifar\nsteps = 2\n");
  (void)folder.write("list.toml", "model = \"resnet8-cifar\"\nworkers = [1, 2]\n");
  (void)folder.write("model.toml", "name = \"m\"\n\n[[layer]]\nop = \"flatten\"\n");
  struct Case {
    Words words;
    std::vector<std::string> said;
  };
  for (const auto& [words, said] : std::vector<Case>{
           {{"train", "--data", "synthetic,train=128,test=32", "--epochs", "1e99"},
            {"--epochs 1e+99 of 1 steps is too large", "give at most 1e+15"}},
           {{"train", "--device", "gpu"},
            {"must be one of cpu, reference, cuda, cuda:K, cuda-on-host, got 'gpu'",
             "GPUs are called cuda here"}},
           {{"train", "--device", "cuda:x"},
            {"must have a whole number from 0 to 63 as its K, got 'cuda:x'"}},
           {{"train", "--device", "cuda-on-hosts"}, {"did you mean 'cuda-on-host'?"}},
           {{"train", "quote.toml"}, {"quote.toml:2: not TOML", "most likely a quote is missing"}},
           {{"train", "list.toml"},
            {"list.toml:2: workers is a list, and train takes one number", "paceline scale"}},
           {{"train", "model.toml"}, {"looks like a model file", "--model model.toml"}},
           {{"predict"}, {"records, directories that hold them, or a table of steps"}},
       }) {
    const auto outcome = run_program(words, here);
    EXPECT_EQ(outcome.code, kUsage) << words.back();
    for (const auto& part : said) EXPECT_THAT(outcome.err, HasSubstr(part));
  }
}

}  // namespace
}  // namespace paceline::cli
