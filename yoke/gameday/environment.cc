#include "yoke/gameday/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/process.h"
#include "yoke/base/result.h"
#include "yoke/spec/hardware.h"

namespace yoke::gameday {
namespace fs = std::filesystem;
namespace {

constexpr Seconds kDownLimit{60};
constexpr const char* kLabFile = "lab.yaml";

// Not /tmp: a lab's node has one of its own, and must see the model and the cluster file. The folder exists before the
// lab does, since a node's view of this machine's files is made when it starts.
const fs::path kScratchParent = "/var/tmp";

// Ctrl-C during the clean-up would end the clean-up: it is begun again, until the third signal ends the program.
void take_down(const fs::path& program, const std::string& lab) noexcept {
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Command down{.argv = {program, "lab", "down", "--name", lab}, .timeout = kDownLimit};
    try {
      run(down);  // a lab that never came up is no lab: its error is the wanted state
      return;
    } catch (const std::exception&) { /* interrupted once more */
    }
  }
}

std::optional<std::string> own_lab_name(const EnvironmentOptions& options) {
  return options.cluster_file ? options.lab : "gameday-" + random_token_hex(2);
}

// One that is kept has a name of its own. Of the others the next game day removes those that a killed one left.
std::string scratch_name(const EnvironmentOptions& options) {
  if (options.after == CleanUp::kKeep) return "yoke-gameday-kept";
  ScratchDir::remove_abandoned("yoke-gameday", kScratchParent);
  return "yoke-gameday";
}

}  // namespace

Environment::Environment(EnvironmentOptions options)
    : options_(std::move(options)), scratch_(scratch_name(options_), kScratchParent), lab_(own_lab_name(options_)) {}

Environment::~Environment() {
  if (options_.after == CleanUp::kKeep) {
    scratch_.release();
  } else if (has_own_lab() && lab_may_be_up_) {
    take_down(options_.program, *lab_);
  }
}

fs::path Environment::cluster_file() const { return options_.cluster_file.value_or(folder() / kLabFile); }

std::string Environment::cluster_word() const { return has_own_lab() ? kLabFile : cluster_file().native(); }

spec::Cluster Environment::cluster() const { return spec::load_cluster(cluster_file()); }

std::string Environment::describe() const {
  if (has_own_lab()) {
    return fmt::format("lab '{}', two virtual {} on this machine", *lab_,
                       options_.hardware == "spark" ? "Sparks" : "servers (" + options_.hardware + ")");
  }
  const spec::Cluster cluster = spec::load_cluster(*options_.cluster_file);
  return fmt::format("{} '{}', {} node{}", lab_ ? "lab" : "cluster", cluster.name, cluster.nodes.size(),
                     cluster.nodes.size() == 1 ? "" : "s");
}

int Environment::gpus_of_node() const {
  std::optional<std::string> name = options_.hardware;
  if (options_.cluster_file) name = spec::load_cluster(*options_.cluster_file).hardware;
  const spec::Hardware* const hardware = name ? spec::find_hardware(*name) : nullptr;
  return hardware ? hardware->gpus : 1;
}

std::optional<std::string> Environment::missing(std::string_view what) const {
  const auto found = std::find_if(missing_.begin(), missing_.end(),
                                  [&](const std::string& missing) { return missing.starts_with(what); });
  return found == missing_.end() ? std::nullopt : std::optional(*found);
}

std::optional<std::string> Environment::why_no_network() const {
  const auto what = missing("network");
  return what ? std::optional(fmt::format("this lab's nodes have no interfaces of their own ({})", *what))
              : std::nullopt;
}

std::optional<std::string> Environment::why_no_faults() const {
  if (!lab_) return "only the cables of a lab are cut by a command; on a cluster, pull one";
  const auto what = missing("faults");
  return what ? std::optional(fmt::format("this lab has no faults ({})", *what)) : std::nullopt;
}

std::optional<std::string> Environment::why_no_memory_limit() const {
  if (!has_own_lab()) return "the nodes were given, and may well hold this model";
  const auto what = missing("memory limit");
  return what ? std::optional(fmt::format("this lab's nodes have no {}", *what)) : std::nullopt;
}

}  // namespace yoke::gameday
