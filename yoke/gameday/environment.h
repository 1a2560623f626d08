// Where a game day takes place, and what its phases leave for each other: a lab of its own, a lab or a cluster that was
// given. A lab of its own goes with this, whatever happens, and so does the scratch folder; unless they are to be kept.
//
//   Environment environment({.program = "/usr/bin/yoke"});    // nothing is started yet
//   environment.start_lab(scene);                       // the phase `lab` does
//
// One thread owns it.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/files.h"
#include "yoke/spec/cluster.h"

namespace yoke::gameday {

enum class CleanUp { kCleanUp, kKeep };
enum class LabKind { kFull, kPlain };

struct EnvironmentOptions {
  std::filesystem::path program;                           // what "yoke" in a shown line stands for
  std::optional<std::filesystem::path> cluster_file = {};  // absent: a lab of its own
  std::optional<std::string> lab = {};                     // that the cluster file describes
  LabKind lab_kind = LabKind::kFull;                       // of a lab of its own
  std::optional<std::filesystem::path> model = {};         // a folder; on a cluster every node must have it
  CleanUp after = CleanUp::kCleanUp;
  std::string hardware = "spark";  // of a lab of its own: a name of the catalogue
  int dcgm_level = 1;              // of NVIDIA's diagnostic on servers; 0: leave it out
};

// An answer of the model, to compare others with.
struct Answer {
  std::string text;
  std::vector<std::string> tokens;  // ids
};

// What the plan expects of the model over all nodes, before it runs.
struct Expectation {
  double rate = 0;  // tokens/s of one request
  double low = 0;   // of the 80% interval
  double high = 0;
  bool one_node_holds_it = false;
};

class Environment {
 public:
  explicit Environment(EnvironmentOptions options);
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment();

  const EnvironmentOptions& options() const { return options_; }
  const std::filesystem::path& folder() const { return scratch_.path(); }  // commands run here
  bool has_own_lab() const { return !options_.cluster_file; }
  std::optional<std::string> lab() const { return lab_; }  // its own or the given one
  std::filesystem::path cluster_file() const;              // of its own lab: once that is set up
  // The same for a command line: commands run in folder(), where a short name will do.
  std::string cluster_word() const;
  // What is known of its own lab before its cables are: phase `handshake` makes the cluster file from it.
  static constexpr const char* kFactoryFile = "factory.yaml";
  spec::Cluster cluster() const;
  std::string describe() const;
  int gpus_of_node() const;  // by the catalogue; 1 where it does not know the machines

  // Told by the phase that starts the lab: before it does, so that whatever it has begun is ended too; then what the
  // lab turned out to lack.
  void lab_begins() { lab_may_be_up_ = true; }
  void lab_lacks(std::vector<std::string> what) { missing_ = std::move(what); }
  void lab_ended() { lab_may_be_up_ = false; }

  // Why interfaces of the nodes' own, a fault, or a memory limit cannot be had here; nothing where they can.
  std::optional<std::string> why_no_network() const;
  std::optional<std::string> why_no_faults() const;
  std::optional<std::string> why_no_memory_limit() const;

  std::filesystem::path model_played;      // grown in a lab, the given one on a cluster: see prepare_model()
  std::optional<Expectation> expectation;  // of that, by phase `plan`
  std::optional<Answer> answer;            // of that, over all nodes

 private:
  std::optional<std::string> missing(std::string_view what) const;  // as the lab told it

  EnvironmentOptions options_;
  ScratchDir scratch_;
  std::optional<std::string> lab_;
  std::vector<std::string> missing_;
  bool lab_may_be_up_ = false;
};

}  // namespace yoke::gameday
