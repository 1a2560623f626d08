// The life of a lab: up, down, a node's power, and what its state is. docs/lab.md tells the story with a picture.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/lab/layout.h"
#include "yoke/lab/state.h"

namespace yoke::lab {

// What runs on of a lab is this program again (holder.h): its exit status where the arguments say so, else nothing.
std::optional<int> run_lab_part(const std::vector<std::string>& arguments);

// Starts a lab; on any failure, Ctrl-C included, nothing is left. Throws kConflict where the name is taken.
// What this machine cannot give (a memory limit) is answered by name, not by an error.
struct LabStarted {
  LabLayout layout;
  std::vector<std::string> missing;
};
LabStarted start_lab(const LabOptions& options);

// Ends everything of the lab, whatever state it is in. kNotFound where there is nothing of it.
void stop_lab(const std::string& name);

// Cuts a node's power: all its processes are killed, its interfaces lose their carrier.
void power_off(const LabLayout& layout, const LabNode& node);
// `except`: lines "link set X up" that are left out, for cables that are cut.
void power_on(const LabLayout& layout, const LabNode& node, const std::vector<std::string>& except,
              const LabLock& lock);

}  // namespace yoke::lab
