/// What the real program promises about GPUs: it links nothing of CUDA, starts without its module, and says
/// what is missing.

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "program.h"

namespace paceline::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// The libraries that the loader opens with a program: DT_NEEDED of a 64-bit ELF file.
std::vector<std::string> needed_libraries(const std::filesystem::path& program) {
  const std::string bytes = base::read_file(program);
  const auto at = [&]<typename T>(std::size_t offset, T) {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  };
  const auto header = at(0, Elf64_Ehdr{});
  std::vector<std::string> needed;
  for (int i = 0; i < header.e_shnum; ++i) {
    const auto section = [&](std::size_t number) {
      return at(header.e_shoff + number * header.e_shentsize, Elf64_Shdr{});
    };
    const auto dynamic = section(static_cast<std::size_t>(i));
    if (dynamic.sh_type != SHT_DYNAMIC) continue;
    const auto names = section(dynamic.sh_link);
    for (std::size_t offset = 0; offset < dynamic.sh_size; offset += sizeof(Elf64_Dyn)) {
      const auto entry = at(dynamic.sh_offset + offset, Elf64_Dyn{});
      if (entry.d_tag == DT_NEEDED) needed.emplace_back(bytes.data() + names.sh_offset + entry.d_un.d_val);
    }
  }
  return needed;
}

/// Runs a shell's line; its exit code and all that it writes.
std::pair<int, std::string> shell(const std::string& line) {
  std::string out;
  FILE* const pipe = ::popen(("exec 2>&1; " + line).c_str(), "r");
  if (pipe == nullptr) return {-1, "popen"};
  std::array<char, 4096> part{};
  for (std::size_t got = 0; (got = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    out.append(part.data(), got);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out};
}

TEST(ProgramOnGpus, LinksNothingOfCuda) {
  const auto needed = needed_libraries(PACELINE_PROGRAM);
  EXPECT_THAT(needed, testing::Contains(testing::StartsWith("libc.so")));
  for (const auto& library : needed)
    EXPECT_THAT(library, Not(ContainsRegex("cuda|cudnn|cudart|cublas|nvidia|nvrtc|nccl")));
}

TEST(ProgramOnGpus, StartsWithoutTheModuleAndSaysHowToBuildIt) {
  const Folder folder;
  const auto program = folder.path() / "paceline";
  std::filesystem::copy_file(PACELINE_PROGRAM, program);
  const auto [code, out] = shell(program.string() + " doctor --no-measure");
  EXPECT_EQ(code, 0) << out;
  EXPECT_THAT(out, ContainsRegex("\nGPUs\n"));
  EXPECT_THAT(out,
              HasSubstr("--device cuda " + (folder.path() / "paceline_cuda.so").string() + " is not there"));
  EXPECT_THAT(out, HasSubstr("./x build --all-gpus builds it"));
}

TEST(ProgramOnGpus, DoctorMentionsTheVariableThatHidesThem) {
  const auto [code, out] = shell("CUDA_VISIBLE_DEVICES= '" PACELINE_PROGRAM "' doctor --no-measure");
  EXPECT_EQ(code, 0) << out;
  EXPECT_THAT(out, HasSubstr("CUDA_VISIBLE_DEVICES is set and empty: it hides every GPU"));
}

// On a machine with GPUs they are listed, on others the reason is a row; the command fails on neither.
TEST(ProgramOnGpus, DoctorSaysWhatThereIsOrWhyItIsNotKnown) {
  const auto [code, out] = shell("'" PACELINE_PROGRAM "' doctor --no-measure");
  EXPECT_EQ(code, 0) << out;
  const auto begin = out.find("\nGPUs\n");
  ASSERT_NE(begin, std::string::npos) << out;
  const auto section = out.substr(begin + 6, out.find("\n\n", begin + 1) - begin);
  EXPECT_THAT(section, testing::AnyOf(HasSubstr("  driver "), HasSubstr("unknown: ")));
  EXPECT_THAT(section, HasSubstr("--device cuda "));
}

}  // namespace
}  // namespace paceline::cli
