/// `paceline predict` as a person calls it: from records and from tables, and its score.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/simulated_steps.h"
#include "base/file.h"
#include "cli/program.h"

namespace paceline::cli {
namespace {

using analysis::SimulatedRun;
using testing::AllOf;
using testing::HasSubstr;

constexpr double kLatency_s = 2e-3;
constexpr const char* kLink = "latency=2ms";

Outcome run_in(const Folder& folder, const std::vector<std::string>& line) {
  return run_program(line, {.directory = folder.path()});
}

/// Three repeats of a run over an emulated link.
void write_records(const Folder& folder, const std::string& directory, int workers, double slower = 1) {
  SimulatedRun run{.workers = workers,
                   .forward = 0.1 * slower,
                   .backward = 0.2 * slower,
                   .run_noise = 1e-4};  // repeats with equal times would count as copies of one file
  run.link = {.alpha_s = 2 * (workers - 1) * kLatency_s};
  for (auto& record : simulate(run, 3)) {
    record.settings["emulate-link"] = kLink;
    (void)folder.write(fmt::format("{}/{}.json", directory, record.id), to_json(record));
  }
}

TEST(Predict, SaysStepsKneeLimitAndNext) {
  const Folder folder;
  for (const int workers : {1, 2}) write_records(folder, "records", workers);
  const auto outcome = run_in(folder, {"predict", "records", "--workers", "1:256", "--out", "P.json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("weak scaling, local batch 32"), HasSubstr("efficiency"),
                    HasSubstr("limit       exposed latency"), HasSubstr("next        measure ")));
  const auto json = nlohmann::json::parse(base::read_file(folder.path() / "P.json"));
  EXPECT_EQ(json["schema"], "paceline-prediction-1");
  EXPECT_EQ(json["inputs"].size(), 6U);
  for (const auto& point : json["points"]) {
    double sum = point["ideal_s"];
    for (const auto& [part, seconds] : point["parts_s"].items()) sum += seconds.get<double>();
    EXPECT_NEAR(sum, point["step_s"]["median"].get<double>(), 1e-9);
  }
}

TEST(Predict, MarksTheKneeWithoutANetwork) {
  const Folder folder;
  for (auto& record : analysis::simulate({.workers = 1, .run_noise = 1e-4}, 3))
    (void)folder.write(fmt::format("alone/{}.json", record.id), measure::to_json(record));
  const auto outcome = run_in(folder, {"predict", "alone", "--workers", "1:64"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto begin = outcome.out.find("efficiency  ");
  ASSERT_NE(begin, std::string::npos);
  EXPECT_THAT(outcome.out.substr(begin, outcome.out.find('\n', begin) - begin),
              HasSubstr("at most: no network"));
}

TEST(Predict, ScoreEndsWithOneOutsideTheInterval) {
  const Folder folder;
  for (const int workers : {1, 2}) write_records(folder, "records", workers);
  write_records(folder, "later", 4);
  write_records(folder, "slower", 4, 1.5);
  ASSERT_EQ(run_in(folder, {"predict", "records", "--workers", "1,2,4", "--out", "P.json"}).code, 0);
  const auto inside = run_in(folder, {"predict", "--score", "P.json", "later", "--out", "S.json"});
  EXPECT_EQ(inside.code, 0) << inside.err;
  EXPECT_THAT(inside.out, HasSubstr("1 of 1 cell inside the 90 % interval"));
  EXPECT_EQ(nlohmann::json::parse(base::read_file(folder.path() / "S.json"))["scores"].size(), 1U);
  const auto report = run_in(folder, {"report", "slower", "S.json", "P.json", "--tables"});
  EXPECT_EQ(report.code, 0) << report.err;
  EXPECT_THAT(report.out, HasSubstr("0 of 2 predicted steps inside their 90 % interval"));
  EXPECT_THAT(run_in(folder, {"report", "P.json"}).err,
              HasSubstr("P.json is a prediction: give the records"));
  const auto outside = run_in(folder, {"predict", "--score", "P.json", "slower"});
  EXPECT_EQ(outside.code, 1) << outside.err;
  EXPECT_THAT(outside.out, HasSubstr("OUTSIDE"));
  const auto none = run_in(folder, {"predict", "--score", "P.json", "records"});
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("the prediction was made from it"));
}

struct PublishedModel {
  const char* name;
  double parameters;
  double one_s, two_s, sixteen_s;
};

/// PyTorch 1.4.0a0, V100, 8 a machine, 4 x 100 Gb/s InfiniBand a machine, batch 32 a GPU, medians:
/// pytorch/pytorch, benchmarks/distributed/ddp/README.md. Parameters: torchvision's models.
constexpr PublishedModel kPublished[]{{"resnet50", 25557032, 0.100, 0.103, 0.104},
                                      {"resnet101", 44549160, 0.171, 0.176, 0.179},
                                      {"resnext50_32x4d", 25028904, 0.147, 0.153, 0.157},
                                      {"resnext101_32x8d", 88791336, 0.425, 0.438, 0.450}};

/// NVLink 2 of a V100: six links of 25 GB/s one way.
constexpr const char* kMachines = R"(schema = "paceline-cluster-1"
nodes = 2
workers_per_node = 8
[node.link]
kind = "switch"
GB_per_s = 150
share = [0.75, 0.82]
latency_us = [0.6, 3.4]
[network]
nics_per_node = 4
Gbit_per_s = 100
share = [0.75, 0.96]
latency_us = [2.7, 14]
)";

TEST(Predict, PublishedSixteenFollowFromTwo) {
  const Folder folder;
  (void)folder.write("v100.toml", kMachines);
  for (const auto& one : kPublished) {
    (void)folder.write("t.csv", fmt::format("# model = \"{}\"\n# parameters = {:.0f}\n# local_batch = 32\n"
                                            "# time_of = \"step\"\n# statistic = \"median\"\n"
                                            "workers,nodes,time_s\n1,1,{:.3f}\n2,1,{:.3f}\n",
                                            one.name, one.parameters, one.one_s, one.two_s));
    const auto outcome =
        run_in(folder, {"predict", "t.csv", "--workers", "16", "--cluster", "v100.toml", "--out", "P.json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto json = nlohmann::json::parse(base::read_file(folder.path() / "P.json"));
    ASSERT_EQ(json["inputs"].size(), 2U) << "the table and the cluster";
    EXPECT_EQ(json["inputs"][1]["id"], "v100.toml");
    EXPECT_EQ(json["inputs"][1]["sha256"].get<std::string>().size(), 64U);
    const auto& point = json["points"][0];
    const double predicted = point["step_s"]["median"];
    const double error = std::abs(one.sixteen_s / predicted - 1);
    const double rival = std::abs(one.sixteen_s / point["rivals_s"]["constant overhead"].get<double>() - 1);
    EXPECT_LT(error, 0.03) << one.name << ' ' << predicted;
    EXPECT_LE(error, rival) << one.name << ' ' << predicted;
    EXPECT_GE(one.sixteen_s, point["step_s"]["low"].get<double>());
    EXPECT_LE(one.sixteen_s, point["step_s"]["high"].get<double>());
    EXPECT_THAT(outcome.out + outcome.err, HasSubstr("backward is assumed to be two thirds"));
  }
}

struct PublishedEfficiency {
  const char* name;
  double parameters;
  double images_per_s;  ///< of one GPU
  int gpus;
  double efficiency;
};

/// Horovod, docs/benchmarks.rst and README: 4 Pascal GPUs a server, 25 Gbit/s, batch 64 a GPU, made-up
/// images; efficiencies of 32 and of 128 servers. It gives no rate of one GPU: those are TensorFlow's of the
/// same benchmark on a P100 (tensorflow/docs_src/performance/ benchmarks.md); of ResNet-101 a sixteenth of
/// what Horovod says of 16 GPUs.
constexpr PublishedEfficiency kEfficiencies[]{{"inception-v3", 23834568, 142, 512, 0.90},
                                              {"resnet101", 44549160, 1656.82 / 16, 512, 0.90},
                                              {"vgg16", 138357544, 154, 128, 0.79},
                                              {"vgg16", 138357544, 154, 512, 0.68}};

/// The GPUs of a server as if behind PCIe 3.0 x16, of which the publication says nothing.
constexpr const char* kPascal = R"(schema = "paceline-cluster-1"
nodes = 128
workers_per_node = 4
[worker]
spread = [0.0, 0.03]
[node.link]
kind = "switch"
GB_per_s = 15.75
share = [0.7, 0.85]
latency_us = [3, 10]
[network]
nics_per_node = 1
Gbit_per_s = 25
share = [0.75, 0.96]
latency_us = [2.7, 14]
)";

TEST(Predict, PublishedEfficienciesLieInside) {
  const Folder folder;
  (void)folder.write("pascal.toml", kPascal);
  for (const auto& one : kEfficiencies) {
    (void)folder.write(
        "t.csv", fmt::format("model,workers,local_batch,rate_per_s,parameters\n{},1,64,{},{:.0f}\n", one.name,
                             one.images_per_s, one.parameters));
    const auto outcome = run_in(folder, {"predict", "t.csv", "--workers", std::to_string(one.gpus),
                                         "--cluster", "pascal.toml", "--out", "P.json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto efficiency =
        nlohmann::json::parse(base::read_file(folder.path() / "P.json"))["points"][0]["efficiency"];
    EXPECT_GE(one.efficiency, efficiency["low"].get<double>()) << one.name << ' ' << efficiency;
    EXPECT_LE(one.efficiency, efficiency["high"].get<double>()) << one.name << ' ' << efficiency;
    EXPECT_LT(efficiency["high"].get<double>() - efficiency["low"].get<double>(), 0.4) << one.name;
    EXPECT_NEAR(one.efficiency / efficiency["median"].get<double>(), 1, 0.1) << one.name << ' ' << efficiency;
  }
}

TEST(Predict, BadInputIsNamed) {
  const Folder folder;
  for (const int workers : {1, 2}) write_records(folder, "records", workers);
  struct Bad {
    std::vector<std::string> words;
    const char* said;
  };
  (void)folder.write("wrong.toml",
                     "schema = \"paceline-cluster-1\"\nnodes = 1\nworkers_per_node = 2\n"
                     "[node.link]\nkind = \"switch\"\nGbit_per_s = 300\n");
  (void)folder.write("small.toml",
                     "schema = \"paceline-cluster-1\"\nnodes = 1\nworkers_per_node = 2\n"
                     "[node.link]\nkind = \"switch\"\nGB_per_s = 10\nlatency_us = 1\n");
  (void)folder.write("mixed.csv",
                     "model,workers,local_batch,time_s,time_of\na,1,32,0.1,step\nb,2,32,0.1,step\n");
  (void)folder.write("many.csv", "model,workers,local_batch,time_s,time_of\na,1e10,32,0.1,step\n");
  (void)folder.write("epochs.csv", "model,workers,time_s,time_of\na,1,100,epoch\na,2,60,epoch\n");
  const Bad all[]{
      {{"predict"}, "predict takes what was measured"},
      {{"predict", "records", "--workers", "8:2"}, "must rise"},
      {{"predict", "records", "--what-if", "speed=2x"}, "bandwidth=2x,latency=0.5x"},
      {{"predict", "records", "--efficiency", "2"}, "--efficiency"},
      {{"predict", "records", "--cluster", "dgx-a1000"}, "dgx-a1000"},
      {{"predict", "records", "--cluster", "wrong.toml"}, "wrong.toml"},
      {{"predict", "records", "--cluster", "small.toml", "--workers", "8"}, "8 workers"},
      {{"predict", "mixed.csv"}, "two texts in the column model"},
      {{"predict", "many.csv"}, "whole number from 1 to"},
      {{"predict", "epochs.csv"}, "no row has the time of a step"},
      {{"predict", "--score", "records/none.json", "records"}, "none.json"},
      {{"predict", "--score", "P.json", "records", "--workers", "1:128"},
       "as it was made, without --workers"},
      {{"predict", "--score", "P.json", "records", "--what-if", "bandwidth=2x"}, "without --what-if"},
      {{"predict", "records", "--local-batch", "32", "--global-batch", "64"}, "--global-batch"},
  };
  for (const auto& one : all) {
    const auto outcome = run_in(folder, one.words);
    EXPECT_NE(outcome.code, 0) << one.said;
    EXPECT_THAT(outcome.err, HasSubstr(one.said));
  }
}

}  // namespace
}  // namespace paceline::cli
