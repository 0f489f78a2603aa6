#include "data/get/get.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/archive.h"
#include "data/file_bytes.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using base::ErrorKind;

constexpr const char* kNote = "paceline-get.txt";

/// The four files of a data set in MNIST's format. `folders`: the publisher's address, then mirrors.
std::vector<RemoteFile> idx_files(const std::vector<std::string>& folders,
                                  const std::vector<std::pair<std::int64_t, std::string>>& sizes_and_sums) {
  const std::vector<std::string> names{"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
                                       "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"};
  std::vector<RemoteFile> files;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto url_in = [&](const std::string& folder) { return folder + "/" + names[i]; };
    files.push_back({.name = names[i],
                     .urls = base::texts_of(folders, url_in),
                     .bytes = sizes_and_sums[i].first,
                     .sha256 = sizes_and_sums[i].second});
  }
  return files;
}

/// The text of the note that marks a package as complete.
std::string note_of(const Package& package) {
  std::string text = fmt::format("{}, {}; by paceline data get\n", package.name, package.source);
  for (const auto& file : package.files) text += fmt::format("{}  {}\n", file.sha256, file.name);
  return text;
}

/// A temporary folder that is removed unless it was renamed.
class Draft {
 public:
  explicit Draft(fs::path path) : path_(std::move(path)) { fs::create_directories(path_); }
  ~Draft() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

[[noreturn]] void fail_unpacking(const fs::path& packed, const FileBytes& file,
                                 const ArchiveReader& archive) {
  file.require_read();  // else what could not be read would look like damage
  base::fail(ErrorKind::data, "{}: cannot be unpacked: {}", packed.string(), archive.reason());
}

void write_member(ArchiveReader& archive, const fs::path& packed, const FileBytes& bytes,
                  const fs::path& target) {
  std::ofstream file(target, std::ios::binary);
  std::vector<std::uint8_t> block(1 << 16);
  std::int64_t got = 0;
  while ((got = archive.read(block)) > 0)
    file.write(reinterpret_cast<const char*>(block.data()), static_cast<std::streamsize>(got));
  if (got < 0) fail_unpacking(packed, bytes, archive);
  file.close();
  if (!file)
    base::fail(ErrorKind::data, "{}: cannot be written: {}; is the disk full?", target.string(),
               base::reason_of_write(errno));
}

/// Unpacks the files of a .tar.gz (without their folders) or the single file of a .gz.
void unpack(const fs::path& packed, const fs::path& directory) {
  const bool is_tar = packed.filename().string().ends_with(".tar.gz");
  const auto file = FileBytes::map(packed);
  const auto archive = read_archive(is_tar ? ArchiveForm::tar_gzip : ArchiveForm::gzip, file.bytes());
  ArchiveMember member;
  auto next = ArchiveReader::Next::end;
  while ((next = archive->next(member)) == ArchiveReader::Next::member) {
    if (is_tar && !member.is_file) continue;
    const auto name = is_tar ? fs::path(member.path).filename() : packed.filename().replace_extension();
    write_member(*archive, packed, file, directory / name);
  }
  if (next != ArchiveReader::Next::end) fail_unpacking(packed, file, *archive);
  file.require_read();
}

}  // namespace

const std::vector<Package>& packages() {
  static const std::vector<Package> table = {
      {.name = "cifar10",
       .directory = "cifar-10-batches-bin",
       .format = "cifar10",
       .source = "A. Krizhevsky, V. Nair, G. Hinton, University of Toronto",
       .files = {{.name = "cifar-10-binary.tar.gz",
                  .urls = {"https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"},
                  .bytes = 170052171,
                  .sha256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}}},
      {.name = "mnist",
       .directory = "mnist",
       .format = "mnist",
       .source = "Y. LeCun, C. Cortes, C. J. C. Burges",
       .files =
           idx_files({"http://yann.lecun.com/exdb/mnist", "https://ossci-datasets.s3.amazonaws.com/mnist",
                      "https://storage.googleapis.com/cvdf-datasets/mnist"},
                     {{9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
                      {28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
                      {1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
                      {4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}})},
      {.name = "fashion-mnist",
       .directory = "fashion-mnist",
       .format = "mnist",
       .source = "Zalando Research",
       .files = idx_files({"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
                           "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion"},
                          {{26421880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
                           {29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
                           {4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
                           {5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"}})},
      {.name = "caltech256",
       .directory = "caltech256",
       .format = "folder",
       .source = "G. Griffin, A. Holub, P. Perona, California Institute of Technology",
       .files = {{.name = "256_ObjectCategories.tar",
                  .urls = {"https://data.caltech.edu/records/nyy15-4j048/files/256_ObjectCategories.tar"},
                  .bytes = 1183006720,
                  .sha256 = "08ff01b03c65566014ae88eb0490dbe4419fc7ac4de726ee1163e39fd809543e"}},
       .read_in_place = "256_ObjectCategories.tar"}};
  return table;
}

std::vector<std::string> package_names() { return base::texts_of(packages(), &Package::name); }

std::string how_to_get(const std::string& name) {
  if (name != "fruits-360" && name != "fruits360" && name != "fruits") return {};
  return "its publisher changes the set from release to release and publishes no file with a fixed "
         "checksum. Clone or download one of its releases (github.com/fruits-360/fruits-360-100x100, or "
         "moltean/fruits on kaggle.com), and train with --data folder:DIR, where DIR holds Training/ and "
         "Test/";
}

Got get(const Package& package, const fs::path& cache, const DownloadOptions& options) {
  const fs::path directory = cache / package.directory;
  const std::string note = note_of(package);
  const fs::path read = package.read_in_place.empty() ? directory : directory / package.read_in_place;
  const std::string spec = package.format + ":" + read.string();
  std::error_code error;
  if (base::is_there(directory)) {
    if (base::is_file(directory / kNote) && base::read_file(directory / kNote) == note)
      return {.directory = directory, .spec = spec, .was_there = true};
    base::fail(ErrorKind::data,
               "{} exists already, but 'data get' did not make it; give another folder with --cache, or "
               "remove it",
               directory.string());
  }
  const fs::path downloads = cache / "downloads" / package.name;
  base::end_of_links(downloads);
  fs::create_directories(downloads, error);
  if (error)
    base::fail(ErrorKind::data, "{}: cannot be made: {}; give another folder with --cache",
               downloads.string(), error.message());
  for (const auto& file : package.files)
    if (!base::is_there(downloads / file.name)) download(file, downloads / file.name, options);
  const Draft draft(cache / fmt::format("{}.{}.part", package.directory, ::getpid()));
  for (const auto& file : package.files)
    if (file.name.ends_with(".tar"))
      fs::rename(downloads / file.name, draft.path() / file.name);
    else
      unpack(downloads / file.name, draft.path());
  base::write_file(draft.path() / kNote, note);
  fs::rename(draft.path(), directory, error);
  if (error)
    base::fail(ErrorKind::data, "{}: cannot be renamed to {}: {}", draft.path().string(), directory.string(),
               error.message());
  fs::remove_all(downloads, error);
  return {.directory = directory, .spec = spec};
}

}  // namespace paceline::data
