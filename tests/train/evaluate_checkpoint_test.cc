#include "train/evaluate_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

#include "base/file.h"
#include "fixture.h"
#include "forwarding_engine.h"
#include "train/checkpoint/checkpoint.h"
#include "train/classify.h"
#include "train/evaluate.h"

namespace paceline::train {
namespace {

using measure::Record;
using testing::HasSubstr;

class EvaluateCheckpoint : public TrainingTest {
 protected:
  static Record evaluate(const Options& options, const EvaluationRequest& request) {
    return evaluate_checkpoint(options, request, backend_of(options.device), {}, {});
  }
  static std::string refusal(const Options& options, const EvaluationRequest& request) {
    try {
      (void)evaluate(options, request);
    } catch (const base::Error& error) {
      return error.what();
    }
    return "accepted";
  }

  /// The checkpoint of `options` gives, for 1 and 2 workers, what its training said at its end, bit for bit.
  void expect_the_trainings_own_figures(Options options, const std::string& out) {
    options.out = directory_ / out;
    const Record trained = train(options);
    options.local_batch = trained.local_batch;
    options.global_batch = 0;
    for (const int workers : {1, 2}) {
      options.workers = workers;
      const Record record = evaluate(options, {.checkpoint = options.out});
      const auto& evaluation = record.evaluation.value();
      EXPECT_EQ(evaluation.loss, trained.epochs.back().test_loss) << out << ", workers " << workers;
      EXPECT_EQ(static_cast<double>(evaluation.correct) / 40, trained.epochs.back().test_accuracy);
      EXPECT_EQ(evaluation.samples, 40);
      EXPECT_EQ(evaluation.reads, 40);
      std::int64_t sum = 0, diagonal = 0;
      for (std::size_t i = 0; i < evaluation.confusion.size(); ++i) {
        sum +=
            std::accumulate(evaluation.confusion[i].begin(), evaluation.confusion[i].end(), std::int64_t{0});
        diagonal += evaluation.confusion[i].at(i);
      }
      EXPECT_EQ(sum, 40);
      EXPECT_EQ(diagonal, evaluation.correct);
      EXPECT_GE(evaluation.correct_in_5, evaluation.correct);
    }
  }
};

TEST_F(EvaluateCheckpoint, AgreesWithTheTrainingToTheLastDigit) {
  const Options options = small();
  expect_the_trainings_own_figures(options, "plain");
  Options other = options;
  other.device = "reference";
  expect_the_trainings_own_figures(other, "reference");
  other.device = "cuda-on-host";
  expect_the_trainings_own_figures(other, "cuda");
  other = options;
  other.precision = "bf16";
  other.label_smoothing = 0.1;
  other.test_views = 2;
  expect_the_trainings_own_figures(other, "bf16");
  other = options;
  other.workers = 2;
  other.batch_norm = engine::BatchNormMode::synchronised;
  other.shard = 4;
  expect_the_trainings_own_figures(other, "sync");
}

TEST_F(EvaluateCheckpoint, TakesTheBestEpochOfADirectoryAndEitherPart) {
  Options options = small("validated");
  options.validation_split = 0.25;
  options.steps = 0;
  options.epochs = 9;
  options.lr = 1;
  const Record trained = train(options);
  const auto& chosen = trained.chosen.value();
  ASSERT_LT(chosen.epoch, 9) << "another learning rate makes this test look at more";
  options.local_batch = std::exchange(options.global_batch, 0);
  const auto test = evaluate(options, {.checkpoint = options.out}).evaluation.value();
  EXPECT_EQ(test.updates, chosen.updates);
  EXPECT_EQ(test.loss, trained.test_set.value().loss);
  const auto part = evaluate(options, {.checkpoint = options.out, .part = "validation"}).evaluation.value();
  EXPECT_EQ(part.samples, 26);
  EXPECT_EQ(part.loss, chosen.validation_loss);
  const auto newest = checkpoints_in(options.out).front();
  EXPECT_EQ(evaluate(options, {.checkpoint = newest}).evaluation.value().updates,
            trained.epochs.back().updates);
  options.validation_split = 0;
  EXPECT_THAT(refusal(options, {.checkpoint = options.out, .part = "validation"}),
              HasSubstr("has no validation part"));
}

/// 80 images of 40x40 below `images`, of two classes.
void write_stripes(const std::filesystem::path& images) {
  for (int i = 0; i < 80; ++i) {  // shades and stripes
    std::string pixels(40 * 40 * 3, static_cast<char>(3 * i));
    for (std::size_t at = 0; at < pixels.size(); at += 7 + static_cast<std::size_t>(i)) pixels[at] = '\xff';
    const auto folder = images / (i % 4 < 2 ? "train" : "test") / (i % 2 == 0 ? "a" : "b");
    std::filesystem::create_directories(folder);
    base::write_file(folder / (std::to_string(i) + ".ppm"), std::string_view("P6\n40 40\n255\n" + pixels));
  }
}

TEST_F(EvaluateCheckpoint, EvaluationMayHaveItsOwnSize) {
  const auto images = directory_ / "images";
  write_stripes(images);
  const std::string spec = "folder:" + images.string() + ",size=24";
  Options options = small("sized");
  options.model = "resnet8-cifar";
  options.data = spec + ",eval-size=40";
  for (const char* device : {"cpu", "reference", "cuda-on-host"}) {
    options.device = device;
    options.out = directory_ / device;
    const Record trained = train(options);
    EXPECT_EQ(trained.data.eval_size, "40x40");
    EXPECT_GT(trained.memory.plan_lines.count("evaluation: activations"), 0U);
    Options again = options;
    again.local_batch = trained.local_batch;
    again.global_batch = 0;
    for (const std::string& data : {options.data, "folder:" + images.string() + ",size=40"}) {
      again.data = data;
      EXPECT_EQ(evaluate(again, {.checkpoint = options.out}).evaluation.value().loss,
                trained.epochs.back().test_loss)
          << device << " " << data;
    }
    again.data = spec;
    EXPECT_NE(evaluate(again, {.checkpoint = options.out}).evaluation.value().loss,
              trained.epochs.back().test_loss);
    EXPECT_EQ(read_checkpoint_info(options.out).data.evaluated, (data::ImageFormat{40, 40, 3}));
  }
  options.model = "mnist-cnn";
  options.out = directory_ / "dense";
  EXPECT_THAT([&] { (void)train(options); },
              testing::ThrowsMessage<base::Error>(
                  HasSubstr("takes images of 24x24 alone, and none of 40x40; leave eval-size out")));
}

class CountsWarmUps final : public ForwardingEngine {
 public:
  CountsWarmUps(std::unique_ptr<engine::Engine> engine, std::atomic<int>& warm)
      : ForwardingEngine(std::move(engine)), warm_(warm) {}
  void warm_up(const engine::WarmUp& coming) override {
    ForwardingEngine::warm_up(coming);
    ++warm_;
  }

 private:
  std::atomic<int>& warm_;
};

// What it allocates, loads and captures comes before the first collective, like that of the other engine.
TEST_F(EvaluateCheckpoint, WarmsUpTheEngineOfItsSize) {
  write_stripes(directory_ / "images");
  Options options = small("sized");
  options.model = "resnet8-cifar";
  options.data = "folder:" + (directory_ / "images").string() + ",size=24,eval-size=40";
  options.device = "cuda-on-host";
  options.steps = 2;
  for (const int workers : {1, 2}) {
    options.workers = workers;
    options.out = directory_ / ("sized-" + std::to_string(workers));
    std::atomic<int> engines = 0, warm = 0;
    auto backend = backend_of(options.device);
    backend.made_up->on_compile = [&](const graph::Graph& graph, const engine::CompileOptions& how) {
      ++engines;
      return std::make_unique<CountsWarmUps>(engine::compile("cuda-on-host", graph, how), warm);
    };
    Progress progress;
    progress.step = [&](std::int64_t, std::int64_t, double, double) { EXPECT_EQ(warm, 2 * workers); };
    EXPECT_EQ(run(options, backend, {}, progress).status, "complete");
    EXPECT_EQ(engines, 2 * workers);
    EXPECT_EQ(warm, 2 * workers);
  }
}

// Its layers see other shapes, so what the training tried says nothing about them.
TEST_F(EvaluateCheckpoint, TrainingTriesItsAlgorithmsToo) {
  write_stripes(directory_ / "images");
  Options options = small("sized");
  options.model = "resnet8-cifar";
  options.data = "folder:" + (directory_ / "images").string() + ",size=24,eval-size=40";
  options.device = "cuda-on-host";
  options.steps = 1;
  auto backend = backend_of(options.device);
  backend.made_up->on_prepare = [&](const graph::Graph& graph, const engine::CompileOptions& how,
                                    const engine::KernelRequest& asked) {
    auto prepared = engine::prepare("cuda-on-host", graph, how, asked);
    if (graph.input_shape().height == 40) {
      prepared.algorithms = std::make_shared<const engine::KernelAlgorithms>(
          engine::KernelAlgorithms{{"a layer of 40 pixels", "second"}});
      prepared.note = "one algorithm was passed over";
      prepared.passed_over = {{"a layer of 40 pixels", "first", "cannot be started: no"}};
    }
    return prepared;
  };
  int with_both = 0;
  backend.made_up->on_compile = [&](const graph::Graph& graph, const engine::CompileOptions& how) {
    with_both += how.algorithms->count("a layer of 40 pixels") == 1 && how.algorithms->size() > 1 ? 1 : 0;
    return engine::compile("cuda-on-host", graph, how);
  };
  const Record record = run(options, backend, {}, {});
  EXPECT_EQ(with_both, 2);
  EXPECT_THAT(record.notes, testing::Contains(HasSubstr("evaluation: one algorithm was passed over")));
}

TEST_F(EvaluateCheckpoint, TriesAlgorithmsAndNamesThosePassedOver) {
  Options options = small("tried");
  options.device = "cuda-on-host";
  const Record trained = train(options);
  options.local_batch = trained.local_batch;
  options.global_batch = 0;
  const auto algorithms = std::make_shared<const engine::KernelAlgorithms>();
  int prepared = 0, compiled = 0;
  auto backend = backend_of(options.device);
  backend.made_up->on_prepare = [&](const graph::Graph&, const engine::CompileOptions&,
                                    const engine::KernelRequest&) {
    EXPECT_EQ(compiled, 0);
    ++prepared;
    return engine::PreparedKernels{.algorithms = algorithms,
                                   .chosen_by = "heuristics",
                                   .note = "one algorithm was passed over",
                                   .passed_over = {{"forward", "first", "cannot be started: no"}}};
  };
  backend.made_up->on_compile = [&](const graph::Graph& graph, const engine::CompileOptions& how) {
    EXPECT_EQ(how.algorithms, algorithms);
    ++compiled;
    return engine::compile("cuda-on-host", graph, how);
  };
  const Record record = evaluate_checkpoint(options, {.checkpoint = options.out}, backend, {}, {});
  EXPECT_EQ(prepared, 1);
  EXPECT_EQ(compiled, 1);
  EXPECT_THAT(record.notes, testing::Contains("one algorithm was passed over"));

  prepared = compiled = 0;
  write_stripes(directory_ / "images");
  std::vector<std::string> notes;
  classify_images(
      options, {.checkpoint = options.out, .images = {directory_ / "images" / "test"}}, backend, {},
      [&](const ImagesToClassify& given) { notes = given.notes; }, [](const ClassifiedImage&) {});
  EXPECT_EQ(prepared, 1);
  EXPECT_EQ(compiled, 1);
  EXPECT_THAT(notes, testing::Contains("one algorithm was passed over"));
}

// Whoever prepares the images, and for any number of workers.
TEST_F(EvaluateCheckpoint, CountsTopFiveFrom20Classes) {
  for (const char* device : {"cpu", "cuda-on-host"})
    for (const int workers : {1, 2}) {
      Options options = small(std::string(device) + std::to_string(workers));
      options.device = device;
      options.workers = workers;
      options.data = "synthetic,train=96,test=41,classes=20";
      options.validation_split = 0.25;
      options.test_set = TestSet::every;
      const Record trained = train(options);
      const auto& last = trained.epochs.back();
      options.local_batch = std::exchange(options.global_batch, 0);
      options.workers = 1;
      const auto newest = checkpoints_in(options.out).front();
      const auto test = evaluate(options, {.checkpoint = newest}).evaluation.value();
      const auto part = evaluate(options, {.checkpoint = newest, .part = "validation"}).evaluation.value();
      EXPECT_EQ(last.test_top_5, static_cast<double>(test.correct_in_5) / 41) << device << workers;
      EXPECT_EQ(last.validation_top_5,
                static_cast<double>(part.correct_in_5) / static_cast<double>(part.samples));
      EXPECT_GT(*last.test_top_5, *last.test_accuracy);
    }
  Options few = small("few");
  few.data = "synthetic,train=96,test=40,classes=19";
  EXPECT_FALSE(train(few).epochs.back().test_top_5.has_value());
  Options held_back = small("held-back");
  held_back.data = "synthetic,train=96,test=40,classes=20";
  held_back.test_set = TestSet::last;
  const Record record = train(held_back);
  ASSERT_TRUE(record.test_set.value().top_5.has_value());
  EXPECT_EQ(record.epochs.back().test_top_5, record.test_set.value().top_5);
}

TEST_F(EvaluateCheckpoint, OfEqualLogitsTheFirstIsLarger) {
  std::vector<double> logits(20, 1.0);
  for (const int label : {0, 4}) EXPECT_TRUE(is_in_five(logits, label));
  for (const int label : {5, 19}) EXPECT_FALSE(is_in_five(logits, label));
  logits[19] = 2;
  EXPECT_TRUE(is_in_five(logits, 19));
  EXPECT_FALSE(is_in_five(logits, 4));
}

TEST_F(EvaluateCheckpoint, ListsTheMostConfidentMistakesFirst) {
  Options options = small("o");
  options.steps = 2;
  (void)train(options);
  options.local_batch = std::exchange(options.global_batch, 0);
  const auto all = evaluate(options, {.checkpoint = options.out, .mistakes = 1000}).evaluation.value();
  EXPECT_EQ(static_cast<std::int64_t>(all.mistakes.size()), all.samples - all.correct);
  for (std::size_t i = 0; i < all.mistakes.size(); ++i) {
    const auto& mistake = all.mistakes[i];
    EXPECT_NE(mistake.label, mistake.predicted);
    EXPECT_GT(mistake.probability, 0.1);  // of 10 classes the likeliest
    EXPECT_LE(mistake.probability, 1);
    EXPECT_LE(mistake.probability, all.mistakes[i > 0 ? i - 1 : 0].probability);
  }
  const auto few = evaluate(options, {.checkpoint = options.out, .mistakes = 3}).evaluation.value();
  ASSERT_EQ(few.mistakes.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(few.mistakes[i].index, all.mistakes[i].index);
}

TEST_F(EvaluateCheckpoint, NamesTheTensorOfAnotherModel) {
  Options options = small("o");
  options.steps = 2;
  (void)train(options);
  options.model = "resnet8-cifar";
  options.local_batch = std::exchange(options.global_batch, 0);
  EXPECT_THAT(refusal(options, {.checkpoint = options.out}), HasSubstr("conv1.weight"));
  EXPECT_THAT(refusal(options, {.checkpoint = directory_ / "nowhere"}),
              HasSubstr("is neither a checkpoint nor a directory"));
}

}  // namespace
}  // namespace paceline::train
