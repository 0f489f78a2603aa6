#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "base/shared_library.h"

namespace paceline::base {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class SharedLibraries : public testing::Test {
 protected:
  SharedLibraries() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::path(testing::TempDir()) / (std::string("shared_library_") + test->name());
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~SharedLibraries() override { fs::remove_all(root_); }

  fs::path folder(const std::string& name) {
    fs::create_directories(root_ / name);
    return root_ / name;
  }
  fs::path file(const std::string& name) {
    folder(fs::path(name).parent_path().string());
    std::ofstream(root_ / name) << "this is no library";
    return root_ / name;
  }
  EnvironmentLookup environment(std::map<std::string, std::string> values) {
    values_ = std::move(values);
    return [this](const char* name) {
      const auto found = values_.find(name);
      return found == values_.end() ? nullptr : found->second.c_str();
    };
  }
  /// Those of the folders that are below the test's.
  std::vector<std::string> mine(const std::vector<fs::path>& folders) {
    std::vector<std::string> result;
    for (const auto& each : folders)
      if (each.string().starts_with(root_.string())) result.push_back(fs::relative(each, root_).string());
    return result;
  }

  static std::string refused_by(const LibraryWanted& wanted, const std::vector<fs::path>& folders,
                                const Refusal& refusal) {
    try {
      (void)find_library(wanted, folders, refusal);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), wanted.kind);
      return error.what();
    }
    return "found";
  }

  fs::path root_;
  std::map<std::string, std::string> values_;
};

constexpr LibraryWanted kAbsent{.kind = ErrorKind::device,
                                .asked = "--device cuda",
                                .file = "libpaceline_absent.so.9",
                                .product = "Absent 9.11 or later",
                                .install = "pip install absent"};

std::string accept(const SharedLibrary&) { return ""; }

TEST_F(SharedLibraries, ALibraryOfNoPlaceIsNamedWithThePlacesAndTheRemedy) {
  const auto text = refused_by(kAbsent, {folder("empty")}, accept);
  EXPECT_THAT(text,
              testing::StartsWith("--device cuda: needs Absent 9.11 or later, but libpaceline_absent.so.9"));
  EXPECT_THAT(text, testing::HasSubstr("LD_LIBRARY_PATH"));
  EXPECT_THAT(text, testing::HasSubstr("Python environment"));
  EXPECT_THAT(text, testing::EndsWith("pip install absent"));
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST_F(SharedLibraries, AFileThatIsNoLibraryIsNamed) {
  const auto path = file("lib/libpaceline_absent.so.9");
  const auto text = refused_by(kAbsent, {path.parent_path()}, accept);
  EXPECT_THAT(text, testing::HasSubstr("what was found cannot be used (" + path.string()));
  EXPECT_THAT(text, testing::EndsWith("pip install absent"));
}

// libm stands for a library of the user's: it is wherever there is a C compiler's program.
TEST_F(SharedLibraries, TheLoadersOwnPlacesComeFirstAndSymbolsAreFound) {
  const LibraryWanted wanted{
      .kind = ErrorKind::device, .asked = "", .file = "libm.so.6", .product = "", .install = ""};
  const auto library = find_library(wanted, {}, accept);
  EXPECT_TRUE(fs::path(library.path).is_absolute()) << library.path;
  double (*floor_of)(double) = nullptr;
  ASSERT_TRUE(library.find("floor", floor_of));
  EXPECT_EQ(floor_of(2.5), 2.0);
  EXPECT_FALSE(library.find("no_such_function", floor_of));
  EXPECT_EQ(floor_of, nullptr);
}

TEST_F(SharedLibraries, OneThatIsRefusedIsPassedOverForTheNext) {
  const LibraryWanted wanted{.kind = ErrorKind::device,
                             .asked = "--device cuda",
                             .file = "libm.so.6",
                             .product = "M 9",
                             .install = "m"};
  const auto known = find_library(wanted, {}, accept);
  const auto copy = folder("copy") / "libm.so.6";
  fs::copy_file(fs::canonical(known.path), copy);
  const auto old = [&](const SharedLibrary& library) -> std::string {
    return library.path == copy.string() ? "" : "it is M 8";
  };
  EXPECT_EQ(find_library(wanted, {copy.parent_path()}, old).path, copy.string());
  const auto text = refused_by(wanted, {folder("empty")}, old);
  EXPECT_THAT(text, testing::HasSubstr("needs M 9, but what was found cannot be used"));
  EXPECT_THAT(text, testing::HasSubstr("libm.so.6: it is M 8"));
}

// As cuDNN does: asked for its version, the library loads a part that stays. The newer one, which is found
// next, must get its own.
TEST_F(SharedLibraries, TheQuestionToAnOldLibraryDoesNotSpoilTheNewOne) {
  const LibraryWanted wanted{.kind = ErrorKind::device,
                             .asked = "--device cuda",
                             .file = "libversioned.so.9",
                             .product = "Versioned 9.11 or later",
                             .install = "pip install versioned"};
  const fs::path libraries = PACELINE_TEST_LIBRARIES;
  const auto version_of = [](const SharedLibrary& library) {
    std::size_t (*version)() = nullptr;
    return library.find("cudnnGetVersion", version) ? version() : 0;
  };
  const auto refusal = [&](const SharedLibrary& library) -> std::string {
    const auto version = version_of(library);
    return version >= 91100 ? "" : "it is Versioned " + std::to_string(version);
  };
  EXPECT_THAT(refused_by(wanted, {libraries / "old"}, refusal), HasSubstr("it is Versioned 90100"));
  const auto found = find_library(wanted, {libraries / "old", libraries / "new"}, refusal);
  EXPECT_EQ(found.path, (libraries / "new/libversioned.so.9").string());
  EXPECT_EQ(version_of(found), 91900U);
}

TEST_F(SharedLibraries, PythonsPackagesCondaAndToolkitInThisOrder) {
  folder("venv/lib/python3.11/site-packages/nvidia/cudnn/lib");
  folder("venv/lib/python3.11/site-packages/nvidia/cublas/lib");
  folder("venv/lib/python3.11/site-packages/nvidia/empty");
  folder("usr/bin");
  file("usr/bin/python3");
  folder("usr/lib/python3/dist-packages/nvidia/cudnn/lib");
  folder("usr/local/lib/python3.11/dist-packages/nvidia/cu13/lib");
  folder("home/.local/lib/python3.11/site-packages/nvidia/cudnn/lib");
  folder("conda/lib");
  folder("cuda/lib64");
  const auto folders = mine(library_folders(environment({{"VIRTUAL_ENV", (root_ / "venv").string()},
                                                         {"PATH", "/nowhere:" + (root_ / "usr/bin").string()},
                                                         {"HOME", (root_ / "home").string()},
                                                         {"CONDA_PREFIX", (root_ / "conda").string()},
                                                         {"CUDA_HOME", (root_ / "cuda").string()}})));
  EXPECT_THAT(folders, testing::ElementsAre("venv/lib/python3.11/site-packages/nvidia/cublas/lib",
                                            "venv/lib/python3.11/site-packages/nvidia/cudnn/lib",
                                            "usr/lib/python3/dist-packages/nvidia/cudnn/lib",
                                            "usr/local/lib/python3.11/dist-packages/nvidia/cu13/lib",
                                            "home/.local/lib/python3.11/site-packages/nvidia/cudnn/lib",
                                            "conda/lib", "cuda/lib64"));
}

// The python3 of a virtual environment that is not "activated" but first in the PATH: a link to another.
TEST_F(SharedLibraries, APythonThatIsALinkBelongsToBothFolders) {
  folder("usr/bin");
  file("usr/bin/python3.11");
  folder("usr/lib/python3.11/site-packages/nvidia/cudnn/lib");
  folder("env/bin");
  fs::create_symlink(root_ / "usr/bin/python3.11", root_ / "env/bin/python3");
  folder("env/lib/python3.11/site-packages/nvidia/cudnn/lib");
  EXPECT_THAT(mine(library_folders(environment({{"PATH", (root_ / "env/bin").string()}}))),
              testing::ElementsAre("env/lib/python3.11/site-packages/nvidia/cudnn/lib",
                                   "usr/lib/python3.11/site-packages/nvidia/cudnn/lib"));
}

TEST_F(SharedLibraries, PyenvsScriptStandsForTheVersionsBesideIt) {
  file("pyenv/shims/python3");
  folder("pyenv/versions/3.12.1/lib/python3.12/site-packages/nvidia/cudnn/lib");
  EXPECT_THAT(mine(library_folders(environment({{"PATH", (root_ / "pyenv/shims").string()}}))),
              testing::ElementsAre("pyenv/versions/3.12.1/lib/python3.12/site-packages/nvidia/cudnn/lib"));
}

TEST_F(SharedLibraries, WithoutAnyVariableOnlyTheToolkitsUsualFolderIsLeft) {
  for (const auto& each : library_folders(environment({})))
    EXPECT_THAT(each.string(), testing::StartsWith("/usr/local/cuda"));
}

}  // namespace

namespace {

constexpr Module kNone{.kind = ErrorKind::device,
                       .library = "thing",
                       .file = "paceline_thing.so",
                       .entry = "paceline_open_thing",
                       .built_with = "libthing-dev",
                       .remedy = "install libthing1"};

std::string refusal(const std::filesystem::path& folder) {
  try {
    (void)open_module(kNone, folder);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    return error.what();
  }
  return "opened";
}

std::filesystem::path empty_folder(const char* name) {
  const auto folder = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

TEST(OpenModule, OneThatIsNotThereSaysWhatToInstallAndHowToBuild) {
  const auto folder = empty_folder("module_absent");
  const auto text = refusal(folder);
  EXPECT_THAT(text,
              testing::StartsWith("thing: " + (folder / "paceline_thing.so").string() + " is not there"));
  EXPECT_THAT(text, testing::HasSubstr("install libthing-dev, then: cmake --preset release && ./x build"));
}

TEST(OpenModule, OneThatDoesNotOpenGivesTheLoadersReasonAndTheRemedy) {
  const auto folder = empty_folder("module_broken");
  std::ofstream(folder / "paceline_thing.so") << "no library";
  const auto text = refusal(folder);
  EXPECT_THAT(text, testing::HasSubstr("cannot be opened"));
  EXPECT_THAT(text, testing::EndsWith("install libthing1"));
}

// In the build, test programs lie in tests/ and modules above it.
TEST(ModulePath, IsAboveTheProgramWhereTheBuildLeavesIt) {
  const auto beside = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  EXPECT_EQ(module_path(kNone), beside / "paceline_thing.so");
  const auto above = beside.parent_path() / "paceline_thing.so";
  std::ofstream(above) << "a module";
  EXPECT_EQ(module_path(kNone), above);
  std::filesystem::remove(above);
}

TEST(ModulePath, IsWhereOthersCannotPutIt) {
  using Folders = std::vector<std::filesystem::path>;
  EXPECT_EQ(module_folders("/opt/p/bin/paceline"), (Folders{"/opt/p/bin", "/opt/p/lib/paceline"}));
  EXPECT_EQ(module_folders("/tmp/x/paceline"), Folders{"/tmp/x"});
  EXPECT_EQ(module_folders("/scratch/paceline/paceline"), Folders{"/scratch/paceline"});
  EXPECT_EQ(module_folders("/tmp/tests/paceline"), Folders{"/tmp/tests"});
  EXPECT_EQ(module_folders("/w/build/release/tests/test_comm"),
            (Folders{"/w/build/release/tests", "/w/build/release"}));
}

}  // namespace

namespace {

TEST(ProgramPath, IsTheFileThatRuns) {
  EXPECT_EQ(program_path(), std::filesystem::read_symlink("/proc/self/exe"));
  EXPECT_EQ(program_path("/opt/p/bin/paceline", ""), "/opt/p/bin/paceline");
}

TEST(ProgramPath, OfABundleIsWhatItsLoaderWasStartedFor) {
  EXPECT_EQ(program_path("/b/lib/ld-linux-x86-64.so.2", "/b/bin/paceline"), "/b/bin/paceline");
  EXPECT_EQ(program_path("/b/lib/ld-linux-x86-64.so.2", ""), "/b/lib/ld-linux-x86-64.so.2");
  EXPECT_EQ(program_path("/usr/bin/paceline", "/b/bin/paceline"), "/usr/bin/paceline")
      << "another program inherited the variable";
}

TEST(BuildId, IsWhatTheLinkerWroteIntoTheFile) {
  const auto id = build_id();
  ASSERT_EQ(id.size(), 40u) << id;
  std::string bytes;
  for (std::size_t i = 0; i < id.size(); i += 2)
    bytes += static_cast<char>(std::stoi(id.substr(i, 2), nullptr, 16));
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(all.find(bytes), std::string::npos);
}

}  // namespace
}  // namespace paceline::base
