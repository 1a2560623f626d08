// yoke prep image and yoke prep nccl: what takes long on every node, done before the day.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/fleet/fleet.h"
#include "yoke/job/job.h"
#include "yoke/launch/nccl_build.h"
#include "yoke/launch/prep_image.h"
#include "yoke/launch/prep_look.h"
#include "yoke/launch/prep_python.h"
#include "yoke/spec/machine.h"

namespace yoke::cli {
namespace {

constexpr Seconds kLookAtNode{60};

std::vector<spec::ClusterNode> prepared_nodes(const std::optional<spec::Cluster>& cluster) {
  return cluster ? cluster->nodes : std::vector<spec::ClusterNode>{job::this_machine()};
}

std::string gpu_of(fleet::Node& node) {
  const auto machine = from_json<spec::Machine>(node.ask("pin-facts", Document::null(), kLookAtNode));
  return machine.gpus.empty() ? "" : machine.gpus.front().name;
}

struct ImageOptions {
  std::string name;
  bool dry_run = false;
};

Document image_json(const std::string& image, const std::vector<launch::NodeImage>& images, bool equal) {
  Document nodes = Document::list();
  for (const launch::NodeImage& one : images) {
    nodes.items.push_back(Document::map({{"node", Document::string(one.node)},
                                         {"id", Document::string(one.id)},
                                         {"digest", Document::string(one.digest)},
                                         {"pulled", Document::boolean(one.pulled)},
                                         {"problem", Document::string(one.problem)}}));
  }
  return Document::map(
      {{"image", Document::string(image)}, {"equal", Document::boolean(equal)}, {"nodes", std::move(nodes)}});
}

int prep_image(Session& session, const ImageOptions& options) {
  const auto cluster = read_session_cluster(session);
  fleet::Fleet fleet(prepared_nodes(cluster), fleet::NodeOptions{});
  const bool is_reference = options.name.find_first_of("/:") != std::string::npos && !options.name.ends_with(".yaml");
  const std::string image = launch::image_of(options.name, is_reference ? "" : gpu_of(fleet[0]));
  const auto images = options.dry_run ? launch::inspect_images(fleet, image) : launch::pull_images(fleet, image);
  const bool equal = launch::are_equal(images);
  if (session.json) {
    session.print_json(image_json(image, images, equal));
    return equal ? kExitOk : kExitFindings;
  }
  session.print(image + "\n");
  for (const launch::NodeImage& one : images) {
    const std::string state = !one.problem.empty() ? "cannot be pulled: " + printable(one.problem, 160)
                              : one.id.empty()     ? "missing: docker pull " + image
                              : one.pulled         ? "pulled, " + one.id.substr(0, 19)
                                                   : "there, " + one.id.substr(0, 19);
    session.print(fmt::format("  {}: {}\n", one.node, state));
  }
  if (equal) {
    session.print("All nodes have the same image.\n");
    if (!images.front().digest.empty()) session.print(fmt::format("Pin it: --image {}\n", images.front().digest));
  } else if (std::all_of(images.begin(), images.end(), [](const auto& one) { return !one.id.empty(); })) {
    session.print("The nodes have different images of that name.\n");
  }
  return equal ? kExitOk : kExitFindings;
}

struct NcclOptions {
  std::optional<std::string> version, source, tests_source, folder, architecture;
  int jobs = 0;
  bool dry_run = false;
};

struct BuiltNccl {
  std::string node, script, result, problem;
};

std::string architecture_of(fleet::Node& node, const NcclOptions& options) {
  if (options.architecture) return *options.architecture;
  const auto answer = from_json<launch::PrepAnswer>(node.ask("prep-look", Document::null(), kLookAtNode));
  if (!answer.architecture.empty()) return answer.architecture;
  throw Error(ErrorCode::kNotFound, fmt::format("{} has no GPU that reports its architecture", node.name()),
              "name it: --arch sm_121");
}

BuiltNccl build_nccl(fleet::Node& node, const NcclOptions& options, bool ring) {
  launch::NcclBuildOptions build{.architecture = architecture_of(node, options),
                                 .version = options.version.value_or(launch::nccl_version_for(ring)),
                                 .jobs = options.jobs};
  if (options.source) build.nccl_source = *options.source;
  if (options.tests_source) build.tests_source = *options.tests_source;
  if (options.folder) build.folder = *options.folder;
  BuiltNccl built{.node = node.name(), .script = launch::nccl_build_script(build), .result = {}, .problem = {}};
  if (options.dry_run) return built;
  const Outcome outcome = node.run({.argv = {"bash", "-c", built.script}, .timeout = Seconds{2 * 3600}});
  const std::string lines(trim(outcome.out));
  if (outcome.ok()) {
    built.result = lines.substr(lines.rfind('\n') + 1);
  } else {
    built.problem = outcome.describe();
  }
  return built;
}

int prep_nccl(Session& session, const NcclOptions& options) {
  const auto cluster = read_session_cluster(session);
  const bool ring = cluster && cluster->fabric && spec::is_ring_or_mesh(cluster->fabric->topology);
  fleet::Fleet fleet(prepared_nodes(cluster), fleet::NodeOptions{});
  const auto built =
      fleet::all_or_throw(fleet.each(options.dry_run ? "" : "building NCCL and nccl-tests",
                                     [&](fleet::Node& node) { return build_nccl(node, options, ring); }));
  bool failed = false;
  Document nodes = Document::list();
  for (const BuiltNccl& one : built) {
    failed = failed || !one.problem.empty();
    nodes.items.push_back(Document::map({{"node", Document::string(one.node)},
                                         {"script", Document::string(one.script)},
                                         {"result", Document::string(one.result)},
                                         {"problem", Document::string(one.problem)}}));
    if (session.json) continue;
    if (options.dry_run) {
      session.print(fmt::format("==> {} <==\n{}", one.node, one.script));
    } else {
      session.print(fmt::format("{}: {}\n", one.node, one.problem.empty() ? one.result : printable(one.problem, 200)));
    }
  }
  if (session.json) {
    session.print_json(Document::map({{"nodes", std::move(nodes)}}));
  } else if (!failed && !options.dry_run) {
    session.print(
        "Python engines load a wheel of their own instead: LD_PRELOAD or VLLM_NCCL_SO_PATH names this library.\n");
  }
  return failed ? kExitFindings : kExitOk;
}

struct PythonArguments {
  std::string engine;
  std::optional<std::string> requirements, folder, wheels;
  bool check_only = false;
};

struct NodePython {
  std::string freeze, problem;
};

int prep_python(Session& session, const PythonArguments& a) {
  launch::PythonOptions options{.requirements = a.requirements ? read_file(*a.requirements, Bytes{1 << 20}) : "",
                                .folder = a.folder.value_or("/opt/yoke/python-" + a.engine),
                                .wheels = a.wheels.value_or(""),
                                .check_only = a.check_only};
  if (!a.check_only && !a.requirements) {
    throw Error(ErrorCode::kUsage, "there is no list of packages",
                "--requirements FILE, with a version for each; or --check");
  }
  if (const auto loose = launch::unpinned_lines(options.requirements); !loose.empty()) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("{}: '{}' names no exact version", *a.requirements, printable(loose.front(), 80)),
                "such as torch==2.9.1: without it two nodes can get different ones");
  }
  const auto cluster = read_session_cluster(session);
  fleet::Fleet fleet(prepared_nodes(cluster), fleet::NodeOptions{});
  const std::string script = launch::python_script(options);
  const auto nodes = fleet::all_or_throw(fleet.each("making the Python environment", [&](fleet::Node& node) {
    const Outcome outcome = node.run({.argv = {"bash", "-c", script}, .timeout = Seconds{3600}});
    return NodePython{.freeze = outcome.out, .problem = outcome.ok() ? "" : outcome.describe()};
  }));
  bool wrong = false;
  Document list = Document::list();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto differences = launch::freeze_differences(nodes.front().freeze, nodes[i].freeze);
    wrong = wrong || !nodes[i].problem.empty() || !differences.empty();
    Document different = Document::list();
    for (const std::string& one : differences) different.items.push_back(Document::string(one));
    list.items.push_back(Document::map({{"node", Document::string(fleet[i].name())},
                                        {"problem", Document::string(nodes[i].problem)},
                                        {"differences", std::move(different)}}));
    if (session.json) continue;
    session.print(
        fmt::format("{}: {}\n", fleet[i].name(),
                    !nodes[i].problem.empty() ? printable(nodes[i].problem, 200)
                    : differences.empty()
                        ? fmt::format("{} packages in {}",
                                      std::count(nodes[i].freeze.begin(), nodes[i].freeze.end(), '\n'), options.folder)
                        : fmt::format("differs from {}", fleet[0].name())));
    for (const std::string& one : differences) session.print(fmt::format("  {}\n", one));
  }
  if (session.json) {
    session.print_json(Document::map({{"folder", Document::string(options.folder)}, {"nodes", std::move(list)}}));
  } else if (!wrong) {
    session.print(fmt::format("The same on all nodes. Use it: --env PATH={}/bin:/usr/bin:/bin\n", options.folder));
  }
  return wrong ? kExitFindings : kExitOk;
}

}  // namespace

CommandRow prep_python_command() {
  return {
      .name = "python",
      .summary = "make a Python environment from a pinned list, the same on every node",
      .description =
          "Makes a virtual environment on every node from a list of packages with exact versions, and compares what "
          "is installed there in the end. --check only compares. Exit status 1 where nodes differ.",
      .examples = {{"yoke prep python vllm --requirements vllm.txt", "in /opt/yoke/python-vllm on every node"},
                   {"yoke prep python vllm --requirements vllm.txt --wheels /models/wheels", "without the internet"},
                   {"yoke prep python vllm --check", "whether the nodes still have the same"}},
      .prepare = [](OptionTable& table) -> Action {
        auto options = std::make_shared<PythonArguments>();
        table.positional("ENGINE", "a name for it, such as the engine's", options->engine, Presence::kRequired);
        table.value("--requirements", "FILE", "the list, as pip reads it, with a version for each package",
                    options->requirements);
        table.value("--folder", "FOLDER", "of the environment (/opt/yoke/python-ENGINE)", options->folder);
        table.value("--wheels", "FOLDER", "take packages from this folder of every node only", options->wheels);
        table.flag("--check", "compare only", options->check_only);
        return [options](Session& session) { return prep_python(session, *options); };
      },
      .place = CommandPlace::kHead};
}

CommandRow prep_image_command() {
  return {.name = "image",
          .summary = "pull a container image on every node, the same bytes everywhere",
          .description =
              "Pulls the image of an engine (for the GPU of the nodes), or an image by its name, on every node that "
              "lacks it. Where a tag moved between two pulls, the other nodes get the head's image by its digest. Exit "
              "status 1 where a node lacks it in the end, or has another one.",
          .examples = {{"yoke prep image vllm", "the image that 'yoke launch vllm --through docker' uses"},
                       {"yoke prep image nvcr.io/nvidia/vllm:26.05-py3 --dry-run", "which node lacks it"}},
          .prepare = [](OptionTable& table) -> Action {
            auto options = std::make_shared<ImageOptions>();
            table.positional("ENGINE", "an engine of 'yoke launch list', or an image", options->name,
                             Presence::kRequired);
            table.flag("--dry-run", "only look which node lacks it", options->dry_run);
            return [options](Session& session) { return prep_image(session, *options); };
          },
          .place = CommandPlace::kHead};
}

CommandRow prep_nccl_command() {
  return {
      .name = "nccl",
      .summary = "build NCCL and nccl-tests for the GPU of every node",
      .description =
          "Builds a release of NCCL and nccl-tests on every node with code for its GPU (sm_121, sm_103, …), with as "
          "many compilers at once as memory allows, and looks into the library whether the code is there. A ring "
          "gets 2.30.7, which it needs; others 2.28.9. Needs git, make, CUDA's compiler and Open MPI on the nodes.",
      .examples = {{"yoke prep nccl --dry-run", "print the script of every node"},
                   {"yoke prep nccl", "build it"},
                   {"yoke prep nccl --source /media/disk/nccl", "from a folder that every node has"}},
      .prepare = [](OptionTable& table) -> Action {
        auto options = std::make_shared<NcclOptions>();
        table.value("--version", "TAG", "of NCCL (v2.28.9-1; v2.30.7-1 in a ring)", options->version);
        table.value("--arch", "NAME", "of the GPU, such as sm_121 (what the node has)", options->architecture);
        table.value("--source", "URL", "of NCCL: a git repository or a folder with one", options->source);
        table.value("--tests-source", "URL", "the same of nccl-tests", options->tests_source);
        table.value("--folder", "FOLDER", "to build in, on every node ($HOME/nccl-yoke)", options->folder);
        table.value("--jobs", "N", "compilers at once (by processors and memory)", options->jobs,
                    {.min = 1, .max = 256});
        table.flag("--dry-run", "print the scripts and build nothing", options->dry_run);
        return [options](Session& session) { return prep_nccl(session, *options); };
      },
      .place = CommandPlace::kHead};
}

}  // namespace yoke::cli
