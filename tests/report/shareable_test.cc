#include "report/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../golden/records.h"
#include "report/document.h"
#include "report/page_data.h"

namespace paceline::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Shareable, HomesAreTildes) {
  for (const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
           {"paceline train --data cifar10:/home/ann/data --out /home/ann/x",
            "paceline train --data cifar10:~/data --out ~/x"},
           {"/root", "~"},
           {"/root/.cache/paceline", "~/.cache/paceline"},
           {"--data='/Users/bob/My Data'", "--data='~/My Data'"},
           {"/export/people/eve/run", "~/run"},
           {"/export/people/evelyn/run", "/export/people/evelyn/run"},
           {"/rooted and /home and /homes/x", "/rooted and /home and /homes/x"},
           {"data/home/ann", "data/home/ann"},
           {"images/s, 5/8, https://host/home/ann", "images/s, 5/8, https://host/home/ann"},
           {"", ""}})
    EXPECT_EQ(without_homes(text, "/export/people/eve"), expected);
  EXPECT_EQ(without_homes("/ and /a", "/"), "/ and /a");  // a home that is the root is none
}

TEST(Shareable, OfOtherPathsSentencesKeepTheLastPart) {
  for (const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
           {"kept in /var/tmp/cache/kernels-1.txt", "kept in …/kernels-1.txt"},
           {"kept in /home/ann/.cache/paceline/kernels-1.txt.", "kept in ~/.cache/paceline/kernels-1.txt."},
           {"/data/a.json: cut short; see (/data/b/).", "…/a.json: cut short; see (…/b/)."},
           {"not allowed (/proc/self/clear_refs)", "not allowed (/proc/self/clear_refs)"},
           {"5 images/s, and/or, https://a.b/c/d", "5 images/s, and/or, https://a.b/c/d"}})
    EXPECT_EQ(without_paths(text, "/export/people/eve"), expected);
}

TEST(Shareable, NoReportHoldsAPathOfAMachine) {
  auto record = golden::make_record({.kind = "train"});
  record.epochs = {
      {.epoch = 1, .updates = 10, .steps = 10, .seconds = 1, .train_loss = 1, .train_accuracy = 0.5}};
  record.command = "paceline train --data cifar10:/home/ann/cifar --model /home/ann/m.toml";
  record.model.name = "/home/ann/m.toml";
  record.data.spec = record.settings["data"] = "cifar10:/home/ann/cifar";
  record.data.name.clear();
  record.data.description = "CIFAR-10 in /mnt/ann/sets/cifar";
  record.notes = {"9 kernels, kept in /mnt/ann/cache/kernels-1.txt",
                  "kept in /home/ann/.cache/paceline/kernels-1.txt"};
  auto failed = record;
  failed.id = "other", failed.status = "failed", failed.reason = "/mnt/ann/sets/x.bin: cut short";
  const std::vector<measure::Record> records{record, failed};
  const auto document = build(records, {.title = "",
                                        .command = "paceline report /home/ann/run --html /home/ann/x.html",
                                        .remarks = {"Not read: /mnt/ann/run/x.json: cut short."}});
  for (const auto& text : {to_json(document), with_plain_data(to_html(document)), to_markdown(document),
                           to_terminal(document, 100, false)}) {
    EXPECT_THAT(text, Not(HasSubstr("/ann/")));
    EXPECT_THAT(text, Not(HasSubstr("/mnt/")));
    EXPECT_THAT(text, HasSubstr("~/cifar"));
  }
  for (const auto& section : document.sections)
    for (const auto& block : section.blocks) {
      const auto* table = std::get_if<Table>(&block);
      EXPECT_TRUE(table == nullptr || to_csv(*table).find("/ann") == std::string::npos);
    }
}

TEST(Shareable, SettingsStayTheSameOrDifferent) {
  auto one = golden::make_record({}), two = one;
  one.settings["data"] = "folder:/home/ann/a";
  two.settings["data"] = "folder:/mnt/a";
  const auto shared = shareable(std::vector{one, two}, "/home/ann");
  EXPECT_EQ(shared[0].settings.at("data"), "folder:~/a");
  EXPECT_EQ(shared[1].settings.at("data"), "folder:/mnt/a");
  EXPECT_EQ(shared[0].ranks.front().step_s, one.ranks.front().step_s);
}

}  // namespace
}  // namespace paceline::report
