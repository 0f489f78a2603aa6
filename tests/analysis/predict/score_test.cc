#include "analysis/predict/score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/simulated_steps.h"
#include "analysis/steps/waterfall.h"
#include "base/error.h"

namespace paceline::analysis {
namespace {

using testing::HasSubstr;

struct Predicted12 {
  std::vector<measure::Record> records;
  std::string text;
};

/// A prediction of weak scaling from one and two workers over an emulated link.
Predicted12 predict_from_two(const AddedLink& link) {
  Predicted12 made;
  for (const int workers : {1, 2}) {
    SimulatedRun run{.workers = workers};
    run.link = {.alpha_s = 2 * (workers - 1) * link.latency_s.low};
    auto some = simulate(run, 3);
    made.records.insert(made.records.end(), some.begin(), some.end());
  }
  const auto cells = make_cells(made.records);
  const auto model = step_model(cells);
  const auto forecast_made = forecast(
      model,
      {.workers = {1, 2, 4, 8}, .step = {.batch = 32}, .at_most = {}, .cluster = {}, .emulated = link});
  std::vector<PredictionInput> inputs;
  for (const auto& record : made.records) inputs.push_back({record.id, sha256_of_record(record)});
  made.text = to_json(forecast_made, model, inputs, "paceline predict records", "1", "2026-01-01T00:00:00Z");
  return made;
}

const AddedLink kLink{.latency_s = Range::of(2e-3), .bytes_per_s = Range::of(0)};

std::vector<measure::Record> measured(int workers, double slower = 1) {
  SimulatedRun run{.workers = workers, .forward = 0.1 * slower, .backward = 0.2 * slower};
  run.link = {.alpha_s = 2 * (workers - 1) * kLink.latency_s.low};
  return simulate(run, 3);
}

TEST(Score, RepeatsOfACellAreOneScore) {
  const auto made = predict_from_two(kLink);
  const auto prediction = prediction_from_json(made.text, "P.json");
  const auto records = measured(4);
  const auto scores = score(prediction, make_cells(records));
  ASSERT_EQ(scores.steps.size(), 1U);
  EXPECT_TRUE(scores.steps.front().is_inside());
  EXPECT_NEAR(scores.steps.front().ratio(), 1, 0.02);
  EXPECT_EQ(scores.steps.front().kind, ScoreKind::this_host);
  EXPECT_GT(scores.steps.front().constant_overhead, 0);
}

TEST(Score, TakesNoMachineForAnotherCluster) {
  const auto made = predict_from_two(kLink);
  auto prediction = prediction_from_json(made.text, "P.json");
  EXPECT_TRUE(prediction.is_as_measured);
  prediction.is_as_measured = false;
  const auto records = measured(4);
  const auto scores = score(prediction, make_cells(records));
  EXPECT_TRUE(scores.steps.empty());
  ASSERT_EQ(scores.not_scored.size(), 1U);
  EXPECT_THAT(scores.not_scored.front(), testing::HasSubstr("another cluster"));
}

TEST(Score, LeavesOutSharedCoresAndOtherDevices) {
  const auto made = predict_from_two(kLink);
  const auto prediction = prediction_from_json(made.text, "P.json");
  auto records = measured(4);
  auto cells = make_cells(records);
  for (auto& cell : cells) cell.oversubscribed = true;
  EXPECT_TRUE(score(prediction, cells).steps.empty());
  for (auto& record : records) record.device = "cuda";
  EXPECT_TRUE(score(prediction, make_cells(records)).steps.empty());
}

TEST(Score, IsOfMeans) {
  const auto made = predict_from_two(kLink);
  const auto records = simulate({.workers = 4, .jitter = 0.05}, 1);  // some steps are late: skewed
  const auto cells = make_cells(records);
  const auto scores = score(prediction_from_json(made.text, "P.json"), cells);
  ASSERT_EQ(scores.steps.size(), 1U);
  EXPECT_NEAR(scores.steps.front().measured, SampledSteps(records.front()).lines().total(), 1e-9);
  EXPECT_GT(scores.steps.front().measured, 1.01 * cells.front().step_s.median);
}

TEST(Score, OneSlowRepeatMovesNeitherSide) {
  const auto alike = measured(2);
  auto records = alike;
  records.back() = simulate({.workers = 2, .forward = 0.15, .backward = 0.3}, 1).front();
  records.back().repeat = 2;
  const auto cells = make_cells(records), steady = make_cells(alike);
  ASSERT_EQ(cells.size(), 1U);
  ASSERT_EQ(cells.front().records.size(), 3U);
  const auto of = [](const auto& some) { return step_model(some).steps.front().middle.total(); };
  EXPECT_NEAR(of(cells) / of(steady), 1, 0.02);
  const SampledCell sampled(cells.front());
  EXPECT_GT(sampled.mean().total() / of(steady), 1.1);
  // Draws take the slow repeat twice in a quarter of all cases: then it is the middle one.
  std::size_t slow = 0;
  for (std::size_t i = 0; i < 400; ++i) {
    base::Rng rng(1, base::Purpose::bootstrap, i, 0);
    slow += sampled.draw_middle(rng).total() > 1.2 * of(steady) ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(slow) / 400, 7.0 / 27, 0.06);
}

TEST(Score, CountsMissesBesideIntervalsWithoutWidth) {
  std::vector<Prediction> one(1);
  for (int i = 0; i < 20; ++i)
    one.front().scores.push_back({.workers = 2,
                                  .predicted = {.value = 1, .low = 1, .high = 1.1},
                                  .measured = i < 17 ? 1.01 : 0.5,
                                  .kind = ScoreKind::ghosts});
  ASSERT_TRUE(calibration(one, ScoreKind::ghosts));
  EXPECT_GT(calibration(one, ScoreKind::ghosts)->widening, 100);
}

TEST(Score, SlowerRunLiesOutside) {
  const auto made = predict_from_two(kLink);
  const auto records = measured(4, 1.5);
  const auto scores = score(prediction_from_json(made.text, "P.json"), make_cells(records));
  ASSERT_EQ(scores.steps.size(), 1U);
  EXPECT_FALSE(scores.steps.front().is_inside());
}

TEST(Score, InputsAndOtherRunsAreNotScored) {
  const auto made = predict_from_two(kLink);
  auto records = made.records;
  for (auto& other : measured(4)) {
    other.model.name = "vgg11";
    records.push_back(other);
  }
  for (auto& other : measured(3)) records.push_back(other);
  const auto scores = score(prediction_from_json(made.text, "P.json"), make_cells(records));
  EXPECT_TRUE(scores.steps.empty());
  EXPECT_THAT(scores.not_scored, testing::Contains(HasSubstr("the prediction was made from it")));
  EXPECT_THAT(scores.not_scored, testing::Contains(HasSubstr("vgg11")));
  EXPECT_THAT(scores.not_scored, testing::Contains(HasSubstr("nothing was predicted for 3 workers")));
}

TEST(Score, ScoresAreReadBack) {
  const auto made = predict_from_two(kLink);
  const auto records = measured(4);
  const auto scores = score(prediction_from_json(made.text, "P.json"), make_cells(records));
  const auto again = prediction_from_json(with_scores(made.text, "P.json", scores.steps), "P.json");
  ASSERT_EQ(again.scores.size(), 1U);
  EXPECT_EQ(again.scores.front().measured, scores.steps.front().measured);
  EXPECT_EQ(again.scores.front().kind, ScoreKind::this_host);
  EXPECT_EQ(again.points.size(), 4U);
}

TEST(Score, LaterScoresStandBesideEarlierOnes) {
  auto text = predict_from_two(kLink).text;
  const auto add = [&](int workers, double slower) {
    const auto records = measured(workers, slower);
    text =
        with_scores(text, "P.json", score(prediction_from_json(text, "P.json"), make_cells(records)).steps);
    return prediction_from_json(text, "P.json").scores;
  };
  const double first = add(4, 1).front().measured;
  EXPECT_EQ(add(8, 1).size(), 2U);
  const auto scores = add(4, 1.2);
  ASSERT_EQ(scores.size(), 2U);
  const auto prediction = prediction_from_json(text, "P.json");
  const auto records = measured(4);
  auto twice = score(prediction, make_cells(records)).steps;
  twice.push_back(twice.front());
  EXPECT_EQ(prediction_from_json(with_scores(text, "P.json", twice), "P.json").scores.size(), 3U)
      << "two cells of one call, say of two hosts";
  EXPECT_EQ(scores.front().workers, 8);
  EXPECT_GT(scores.back().measured, 1.1 * first) << "the cell that was measured anew";
}

TEST(Score, DamagedFilesAreRefused) {
  const auto made = predict_from_two(kLink);
  EXPECT_THROW((void)prediction_from_json("{}", "P.json"), base::Error);
  EXPECT_THROW((void)prediction_from_json(made.text.substr(0, made.text.size() / 2), "P.json"), base::Error);
  auto edited = made.text;
  edited.replace(edited.find("\"median\""), 8, "\"Median\"");
  EXPECT_THROW((void)prediction_from_json(edited, "P.json"), base::Error);
}

/// `count` scores whose k-th lies k / count of a half-width of 10 % above.
Prediction with_distances(int count, ScoreKind kind) {
  Prediction prediction;
  for (int i = 1; i <= count; ++i) {
    const double half = std::log(1.1);
    prediction.scores.push_back({.predicted = {1, std::exp(-half), std::exp(half)},
                                 .measured = std::exp(half * i / count),
                                 .cell = "",
                                 .kind = kind});
  }
  return prediction;
}

TEST(Score, TwentyOfAKindCalibrate) {
  const std::vector<Prediction> few{with_distances(19, ScoreKind::ghosts)},
      mixed{with_distances(19, ScoreKind::ghosts), with_distances(19, ScoreKind::this_host)},
      enough{with_distances(20, ScoreKind::ghosts)};
  EXPECT_FALSE(calibration(few, ScoreKind::ghosts));
  EXPECT_FALSE(calibration(mixed, ScoreKind::ghosts));
  const auto made = calibration(enough, ScoreKind::ghosts);
  ASSERT_TRUE(made);
  EXPECT_NEAR(made->widening, 19.0 / 20, 1e-9);  // the 19th: 21 times 0.9, rounded up
  EXPECT_FALSE(calibration(enough, ScoreKind::this_host));
}

}  // namespace
}  // namespace paceline::analysis
