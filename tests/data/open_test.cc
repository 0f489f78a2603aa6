#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
#include "data/dataset.h"
#include "data/files.h"
#include "data/spec.h"

namespace paceline::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Spec, IsTakenApart) {
  const Spec spec = parse_spec("cifar10:/data/a:b,test=x=y.bin,k=");
  EXPECT_EQ(spec.name, "cifar10");
  EXPECT_EQ(spec.directory, "/data/a:b");
  EXPECT_EQ(spec.options, (std::map<std::string, std::string>{{"test", "x=y.bin"}, {"k", ""}}));
  EXPECT_EQ(parse_spec("synthetic").name, "synthetic");
  EXPECT_EQ(parse_spec("").name, "");
  // As reports write it; behind a colon no shell puts the directory there.
  const std::string home = std::getenv("HOME") == nullptr ? "~" : std::getenv("HOME");
  EXPECT_EQ(parse_spec("cifar10:~/data,train=5").directory, home + "/data");
  EXPECT_EQ(parse_spec("cifar10:~").directory, home);
  EXPECT_EQ(parse_spec("cifar10:~other/data").directory, "~other/data");
  EXPECT_EQ(parse_spec("cifar10:data/~/x").directory, "data/~/x");
  EXPECT_EQ(parse_spec("synthetic,seed=c:d").directory, "");
}

TEST(Open, SaysWhatIsWrongWithASpec) {
  struct Case {
    const char* spec;
    std::vector<const char*> said;
  };
  const Case cases[] = {
      {"cifar", {"no data set 'cifar'", "did you mean 'cifar10'?"}},
      {"cifar100:x,labels=both", {"labels is fine (100 classes) or coarse (20), not 'both'"}},
      {"sinthetic", {"did you mean 'synthetic'?"}},
      {"weather", {"no data set 'weather'", "known are cifar10, cifar100, mnist, npz, "}},
      {"", {"no data set ''"}},
      {"mnist", {"needs their place", "write mnist:DIR"}},
      {"cifar10:", {"needs their place", "write cifar10:DIR[,test=FILE]"}},
      {"synthetic:/tmp", {"takes no directory ('/tmp')"}},
      {"synthetic,tarin=5", {"synthetic has no option 'tarin'", "did you mean 'train'?"}},
      {"mnist:/tmp,tset=5", {"mnist has no option 'tset'"}},
      {"synthetic,train", {"key=value", "'train'"}},
      {"synthetic,=5", {"key=value", "'=5'"}},
      {"synthetic,", {"key=value", "''"}},
      {"synthetic,seed=1,seed=2", {"'seed' is given twice"}},
      {"synthetic,train=0", {"train is a whole number from 1 to 1000000000, not '0'"}},
      {"synthetic,train=ten", {"not 'ten'"}},
      {"synthetic,test=5x", {"not '5x'"}},
      {"synthetic,test=", {"not ''"}},
      {"synthetic,train=99999999999999999999", {"not '99999999999999999999'"}},
      {"synthetic,seed=-1", {"seed is a whole number from 0", "not '-1'"}},
  };
  for (const auto& c : cases) {
    const auto error = error_of([&] { (void)open(c.spec); });
    EXPECT_EQ(error.kind, base::ErrorKind::usage) << c.spec;
    for (const char* part : c.said) EXPECT_THAT(error.text, HasSubstr(part));
    EXPECT_THAT(error.text, HasSubstr(std::string("'") + c.spec + "'"));
  }
}

TEST(Open, TakesAnotherNormalisation) {
  const Source usual = open("synthetic,train=10,test=10");
  const Source all = open("synthetic,train=10,test=10,mean=0.5,std=0.25");
  EXPECT_EQ(all.mean, (std::vector<float>{0.5f, 0.5f, 0.5f}));
  EXPECT_EQ(all.stddev, (std::vector<float>{0.25f, 0.25f, 0.25f}));
  const Source each = open("synthetic,train=10,test=10,std=0.2023:0.1994:0.2010");
  EXPECT_EQ(each.mean, usual.mean);
  EXPECT_EQ(each.stddev, (std::vector<float>{0.2023f, 0.1994f, 0.2010f}));
  for (const char* wrong :
       {"mean=1:2", "mean=", "mean=1:2:3:", "mean=a:b:c", "std=0", "std=-1", "std=1:0:1"}) {
    const auto error = error_of([&] { (void)open(std::string("synthetic,train=10,test=10,") + wrong); });
    EXPECT_EQ(error.kind, base::ErrorKind::usage) << wrong;
    EXPECT_THAT(error.text, HasSubstr("for each of 3 channels, joined by ':'")) << wrong;
  }
  EXPECT_THAT(error_of([] { (void)open("synthetic,mean=0.4,0.5,0.6"); }).text, HasSubstr("joined by ':'"));
}

TEST(Open, TakesAFormatsNameFromItsUsage) {
  const FormatInfo files{.usage = "made:DIR[,up=N]", .summary = ""},
      none{.usage = "drawn[,up=N]", .summary = ""};
  EXPECT_EQ(files.spec(), "made:DIR");
  EXPECT_EQ(files.name(), "made");
  EXPECT_TRUE(files.reads_files());
  EXPECT_EQ(none.spec(), "drawn");
  EXPECT_EQ(none.name(), "drawn");
  EXPECT_FALSE(none.reads_files());
}

TEST(Open, SaysHowSetsOfOthersAreRead) {
  for (const auto& [name, hint] : {std::pair{"CIFAR-100:x", "did you mean 'cifar100'?"},
                                   {"fashion-mnist:x", "mnist:DIR, and 'paceline data get fashion-mnist'"},
                                   {"FashionMNIST", "mnist:DIR"},
                                   {"imagenet:x", "folder:DIR"},
                                   {"cifar-10:x", "did you mean 'cifar10'?"}})
    EXPECT_THAT(error_of([&, spec = name] { (void)open(spec); }).text, HasSubstr(hint)) << name;
}

TEST(Open, KnowsEveryFormatThatItNames) {
  EXPECT_THAT(known_specs(), AllOf(testing::StartsWith("cifar10:DIR, cifar100:DIR, mnist:DIR, npz:FILE, "),
                                   HasSubstr(" or ")));

  const std::string page = base::read_file(std::string(PACELINE_SOURCE_DIR) + "/docs/formats.md");
  for (const auto& format : known_formats()) {
    EXPECT_NE(page.find("| `" + format.name() + "` |"), std::string::npos)
        << "the table in docs/formats.md has no row for " << format.name();
    EXPECT_THAT(known_specs(), HasSubstr(format.spec()));
    // Whatever is wrong with the bare name, it is not that it is unknown.
    EXPECT_THAT(error_of([&] { (void)open(format.name()); }).text,
                testing::Not(HasSubstr("there is no data set")));
  }
}

}  // namespace
}  // namespace paceline::data
