/// Layouts of public data sets, made after their descriptions: their classes and parts, or why not.

#include "init/data_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../data/image/pictures.h"
#include "base/error.h"

namespace paceline::init::layouts {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class DataFacts : public testing::Test {
 protected:
  void picture(const std::string& path) const {
    data::write_bytes(folder_.path() / path, data::jpeg(data::picture(12, 14, pictures_++)));
  }
  void text(const std::string& path, const std::string& lines) const {
    data::write_bytes(folder_.path() / path, data::Bytes(lines.begin(), lines.end()));
  }
  void pictures_in(const std::string& path, int count, const char* ending = ".jpg") const {
    for (int i = 0; i < count; ++i) picture(path + "/" + std::to_string(i) + ending);
  }
  [[nodiscard]] init::DataFacts facts() const { return inspect_data(folder_.path().string(), 1); }
  [[nodiscard]] std::string why_not() const {
    try {
      (void)facts();
    } catch (const base::Error& error) {
      return error.what();
    }
    return "it was taken";
  }
  data::TemporaryDirectory folder_;
  mutable int pictures_ = 0;
};

TEST_F(DataFacts, Food101HasListsOfParts) {
  for (const char* name : {"apple_pie", "baklava"}) pictures_in(std::string("images/") + name, 6);
  text("meta/classes.txt", "apple_pie\nbaklava\n");
  EXPECT_THAT(facts().class_names, ElementsAre("apple_pie", "baklava")) << "without the lists";
  text("meta/train.txt", "apple_pie/0\nbaklava/0\n");
  text("meta/test.txt", "apple_pie/5\nbaklava/5\n");
  EXPECT_THAT(why_not(), AllOf(HasSubstr("meta/train.txt and meta/test.txt"), HasSubstr("train/CLASS"),
                               HasSubstr("labels=TABLE")));
}

TEST_F(DataFacts, StanfordDogsHasListsOfParts) {
  for (const char* name : {"n02085620-Chihuahua", "n02085782-Japanese_spaniel"}) {
    pictures_in(std::string("Images/") + name, 6);
    text(std::string("Annotation/") + name + "/0", "<annotation/>");
  }
  text("file_list.mat", "MATLAB");
  EXPECT_EQ(facts().classes(), 2);
  text("train_list.mat", "MATLAB");
  text("test_list.mat", "MATLAB");
  EXPECT_THAT(why_not(), HasSubstr("train_list.mat and test_list.mat"));
}

TEST_F(DataFacts, BirdsHaveOneListOfBothParts) {
  for (const char* name : {"001.Albatross", "002.Auklet"}) pictures_in(std::string("images/") + name, 6);
  text("images.txt", "1 001.Albatross/0.jpg\n");
  text("train_test_split.txt", "1 0\n");
  EXPECT_THAT(why_not(),
              AllOf(HasSubstr("train_test_split.txt"), HasSubstr("says which images are to test")));
}

TEST_F(DataFacts, FlowersHaveNoClassFolders) {
  pictures_in("jpg", 8);
  text("imagelabels.mat", "MATLAB");
  text("setid.mat", "MATLAB");
  EXPECT_THAT(why_not(), HasSubstr("all images lie in one class folder ('jpg')"));
}

TEST_F(DataFacts, TrafficSignsToTestHaveNoLabels) {
  for (const char* name : {"00000", "00001"}) {
    pictures_in(std::string("GTSRB/Final_Training/Images/") + name, 6);
    text(std::string("GTSRB/Final_Training/Images/") + name + "/GT.csv", "Filename;ClassId\n0.jpg;0\n");
  }
  EXPECT_THAT(facts().class_names, ElementsAre("00000", "00001")) << "the training images alone";
  pictures_in("GTSRB/Final_Test/Images", 4);
  EXPECT_THAT(why_not(),
              AllOf(HasSubstr("GTSRB/Final_Test/Images"), HasSubstr("have no labels, move them away")));
}

TEST_F(DataFacts, PlantsInSeveralColoursAreNoClasses) {
  for (const char* kind : {"color", "grayscale", "segmented"})
    for (const char* name : {"Apple___healthy", "Tomato___healthy"})
      pictures_in(std::string("raw/") + kind + "/" + name, 4);
  EXPECT_THAT(why_not(), AllOf(HasSubstr("'color' and 'grayscale'"), HasSubstr("give one of the folders")));
}

TEST_F(DataFacts, ArchivesOfOneSetAreNoClasses) {
  std::string table = "lesion_id,image_id,dx,age\n";
  for (int i = 0; i < 18; ++i) {
    const auto name = "ISIC_" + std::to_string(100 + i);
    picture("HAM10000_images_part_" + std::to_string(1 + i % 2) + "/" + name + ".jpg");
    table += "HAM_" + std::to_string(i) + "," + name + "," + (i % 3 == 0 ? "mel" : "nv") + ",40\n";
  }
  text("HAM10000_metadata.csv", table);
  const auto found = facts();
  EXPECT_THAT(found.class_names, ElementsAre("mel", "nv"));
  EXPECT_TRUE(found.spec.ends_with(",labels=HAM10000_metadata.csv")) << found.spec;
}

TEST_F(DataFacts, RadiographsHaveAllParts) {
  for (const auto& [part, count] : {std::pair{"train", 9}, std::pair{"val", 2}, std::pair{"test", 4}})
    for (const char* name : {"NORMAL", "PNEUMONIA"}) {
      pictures_in(std::string(part) + "/" + name, count, ".jpeg");
      pictures_in(std::string("chest_xray/") + part + "/" + name, count,
                  ".jpeg");  // the archive holds all twice
      text(std::string("chest_xray/__MACOSX/") + part + "/" + name + "/._0.jpeg", "Mac");
    }
  const auto found = facts();
  EXPECT_THAT(found.class_names, ElementsAre("NORMAL", "PNEUMONIA"));
  EXPECT_EQ(found.train, 18);
  EXPECT_EQ(found.validation, 4);
  EXPECT_EQ(found.test, 8);
}

TEST_F(DataFacts, SpeciesLieBelowTheirKingdoms) {
  for (const char* name : {"Aves/Parus major", "Aves/Turdus merula", "Plantae/Rosa canina"})
    pictures_in(name, 6);
  EXPECT_THAT(facts().class_names,
              ElementsAre("Aves/Parus major", "Aves/Turdus merula", "Plantae/Rosa canina"));
}

}  // namespace
}  // namespace paceline::init::layouts
