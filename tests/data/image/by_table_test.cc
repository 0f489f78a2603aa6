#include "data/image/label_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/files.h"
#include "data/image/dataset.h"
#include "data/mutations.h"
#include "pictures.h"

namespace paceline::data {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class ByTable : public testing::Test {
 protected:
  void image(const std::string& path) const { write_bytes(folder_.path() / path, jpeg(picture(9, 9))); }
  void table(const std::string& text, const std::string& name = "t.csv") const {
    write_bytes(folder_.path() / name, {text.begin(), text.end()});
  }
  [[nodiscard]] Source open_here(const std::string& options = ",labels=t.csv") const {
    return open("folder:" + folder_.path().string() + ",size=8" + options);
  }
  [[nodiscard]] std::string said(const std::string& text,
                                 const std::string& options = ",labels=t.csv") const {
    table(text);
    return error_of([&] { (void)open_here(options); }).text;
  }
  /// The names of a part with their classes, "a.jpg=cat".
  [[nodiscard]] std::vector<std::string> seen(const Source& source, const Dataset& part) const {
    std::vector<std::string> names;
    for (std::int64_t i = 0; i < part.size(); ++i)
      names.push_back(part.sample_name(i).substr(folder_.path().string().size() + 1) + "=" +
                      source.class_names[static_cast<std::size_t>(part.label(i))]);
    return names;
  }
  TemporaryDirectory folder_;
};

TEST_F(ByTable, SaysClassAndPartOfEachImage) {
  for (const char* name : {"i/1.jpg", "i/2.jpg", "i/3.jpg", "i/4.jpg", "i/5.jpg"}) image(name);
  table(
      "id,split,kind,class\n1,train,x,\"red, round\"\n2.jpg,train,y,green\ni/3,test,x,green\n4,valid,y,green\n");
  const Source source = open_here();
  EXPECT_THAT(source.class_names, ElementsAre("green", "red, round"));
  EXPECT_THAT(seen(source, *source.train), ElementsAre("i/1.jpg=red, round", "i/2.jpg=green"));
  EXPECT_THAT(seen(source, *source.test), ElementsAre("i/3.jpg=green"));
  EXPECT_THAT(seen(source, *source.validation), ElementsAre("i/4.jpg=green"));
  EXPECT_THAT(source.notes, Contains(AllOf(HasSubstr("left out: 1 image"), HasSubstr("i/5.jpg"))));
  EXPECT_EQ(open_here(",labels=t.csv,label=kind").class_names, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(open_here(",labels=t.csv,label=3,image=1").class_names, (std::vector<std::string>{"x", "y"}));
  // A path of its own, outside of the folder.
  const TemporaryDirectory other;
  write_bytes(other.path() / "o.csv", {'1', ',',  'a', '\n', '2', ',',  'b', '\n', '3', ',',
                                       'a', '\n', '4', ',',  'b', '\n', '5', ',',  'a', '\n'});
  EXPECT_EQ(open_here(",test=0.4,labels=" + (other.path() / "o.csv").string()).classes(), 2);
}

TEST_F(ByTable, TakesThePartFromThePath) {
  for (const char* name : {"train/1.jpg", "train/2.jpg", "test/1.jpg"}) image(name);
  table("file,label\ntrain/1.jpg,a\ntrain/2.jpg,b\ntest/1.jpg,b\n");
  const Source source = open_here();
  EXPECT_EQ(source.train->size(), 2);
  EXPECT_THAT(seen(source, *source.test), ElementsAre("test/1.jpg=b"));
  EXPECT_THAT(said("file,label\n1.jpg,a\n2.jpg,b\n"),
              HasSubstr("'1.jpg' may be 'test/1.jpg' or 'train/1.jpg'"));
  EXPECT_THAT(said("file,label,split\ntrain/1.jpg,a,test\ntrain/2.jpg,b,train\n"),
              AllOf(HasSubstr("line 2"), HasSubstr("part test"), HasSubstr("lies in a folder of train")));
  image("more/3.jpg");
  EXPECT_THAT(said("file,label\ntrain/1.jpg,a\nmore/3.jpg,b\n"), HasSubstr("add a column 'split'"));
}

// "test/1.jpg" is no other folder's 1.jpg.
TEST_F(ByTable, NamesNoImageOfAnotherFolder) {
  for (int i = 0; i < 6; ++i) image("train/" + std::to_string(i) + ".jpg");
  table(
      "file,label\ntrain/0.jpg,a\ntrain/1.jpg,b\ntrain/2.jpg,a\ntrain/3.jpg,b\ntrain/4.jpg,a\ntest/5.jpg,b\n");
  const auto spec = "folder:" + (folder_.path() / "train").string() +
                    ",test=0.4,labels=" + (folder_.path() / "t.csv").string();
  const Source source = open(spec);
  EXPECT_EQ(source.train->size() + source.test->size(), 5);
  EXPECT_THAT(source.notes, Contains(AllOf(HasSubstr("1 of 6 rows"), HasSubstr("'test/5.jpg'"))));
}

TEST_F(ByTable, LabelsValidationBesideTrainingFolders) {
  for (const char* name :
       {"train/n1/images/a.jpg", "train/n2/images/b.jpg", "val/images/val_0.jpg", "val/images/val_1.jpg",
        "val/images/val_2.jpg", "val/images/val_3.jpg", "test/images/t.jpg"})
    image(name);
  table("val_0.jpg\tn2\t0\t32\t4\nval_1.jpg\tn1\t1\t2\t4\nval_2.jpg\tn2\t1\t2\t3\nval_3.jpg\tn1\t0\t7\t3\n",
        "val/val_annotations.txt");
  const Source tiny = open_here(",labels=val/val_annotations.txt");
  EXPECT_THAT(seen(tiny, *tiny.train), ElementsAre("train/n1/images/a.jpg=n1", "train/n2/images/b.jpg=n2"));
  const auto tested = seen(tiny, *tiny.test);
  EXPECT_THAT(tested, ElementsAre("val/images/val_0.jpg=n2", "val/images/val_1.jpg=n1",
                                  "val/images/val_2.jpg=n2", "val/images/val_3.jpg=n1"));
  EXPECT_THAT(tiny.notes, Contains(HasSubstr("test/images/t.jpg")));
  table(
      "ImageId,PredictionString\nval_0,n2 1 2 3 4\nval_1,n1 5 6 7 8 n1 1 2 3 4\nval_2,n2 0 0 1 1\nval_3,n1 0 0 1 1\n",
      "solution.csv");
  EXPECT_EQ(tested, seen(tiny, *open_here(",labels=solution.csv").test));
  table("val_0.jpg n2\nval_1.jpg n1\nval_2.jpg n2\nval_3.jpg n1\n", "val.txt");
  EXPECT_EQ(tested, seen(tiny, *open_here(",labels=val.txt").test));
  table("val_0.jpg 65\nval_1.jpg 1\n", "val.txt");
  EXPECT_THAT(error_of([&] { (void)open_here(",labels=val.txt"); }).text,
              HasSubstr("the class '65' of 'val/images/val_0.jpg' is not among the 2 classes"));
}

TEST_F(ByTable, ReadsOneHotColumns) {
  for (int i = 0; i < 6; ++i) image("i/t" + std::to_string(i) + ".jpg");
  const std::string whole = "id,healthy,rust\nt0,1,0\nt1,0,1\nt2,1.0,0.0\nt3,0,1\nt4,1,0\nt5,0,1\n";
  table(whole);
  const Source source = open_here(",labels=t.csv,test=0.34");
  EXPECT_THAT(source.class_names, ElementsAre("healthy", "rust"));
  EXPECT_EQ(source.train->size() + source.test->size(), 6);
  auto odd = whole;
  odd.replace(odd.find("t1,0,1"), 6, "t1,1,1");
  EXPECT_THAT(said(odd), AllOf(HasSubstr("1 of 6 rows have not exactly one 1"), HasSubstr("line 3")));
}

TEST_F(ByTable, IsRefusedWithTheLine) {
  for (int i = 0; i < 4; ++i) image("i/" + std::to_string(i) + ".jpg");
  EXPECT_THAT(said("id,label\n0,a\n1,\n2,b\n"), AllOf(HasSubstr("line 3"), HasSubstr("'1' has no label")));
  EXPECT_THAT(said("id,label\n0,a\n1,b\n0,b\n"), AllOf(HasSubstr("line 4"), HasSubstr("'a' in line 2")));
  EXPECT_THAT(said("id,label\n0,a\n1,red, round\n2,b\n"),
              AllOf(HasSubstr("line 3 has 3 cells"), HasSubstr("quote")));
  EXPECT_THAT(said("id,label,split\n0,a,train\n1,b,7\n"),
              AllOf(HasSubstr("line 3"), HasSubstr("part is '7'")));
  EXPECT_THAT(said("id,label,split\n0,a,train\n1,b,train\n2,c,test\n"),
              HasSubstr("the class 'c' of 'i/2.jpg'"));
  EXPECT_THAT(said("id,label,split\n0,a,test\n1,b,test\n"), HasSubstr("names no training image"));
  EXPECT_THAT(said("id,label\nx,a\ny,b\n"), HasSubstr("no cell names an image"));
  EXPECT_THAT(said("id,a,b\n0,x,u\n1,y,v\n2,x,u\n3,y,v\n"), HasSubstr("which of the columns 'a', 'b'"));
  EXPECT_THAT(said("id,label\n0,a\n1,a\n", ",labels=t.csv,label=label"),
              HasSubstr("one class for training ('a')"));
  EXPECT_THAT(said("id\n0\n"), HasSubstr("is no table of labels"));
  EXPECT_THAT(said("id,label\n0,a\n1,b\n", ",labels=t.csv,label=lable"), HasSubstr("did you mean 'label'"));
  EXPECT_THAT(said("id,label\n0,a\n1,b\n", ",labels=t.csv,image=9"), HasSubstr("no column '9'"));
  EXPECT_THAT(said("", ",labels=u.csv"), HasSubstr("there is no table 'u.csv'"));
  EXPECT_THAT(said("", ",label=a"), HasSubstr("add labels=FILE"));
  EXPECT_THAT(said("", ",labels=t.csv,classes=top"), HasSubstr("leave one out"));
}

// Whatever a table says, no image is in two parts, and none disappears without a note.
TEST_F(ByTable, IsReadWholeOrRefused) {
  for (const char* name : {"train/0.jpg", "train/1.jpg", "test/2.jpg", "test/3.jpg"}) image(name);
  const std::string text = "id,label\ntrain/0.jpg,a\ntrain/1.jpg,b\ntest/2.jpg,\"a\"\ntest/3.jpg,b\n";
  read_mutations({text.begin(), text.end()}, [&](const Bytes& bytes) {
    write_bytes(folder_.path() / "t.csv", bytes);
    const Source source = open_here();
    for (const auto& name : seen(source, *source.train)) EXPECT_FALSE(name.starts_with("test/")) << name;
    const auto all =
        source.train->size() + source.test->size() + (source.validation ? source.validation->size() : 0);
    EXPECT_TRUE(all == 4 || !source.notes.empty());
  });
}

}  // namespace
}  // namespace paceline::data
