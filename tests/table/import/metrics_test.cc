/// What trainers log, in the forms that programs write and people change: which figure belongs to which
/// epoch, in which unit, of which run; and what is said of the rest.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "table/import/files.h"

namespace paceline::table {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Metrics : public ImportedFiles {};

/// The texts of a column in all rows; "?" where it is not known.
std::vector<std::string> texts(const Table& table, Column column) {
  std::vector<std::string> all;
  for (const auto& row : table.rows) all.push_back(row.knows(column) ? row.text(column) : "?");
  return all;
}

std::vector<std::string> names(const Table& table) { return texts(table, Column("run")); }

TEST_F(Metrics, OfASecondRunReplaceNothing) {
  const auto table =
      read("epoch,accuracy,loss\n0,0.50,1.20\n1,0.55,1.10\n2,0.60,1.00\n0,0.70,0.80\n1,0.73,0.70\n");
  EXPECT_THAT(names(table), ElementsAre("epoch 0", "epoch 1", "epoch 2", "epoch 0", "epoch 1"));
  EXPECT_THAT(texts(table, "repeat"), ElementsAre("1", "1", "1", "2", "2"));
  EXPECT_THAT(texts(table, "accuracy"), ElementsAre("0.50", "0.55", "0.60", "0.70", "0.73"));
  EXPECT_THAT(table.notes, Contains(HasSubstr(":5:1: the log holds 2 runs, which 'repeat' tells apart")));
}

TEST_F(Metrics, BelowARepeatedHeaderGoOn) {
  const auto resumed = read("epoch,loss,accuracy\n0,1.2,0.5\n1,1.1,0.6\nepoch,loss,accuracy\n2,1.0,0.7\n");
  EXPECT_THAT(names(resumed), ElementsAre("epoch 0", "epoch 1", "epoch 2"));
  EXPECT_FALSE(resumed.rows[0].knows("repeat"));
  const auto changed = read("epoch,loss,accuracy\n0,1.2,0.5\nepoch,accuracy,lr,loss\n0,0.6,0.1,1.1\n");
  EXPECT_THAT(texts(changed, "accuracy"), ElementsAre("0.5", "0.6"));
  EXPECT_THAT(texts(changed, "repeat"), ElementsAre("1", "2"));
}

TEST_F(Metrics, OfSeveralLinesAnEpochAreSaid) {
  const auto later = read("epoch,step,loss\n0,50,1.5\n0,100,1.2\n1,150,1.0\n");
  EXPECT_THAT(texts(later, "loss"), ElementsAre("1.2", "1.0"));
  EXPECT_THAT(later.notes, Not(Contains(HasSubstr("the last one counts"))));
  const auto mixed = read("epoch,loss\n0,1.5\n0,1.2\n1,1.1\n1,1.0\n");
  EXPECT_THAT(mixed.notes, Contains(HasSubstr("loss of epoch 0 again at")));
}

TEST_F(Metrics, InWordsOfOtherProgramsAreFigures) {
  EXPECT_THAT(texts(read("epoch,loss,accuracy\n1,\"1,2\",\"0,50\"\n2,\"1,0\",\"0,61\"\n"), "accuracy"),
              ElementsAre("0.50", "0.61"));
  EXPECT_THAT(texts(read("epoch,loss,accuracy\n1,1.2,50.3%\n2,1.0,61.2%\n"), "accuracy"),
              ElementsAre("0.503", "0.612"));
  EXPECT_THAT(
      texts(
          read("epoch,loss\n1,\"tensor(1.2000, device='cuda:0')\"\n2,np.float64(1.1)\n3,\"tensor([0.9])\"\n"),
          "loss"),
      ElementsAre("1.2000", "1.1", "0.9"));
  EXPECT_THAT(texts(read("epoch,loss,time_s\n1/90,1.2,01:30\n2/90,1.1,95.5s\n"), "time_s"),
              ElementsAre("90", "95.5"));
}

TEST_F(Metrics, ThatAreNoNumberAreNamed) {
  EXPECT_THAT(error_of("epoch,loss,accuracy\n1,1.2,0.5\n2,oops,0.6\n"),
              HasSubstr(":3:3: loss is 'oops', which is no number"));
  EXPECT_THAT(error_of("epoch,loss\n1,1.2\nlast,1.1\n"),
              HasSubstr(":3:1: epoch is 'last', which is no number"));
  EXPECT_THAT(error_of("epoch,loss\n1,50%\n"), HasSubstr("loss is '50%'"));
  EXPECT_THAT(error_of("epoch,loss\n1,\"1,234\"\n"), HasSubstr("may be a decimal comma or thousands"));
  EXPECT_THAT(error_of("epoch,accuracy\n1,-0.5\n"), HasSubstr(":2:3: accuracy"));
  const auto empty = read("epoch,loss,accuracy\n1,1.2,NA\n2,,0.6\n3,None,-\n");
  EXPECT_THAT(texts(empty, "loss"), ElementsAre("1.2", "?", "?"));
}

TEST_F(Metrics, OfATrainingThatDivergedStayUnknown) {
  const auto table = read("epoch,loss,accuracy\n1,1.2,0.50\n2,nan,0.10\n3,inf,0.10\n");
  EXPECT_THAT(texts(table, "loss"), ElementsAre("1.2", "?", "?"));
  EXPECT_THAT(table.notes, Contains(AllOf(HasSubstr("loss is nan at"),
                                          HasSubstr(":3:3: the training diverged there; 2 such cells"))));
}

TEST_F(Metrics, HaveTheUnitThatIsGiven) {
  const std::string log = "epoch,eval_loss,eval_top1,minutes\n0,0.6336,78.36,1.5\n1,0.5740,81.39,1.4\n";
  EXPECT_THAT(texts(read(log, {{"accuracy", "eval_top1"}}), "accuracy"), ElementsAre("0.7836", "0.8139"));
  EXPECT_THAT(read(log, {{"accuracy", "eval_top1"}}).notes,
              Contains(HasSubstr("reaches 81.39, so it is read as percent")));
  EXPECT_THAT(texts(read(log, {{"accuracy", "eval_top1%"}}), "accuracy"), ElementsAre("0.7836", "0.8139"));
  EXPECT_THAT(texts(read(log, {{"time_s", "minutes[min]"}}), "time_s"), ElementsAre("9e+01", "8e+01"));
  EXPECT_THAT(error_of(log, {{"time_s", "minutes[weeks]"}}),
              HasSubstr("the unit must be s, ms, min or h, got 'weeks'"));
  EXPECT_THAT(error_of(log, {{"accuracy", "eval_top2%"}}), HasSubstr("no such column"));
  const std::string named = "epoch,Val Acc (%),epoch_ms\n1,0.9,1500\n2,1.1,1400\n";
  EXPECT_THAT(texts(read(named, {{"accuracy", "Val Acc (%)"}}), "accuracy"), ElementsAre("0.009", "0.011"));
  EXPECT_THAT(texts(read(named, {{"time_s", "epoch_ms"}}), "time_s"), ElementsAre("1.500", "1.400"));
  const std::string first = "epoch,train_loss,eval_loss,eval_top1\n0,6.9001,6.8000,0.8720\n";
  EXPECT_THAT(error_of(first, {{"accuracy", "eval_top1"}}),
              HasSubstr("say which with --set 'accuracy=eval_top1[1]' or"));
  EXPECT_THAT(texts(read(first, {{"accuracy", "eval_top1%"}}), "accuracy"), ElementsAre("0.008720"));
  EXPECT_THAT(texts(read(first, {{"accuracy", "eval_top1[1]"}}), "accuracy"), ElementsAre("0.8720"));
}

TEST_F(Metrics, AreRecognisedInTheFormsOfSpreadsheets) {
  for (const std::string text :
       {"\xef\xbb\xbf"
        "epoch,accuracy,loss\n0,0.5,1.2\n1,0.6,1.0\n",
        "Epoch,loss,accuracy\n0,1.2,0.5\n1,1.0,0.6\n",
        "# 4 GPUs, 1 May\nepoch,loss,accuracy\n0,1.2,0.5\n1,1.0,0.6\n",
        "epoch;accuracy;loss\n0;0,5;1,2\n1;0.6;1.0\n",
        "epoch\taccuracy\tloss\r\n0\t0.5\t1.2\r\n1\t0.6\t1.0\r\n",
        "# epoch,loss,accuracy\n0,1.2,0.5\n1,1.0,0.6\n",
        "epoch     loss  accuracy\n0  1.2  0.5\n1  1.0  0.6\n",
        "   EPOCH ,  LOSS ,  ACCURACY ,\n 0, 1.2, 0.5,\n 1, 1.0, 0.6,\n",
        "\"epoch\",\"loss\",\"accuracy\"\n\"0\",\"1.2\",\"0.5\"\n\"1\",\"1.0\",\"0.6\"\n"}) {
    const auto table = read(text);
    EXPECT_THAT(names(table), ElementsAre("epoch 0", "epoch 1")) << text;
    EXPECT_THAT(texts(table, "accuracy"), ElementsAre("0.5", "0.6")) << text;
    EXPECT_THAT(texts(table, "loss"), ElementsAre("1.2", "1.0")) << text;
    EXPECT_FALSE(looks_like_table(text)) << text;
  }
  EXPECT_TRUE(looks_like_table("GPUs,Epoch,Epoch time (s)\n1,90,10.0\n2,90,5.1\n")) << "a table of scaling";
}

TEST_F(Metrics, AreReadBehindPrefixesAndOtherLines) {
  const std::string log =
      "starting 8 processes\n"
      "[default0]:epoch,loss,accuracy\n[default1]:epoch,loss,accuracy\n"
      "[default1]:0,9.9,0.1\n[default0]:0,1.2,0.5\nwarning: slow\n[default0]:1,1.0,0.6\n";
  const auto table = read(log);
  EXPECT_THAT(texts(table, "accuracy"), ElementsAre("0.5", "0.6"));
  EXPECT_EQ(table.rows[0].line, 5U);
  EXPECT_THAT(table.notes,
              Contains(HasSubstr("1 line before the columns left out, the first: 'starting 8 processes'")));
  EXPECT_THAT(table.notes,
              Contains(HasSubstr("2 lines of other ranks left out: the figures are those of rank 0")));
  EXPECT_THAT(table.notes, Contains(HasSubstr("the first in line 6: 'warning: slow'")));
  const auto clock = read("10:22:33 node-a | epoch;loss\n10:22:34 node-a | 0;1.2\n11:00:00 node-b | 1;1.0\n");
  EXPECT_THAT(texts(clock, "loss"), ElementsAre("1.2", "1.0"));
}

TEST_F(Metrics, WithoutKeysAreCounted) {
  const auto table = read(
      "Learning Rate\tTrain Loss\tValid Loss\tValid Acc.\t\n0.1\t1.5\t1.6\t40.2\t\n0.1\t1.2\t1.4\t51.0\t\n",
      {{"loss", "Valid Loss"}, {"accuracy", "Valid Acc."}});
  EXPECT_THAT(names(table), ElementsAre("epoch 1", "epoch 2"));
  EXPECT_THAT(texts(table, "accuracy"), ElementsAre("0.402", "0.510"));
  EXPECT_THAT(table.notes, Contains(HasSubstr("no column names epochs or steps")));
}

TEST_F(Metrics, OfTensorBoardAndWandbAreRead) {
  const auto scalar =
      read("Wall time,Step,Value\n1700000000.1,0,1.2\n1700000060.5,1,1.0\n", {{"loss", "Value"}});
  EXPECT_THAT(names(scalar), ElementsAre("step 0", "step 1"));
  EXPECT_THAT(texts(scalar, "steps"), ElementsAre("0", "1"));
  EXPECT_THAT(texts(scalar, "loss"), ElementsAre("1.2", "1.0"));
  const auto json = read("[[1700000000.1, 0, 1.25], [1700000060.5, 1, 1.125]]", {{"loss", "value"}});
  EXPECT_THAT(texts(json, "loss"), ElementsAre("1.25", "1.125"));
  const auto exported = read(
      "\"Step\",\"wise-sun-3 - val/acc\",\"wise-sun-3 - val/acc__MIN\"\n\"10\",\"0.5\",\"0.4\"\n"
      "\"20\",\"0.6\",\"0.5\"\n",
      {{"accuracy", "wise-sun-3 - val/acc"}});
  EXPECT_THAT(texts(exported, "accuracy"), ElementsAre("0.5", "0.6"));
  const auto history = read(",_step,_runtime,loss,epoch\n0,0,1.5,1.2,\n1,1,2.5,,0\n2,2,3.5,1.0,1\n");
  EXPECT_THAT(names(history), ElementsAre("step 0", "epoch 0", "epoch 1"));
  const auto spread = read("step,tag,value\n1,loss,1.2\n2,loss,1.0\n1,accuracy,0.5\n2,accuracy,0.6\n");
  EXPECT_THAT(texts(spread, "loss"), ElementsAre("1.2", "1.0"));
  EXPECT_THAT(texts(spread, "accuracy"), ElementsAre("0.5", "0.6"));
}

TEST_F(Metrics, OfATrainersStateAreItsHistory) {
  const auto table = read(R"({"best_metric": 0.9, "epoch": 2.0, "global_step": 20, "log_history": [
    {"epoch": 1.0, "learning_rate": 5e-05, "loss": 1.5, "step": 10},
    {"epoch": 1.0, "eval_accuracy": 0.8, "eval_loss": 1.25, "step": 10},
    {"epoch": 2.0, "loss": NaN, "step": 20}, {"epoch": 2.0, "eval_accuracy": 0.875, "eval_loss": 1.125, "step": 20}]})",
                          {{"accuracy", "eval_accuracy"}});
  EXPECT_THAT(names(table), ElementsAre("epoch 1", "epoch 2"));
  EXPECT_THAT(texts(table, "accuracy"), ElementsAre("0.8", "0.875"));
  EXPECT_THAT(texts(table, "loss"), ElementsAre("1.5", "?"));
  EXPECT_THAT(table.notes, Contains(HasSubstr("loss is NaN at")));
}

TEST_F(Metrics, InLinesOfJsonAreRead) {
  const auto lines =
      read("{\"train_lr\": 0.1, \"test_acc1\": 70.5, \"epoch\": 0}\n{\"test_acc1\": 71.25, \"epoch\": 1}\n",
           {{"accuracy", "test_acc1"}});
  EXPECT_THAT(texts(lines, "accuracy"), ElementsAre("0.705", "0.7125"));
  const auto printed = read(
      "Loading {weights}\n[rank1]:{'loss': 7.5, 'epoch': 0.5}\n[rank1]:{'loss': 8.5, 'epoch': 1.0}\n"
      "[rank0]:{'loss': 1.5, 'epoch': 0.5}\n[rank0]:{'loss': 1.4, 'epoch': 1.0}\n");
  EXPECT_THAT(texts(printed, "loss"), ElementsAre("7.5", "8.5")) << "of the rank that comes first";
  EXPECT_THAT(printed.notes,
              Contains(HasSubstr("2 lines of other ranks left out: the figures are those of rank 1")));
  EXPECT_THAT(printed.notes, Contains(HasSubstr("the first in line 1: 'Loading {weights}'")));
  const auto python = read(
      "  5%| | 1/20\r{'loss': 1.5e-1, 'acc': tensor(0.5, device='cuda:0'), 'note': \"it's\", 'epoch': 0.5}\n"
      "{'loss': nan, 'acc': np.float64(0.75), 'note': None, 'epoch': 1.0}\n",
      {{"accuracy", "acc"}});
  EXPECT_THAT(texts(python, "loss"), ElementsAre("0.15", "?"));
  EXPECT_THAT(texts(python, "accuracy"), ElementsAre("0.5", "0.75"));
}

TEST_F(Metrics, InColumnsAreReadByRow) {
  const auto keras = read(R"({"loss": [1.5, 1.25], "accuracy": [0.5, 0.75]})");
  EXPECT_THAT(names(keras), ElementsAre("epoch 1", "epoch 2"));
  EXPECT_THAT(texts(keras, "accuracy"), ElementsAre("0.5", "0.75"));
  const auto frame =
      read(R"({"epoch": {"0": 3, "1": 4, "10": 5}, "loss": {"0": 1.5, "10": 1.0, "1": 1.25}})");
  EXPECT_THAT(names(frame), ElementsAre("epoch 3", "epoch 4", "epoch 5"));
  EXPECT_THAT(texts(frame, "loss"), ElementsAre("1.5", "1.25", "1.0"));
}

TEST_F(Metrics, OfEvaluationsAreNoSecondRun) {
  const auto table = read(
      "{\"epoch\": 1, \"step\": 50, \"loss\": 1.5}\n{\"accuracy\": 0.5, \"step\": 1}\n"
      "{\"epoch\": 2, \"step\": 100, \"loss\": 1.2}\n{\"accuracy\": 0.6, \"step\": 2}\n");
  EXPECT_THAT(names(table), ElementsAre("epoch 1", "step 1", "epoch 2", "step 2"));
  EXPECT_FALSE(table.rows[0].knows("repeat"));
}

TEST_F(Metrics, InUnknownFormsAreNamed) {
  const std::string event(
      "\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22\x09\0\0\x80\x23\xd2\x93\xd9\x41\x1a\x0d"
      "brain.Event:2",
      36);
  EXPECT_THAT(error_of(event),
              HasSubstr("is an event file of TensorBoard, which is not read: show its scalars"));
  EXPECT_THAT(error_of("PK\x03\x04 and so on"), HasSubstr("save the figures as CSV"));
  EXPECT_THAT(error_of("\xff\xfe"
                       "e"),
              HasSubstr("UTF-16"));
  EXPECT_THAT(error_of("phase,loss\nx,1\n"), AllOf(HasSubstr("Its first line is 'phase,loss'"),
                                                   HasSubstr("need a column 'epoch' or 'step'")));
  EXPECT_THAT(error_of("epoch,loss\n1,0.5,7\n"),
              AllOf(HasSubstr("3 cells, but there are 2 columns"), Not(HasSubstr("cut"))));
}

}  // namespace
}  // namespace paceline::table
