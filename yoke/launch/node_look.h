// What must be so on a node before an engine starts there: the program, free ports, the model, the image. One question
// to its agent.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/agent/action.h"
#include "yoke/base/units.h"

namespace yoke::launch {

struct LookQuestion {
  std::string program;     // to find in PATH; empty: not asked
  std::vector<int> ports;  // that must be free
  std::string model;       // a folder or a file; empty: not asked
  std::string image;       // of Docker; empty: not asked
  friend bool operator==(const LookQuestion&, const LookQuestion&) = default;
};

struct NodeLookAnswer {
  std::string program;     // where it lies; empty: not found
  std::vector<int> taken;  // of the ports
  bool model_exists = false;
  Bytes model_bytes{0};
  int model_files = 0;
  std::string model_hash;     // of the names and sizes of its files, and of its small ones' contents
  std::string image;          // Docker's id of it; empty: not there
  std::string image_problem;  // why Docker could not be asked
  Bytes swap{0};
  Bytes memory{0};                      // of the machine
  std::optional<std::string> earlyoom;  // its options where it runs
  Bytes disk_free{0};                   // where the model lies, or the home of the user
  friend bool operator==(const NodeLookAnswer&, const NodeLookAnswer&) = default;
};

Document to_json(const LookQuestion& question);
void from_json(const Document& document, NodeLookAnswer& answer);
NodeLookAnswer inspect_here(const LookQuestion& question);
Document answer_launch_look(const Document& question, agent::AgentContext& context);

// Equal for equal folders, without reading the weights: names, sizes, and the contents of files below 1 MiB.
std::string folder_fingerprint(const std::string& folder);

}  // namespace yoke::launch
