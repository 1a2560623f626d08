// Faults: what goes wrong on real desks, made to order in a lab. Each is a few changes to one node (docs/lab.md tells
// the mechanism of each); what it changed is recorded with the state it found, so that clearing restores exactly that.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/lab/layout.h"

namespace yoke::lab {

struct FaultRow {
  std::string_view name;
  std::string_view summary;
  enum class Scope { kNode, kHalf } scope;  // kHalf takes --rail; rail B unless given
};
std::span<const FaultRow> fault_table();

struct ActiveFault {
  std::string name;
  int node = 0;
  std::string rail;  // empty for the whole node
  struct Undo {
    int node = 0;
    std::string tool;  // ip, tc or nft
    std::string line;
  };
  std::vector<Undo> undo;            // to be run in this order
  std::vector<std::string> devices;  // what hardware-faults.json names, for faults that only the hardware tree shows
};

std::vector<ActiveFault> active_faults(const std::string& lab);

// Throws kConflict where it is in force already, kUnsupported where this machine cannot do it.
void apply_fault(const LabLayout& layout, std::string_view name, const LabNode& node, const std::string& rail);
std::size_t clear_faults(const LabLayout& layout);  // all, latest first; returns how many

}  // namespace yoke::lab
