/// Which entries of a log are one row: parts of the set, models, folds and ranks are told apart, while lines
/// of training and evaluation of one epoch fill it together; and where a second run begins.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "table/import/files.h"
#include "table/import/metrics_log.h"

namespace paceline::table {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class MetricsRows : public ImportedFiles {};

std::vector<std::string> texts_of(const Table& table, Column column) {
  std::vector<std::string> all;
  for (const auto& row : table.rows) all.push_back(row.knows(column) ? row.text(column) : "?");
  return all;
}

std::vector<std::string> settings_of(const Table& table, const std::string& name) {
  std::vector<std::string> all;
  for (const auto& row : table.rows) all.push_back(row.settings.contains(name) ? row.settings.at(name) : "?");
  return all;
}

TEST_F(MetricsRows, AreToldApartByPartsOfSets) {
  for (const std::string log :
       {"epoch,phase,loss,accuracy\n1,train,1.5,0.4\n1,val,1.6,0.5\n2,train,1.2,0.6\n2,val,1.3,0.7\n",
        "{'mode': 'train', 'epoch': 1, 'step': 50, 'loss': 1.8}\n{'mode': 'train', 'epoch': 1, 'step': 100, "
        "'loss': 1.5}\n{'mode': 'val', 'epoch': 1, 'step': 10, 'loss': 1.6}\n{'mode': 'train', 'epoch': 2, "
        "'step': 150, 'loss': 1.2}\n{'mode': 'val', 'epoch': 2, 'step': 10, 'loss': 1.3}\n"}) {
    const auto table = read(log);
    EXPECT_THAT(texts_of(table, "run"),
                ElementsAre("epoch 1 train", "epoch 1 val", "epoch 2 train", "epoch 2 val"));
    EXPECT_THAT(texts_of(table, "loss"), ElementsAre("1.5", "1.6", "1.2", "1.3"));
    EXPECT_THAT(texts_of(table, "quality_of"),
                ElementsAre("training", "validation", "training", "validation"));
    EXPECT_THAT(texts_of(table, "repeat"), Each("?"));
    EXPECT_THAT(table.notes, Contains(HasSubstr("(train, val) tells rows of one epoch apart")));
    EXPECT_THAT(table.notes, Not(Contains(HasSubstr("not known of which"))));
  }
  const auto apart = read("epoch,split,loss,accuracy\n1,Training,1.5,\n1,eval,,0.5\n");
  EXPECT_THAT(settings_of(apart, "split"), ElementsAre("Training", "eval"));
  EXPECT_THAT(texts_of(apart, "accuracy"), ElementsAre("?", "0.5"));
  EXPECT_THAT(texts_of(apart, "quality_of"), ElementsAre("training", "?")) << "of validation or of test";
  EXPECT_EQ(part_of_set("train_test"), "");
  EXPECT_EQ(part_of_set("on_val_end"), "validation");
}

TEST_F(MetricsRows, AreToldApartByModelsAndRanks) {
  const auto models =
      read("arch,epoch,loss\nresnet,1,1.5\nresnet,2,1.4\nvit/b,1,1.3\nvit/b,2,1.2\nresnet,1,1.1\n");
  EXPECT_THAT(settings_of(models, "arch"), ElementsAre("resnet", "resnet", "vit/b", "vit/b", "resnet"));
  EXPECT_THAT(texts_of(models, "repeat"), ElementsAre("1", "1", "1", "1", "2"));
  EXPECT_THAT(texts_of(read("Model,epoch,loss\na,9,1.5\nb,9,1.4\n"), "model"), ElementsAre("a", "b"));
  const auto ranks = read(
      "{\"rank\": 0, \"fold\": 1.0, \"epoch\": 0, \"loss\": 1.5}\n{\"rank\": 1, \"fold\": 1.0, \"epoch\": 0, "
      "\"loss\": 1.4}\n{\"rank\": 0, \"fold\": 2.0, \"epoch\": 0, \"loss\": 1.3}\n{\"rank\": 1, \"fold\": "
      "2.0, \"epoch\": 0, \"loss\": 1.2}\n");
  EXPECT_THAT(settings_of(ranks, "rank"), ElementsAre("0", "1", "0", "1"));
  EXPECT_THAT(settings_of(ranks, "fold"), ElementsAre("1", "1", "2", "2"));
  EXPECT_THAT(texts_of(ranks, "loss"), ElementsAre("1.5", "1.4", "1.3", "1.2"));
  EXPECT_THAT(texts_of(ranks, "run"), Each(HasSubstr("rank ")));
  const auto any = read("epoch,who,loss\n1,anna,1.5\n1,bert,1.6\n2,anna,1.4\n2,bert,1.3\n");
  EXPECT_THAT(settings_of(any, "who"), ElementsAre("anna", "bert", "anna", "bert"));
  EXPECT_THAT(texts_of(read("epoch,seed,loss\n1,7,1.5\n1,8,1.6\n"), "seed"), ElementsAre("7", "8"));
}

TEST_F(MetricsRows, OfTrainingAndEvaluationStayOne) {
  const GivenFacts both{{"loss", "train_loss"}, {"accuracy", "val_acc"}};
  for (
      const std::string log :
      {"epoch,step,logger,train_loss,val_acc\n0,99,csv,1.5,\n0,99,csv,,0.5\n1,199,csv,1.2,\n1,199,csv,,0.6\n",
       "epoch,step,host,train_loss,val_acc\n0,99,a,1.5,\n0,99,b,,0.5\n1,199,a,1.2,\n1,199,b,,0.6\n",
       "epoch,time,train_loss,val_acc\n0,10:22:01,1.5,\n0,10:22:09,,0.5\n1,10:23:01,1.2,\n1,10:23:09,,0.6\n",
       "epoch,is_best,note,train_loss,val_acc\n0,no,,1.5,\n0,yes,good,,0.5\n1,no,,1.2,\n1,yes,better,,0.6\n",
       "epoch,rank,train_loss,val_acc\n0,0,1.5,\n0,0,,0.5\n1,0,1.2,\n1,0,,0.6\n"}) {
    const auto table = read(log, both);
    EXPECT_THAT(texts_of(table, "run"), ElementsAre("epoch 0", "epoch 1")) << log;
    EXPECT_THAT(texts_of(table, "loss"), ElementsAre("1.5", "1.2")) << log;
    EXPECT_THAT(texts_of(table, "accuracy"), ElementsAre("0.5", "0.6")) << log;
  }
  const auto warm = read(
      "epoch,stage,best,loss\n1,warmup,yes,1.5\n2,warmup,no,1.4\n3,cosine,yes,1.3\n1,warmup,no,1.2\n"
      "2,cosine,yes,1.1\n3,cosine,no,1\n");
  EXPECT_THAT(settings_of(warm, "stage"), Each("?")) << "it changes in the course of each run";
  EXPECT_THAT(texts_of(warm, "repeat"), ElementsAre("1", "1", "1", "2", "2", "2"));
  const auto spread = read("step,tag,value\n1,loss,1.2\n1,accuracy,0.5\n2,loss,1.0\n2,accuracy,0.6\n");
  EXPECT_THAT(texts_of(spread, "run"), ElementsAre("step 1", "step 2"));
}

TEST_F(MetricsRows, TakeEvaluationsThatCameLate) {
  const std::string train = "{{\"step\": {}, \"loss\": 1.5, \"time\": 7}}\n",
                    eval = "{{\"step\": {}, \"accuracy\": 0.5, \"time\": 8}}\n";
  const auto log = [&](std::initializer_list<std::pair<bool, int>> entries) {
    std::string text;
    for (const auto& [is_eval, step] : entries)
      text += fmt::format(fmt::runtime(is_eval ? eval : train), step);
    return text;
  };
  const auto late = read(log({{false, 500}, {false, 700}, {true, 500}, {false, 710}, {true, 710}}));
  EXPECT_THAT(texts_of(late, "run"), ElementsAre("step 500", "step 700", "step 710"));
  EXPECT_THAT(texts_of(late, "accuracy"), ElementsAre("0.5", "?", "0.5"));
  EXPECT_THAT(texts_of(late, "repeat"), Each("?"));
  const auto crossed = read(log({{false, 500}, {false, 600}, {true, 600}, {true, 500}, {false, 700}}));
  EXPECT_THAT(texts_of(crossed, "accuracy"), ElementsAre("0.5", "0.5", "?"));
  const auto again =
      read(log({{false, 500}, {false, 700}, {true, 700}, {false, 64}, {false, 128}, {true, 128}}));
  EXPECT_THAT(texts_of(again, "run"), ElementsAre("step 500", "step 700", "step 64", "step 128"));
  EXPECT_THAT(texts_of(again, "repeat"), ElementsAre("1", "1", "2", "2"));
  const auto epochs = read("epoch,loss,accuracy\n0,1.5,\n1,1.4,\n0,,0.5\n2,1.3,\n1,,0.6\n");
  EXPECT_THAT(texts_of(epochs, "accuracy"), ElementsAre("0.5", "0.6", "?"));
}

}  // namespace
}  // namespace paceline::table
