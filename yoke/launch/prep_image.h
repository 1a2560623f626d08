// A container image on every node before the day: pulled where it is missing, and the same bytes everywhere.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/fleet/fleet.h"
#include "yoke/launch/engine_file.h"

namespace yoke::launch {

struct NodeImage {
  std::string node;
  std::string id;       // Docker's; empty: not there
  std::string digest;   // "nvcr.io/nvidia/vllm@sha256:…"; empty: built or loaded there, never pulled
  std::string problem;  // why Docker could not be asked, or could not pull
  bool pulled = false;
};

// "vllm" by the GPU of the nodes, or an image as it is. Error(kUsage) where none is known.
std::string image_of(const std::string& engine_or_image, const std::string& gpu_name);

std::vector<NodeImage> inspect_images(fleet::Fleet& fleet, const std::string& image);
// Pulls where it is missing. Where nodes then have different images of that name, they get the head's by its digest.
// Problems are in the answers.
std::vector<NodeImage> pull_images(fleet::Fleet& fleet, const std::string& image);
// Loads a file of `docker save`, which every node has at this path.
std::vector<NodeImage> load_images(fleet::Fleet& fleet, const std::string& file);

// Whether all nodes have the same image.
bool are_equal(const std::vector<NodeImage>& images);

}  // namespace yoke::launch
