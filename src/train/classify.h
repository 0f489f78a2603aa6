#pragma once

/// Classifies images with a checkpoint alone: it holds the graph, the size and normalisation of images, how
/// evaluation takes them, and the names of the classes.

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "train/given/backend.h"
#include "train/given/job.h"
#include "train/given/options.h"

namespace paceline::train {

struct CheckpointInfo;

/// The graph of a checkpoint, for images as its evaluation sees them. Their size, normalisation and classes
/// are in `info.data` and fit it.
///
/// Errors   Error(data): a damaged checkpoint, or one of a version that kept no graph or classes
[[nodiscard]] graph::Graph graph_in(const CheckpointInfo& info);

struct ClassifyRequest {
  std::filesystem::path checkpoint;           ///< a file, or a training's directory
  std::vector<std::filesystem::path> images;  ///< as data::find_images() takes them
  int top = 1;                                ///< how many classes of each image
};

struct ClassifiedImage {
  std::string file;
  std::string path;   ///< of an image in an archive its path there; else `file`
  std::string fault;  ///< why it could not be read: a sentence that names it; "": it could
  std::vector<std::pair<std::string, double>> classes;  ///< the likeliest first, with their probabilities
};

struct ImagesToClassify {
  std::int64_t images = 0;  ///< that take() gets
  std::string description;  ///< of checkpoint and images: a line
  std::vector<std::string> classes;
  std::vector<std::string> notes;
  std::vector<std::string> faults;  ///< what is not there or holds no image, a sentence each
};

/// Calls `begin` once, then `take` for each image in the order of the request: folders by their paths. Images
/// are resized, cropped and normalised as in the evaluation of the training. Of `options` matter device,
/// precision (auto: that of the checkpoint), threads and views. Ends early when it is asked to stop.
///
/// Cost     reads and decodes each image once; memory as for a training of at most 32 images a step
/// Errors   Error(data): no checkpoint, a damaged one, or one of a version that kept no graph or classes;
///          Error(device): the plan exceeds the memory
/// Threads  `begin` and `take` are called by the caller's
void classify_images(const Options& options, const ClassifyRequest& request, const Backend& backend,
                     std::stop_token stop, const std::function<void(const ImagesToClassify&)>& begin,
                     const std::function<void(const ClassifiedImage&)>& take);

}  // namespace paceline::train
