#include "yoke/launch/prep_image.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke::launch {
namespace {

constexpr Seconds kInspectLimit{30};
constexpr Seconds kPullLimit{4 * 3600};  // 20 GB at 12 Mb/s

NodeImage inspect(fleet::Node& node, const std::string& image) {
  NodeImage found{.node = node.name()};
  const Outcome outcome = node.run(
      {.argv = {"docker", "image", "inspect", "--format", "{{.Id}} {{range .RepoDigests}}{{.}} {{end}}", image},
       .timeout = kInspectLimit});
  if (outcome.ok()) {
    const std::vector<std::string> words = split(trim(outcome.out), ' ');
    if (!words.empty()) found.id = words[0];
    // Of several names of one image, the digest under the asked name.
    const std::string repository = image.substr(0, image.find_first_of("@:", image.rfind('/') + 1));
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i].starts_with(repository + "@")) found.digest = words[i];
    }
  } else if (outcome.err.find("No such image") == std::string::npos) {
    found.problem = outcome.describe();
  }
  return found;
}

// Docker's answer to a command that changes something; empty: it worked.
std::string try_docker(fleet::Node& node, std::vector<std::string> words) {
  words.insert(words.begin(), "docker");
  const Outcome outcome = node.run({.argv = std::move(words), .timeout = kPullLimit});
  return outcome.ok() ? "" : outcome.describe();
}

NodeImage pull(fleet::Node& node, const std::string& image) {
  NodeImage found = inspect(node, image);
  if (!found.id.empty() || !found.problem.empty()) return found;
  const std::string problem = try_docker(node, {"pull", "--quiet", image});
  found = inspect(node, image);
  found.pulled = problem.empty();
  if (!problem.empty()) found.problem = problem;
  return found;
}

NodeImage pull_digest(fleet::Node& node, const std::string& image, const std::string& digest) {
  std::string problem = try_docker(node, {"pull", "--quiet", digest});
  if (problem.empty()) problem = try_docker(node, {"tag", digest, image});
  NodeImage found = inspect(node, image);
  found.pulled = problem.empty();
  if (!problem.empty()) found.problem = problem;
  return found;
}

}  // namespace

std::string image_of(const std::string& engine_or_image, const std::string& gpu_name) {
  const std::vector<std::string> names = engine_names();
  const bool is_engine = std::find(names.begin(), names.end(), engine_or_image) != names.end() ||
                         engine_or_image.ends_with(".yaml") || engine_or_image.ends_with(".yml");
  if (!is_engine) {
    // Docker itself takes a bare word as an image; here it is more often an engine with a slip of the finger.
    if (engine_or_image.find_first_of("/:") != std::string::npos) return engine_or_image;
    load_engine(engine_or_image);  // throws with the nearest name
  }
  const EngineFile engine = load_engine(engine_or_image);
  for (const EngineImage& image : engine.images) {
    if (gpu_name.find(image.gpu) != std::string::npos) return image.image;
  }
  std::string known;
  for (const EngineImage& image : engine.images) known += fmt::format(" {} ({})", image.image, image.gpu);
  throw Error(
      ErrorCode::kUsage,
      fmt::format("no image of {} is known for {}", engine.name, gpu_name.empty() ? "nodes without a GPU" : gpu_name),
      known.empty() ? "name the image itself: yoke prep image NAME:TAG" : "name the image itself; known are" + known);
}

std::vector<NodeImage> inspect_images(fleet::Fleet& fleet, const std::string& image) {
  return fleet::all_or_throw(
      fleet.each("looking for the image", [&](fleet::Node& node) { return inspect(node, image); }));
}

bool are_equal(const std::vector<NodeImage>& images) {
  return std::all_of(images.begin(), images.end(),
                     [&](const NodeImage& image) { return !image.id.empty() && image.id == images.front().id; });
}

std::vector<NodeImage> pull_images(fleet::Fleet& fleet, const std::string& image) {
  auto images =
      fleet::all_or_throw(fleet.each("pulling the image", [&](fleet::Node& node) { return pull(node, image); }));
  const std::string digest = images.front().digest, id = images.front().id;
  if (are_equal(images) || id.empty() || digest.empty()) return images;
  // A tag moved between two pulls, or a node had an older one.
  return fleet::all_or_throw(fleet.each("pulling the head's image", [&](fleet::Node& node, std::size_t i) {
    return images[i].id == id || !images[i].problem.empty() ? images[i] : pull_digest(node, image, digest);
  }));
}

std::vector<NodeImage> load_images(fleet::Fleet& fleet, const std::string& file) {
  return fleet::all_or_throw(fleet.each("loading " + file, [&](fleet::Node& node) {
    NodeImage image{.node = node.name()};
    const Outcome outcome = node.run({.argv = {"docker", "load", "--quiet", "--input", file}, .timeout = kPullLimit});
    if (!outcome.ok()) {
      image.problem = outcome.describe();
      return image;
    }
    // "Loaded image: name:tag", or "Loaded image ID: sha256:…".
    const std::size_t colon = outcome.out.find(": ");
    const std::string name(trim(colon == std::string::npos ? outcome.out : outcome.out.substr(colon + 2)));
    image = inspect(node, name.substr(0, name.find('\n')));
    image.pulled = true;
    return image;
  }));
}

}  // namespace yoke::launch
