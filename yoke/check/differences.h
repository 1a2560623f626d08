// What differs between the nodes of a cluster and should not: a collective runs as the slowest of them, and two drivers
// or NCCL builds are a classic cause of hangs. What is a node's own (names, addresses, load) does not count. `yoke
// probe` lists all of it; the rules kernel-differs, driver-differs and nccl-differs evaluate theirs.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/spec/machine.h"
#include "yoke/spec/survey.h"

namespace yoke::check {

struct Difference {
  struct Value {
    std::string value;  // "none" where nodes lack it
    std::vector<std::string> nodes;
    friend bool operator==(const Value&, const Value&) = default;
  };
  std::string fact;           // "kernel", "MTU of port 0 half A"
  std::vector<Value> values;  // in the order of the nodes that have them first
  friend bool operator==(const Difference&, const Difference&) = default;
};

// Machines by the names of their nodes.
std::vector<Difference> find_differences(const std::vector<std::pair<std::string, spec::Machine>>& machines);
// Of one fact, between the nodes that have it; nothing where they agree.
std::optional<Difference> find_difference(const spec::Survey& survey, std::string_view fact);
std::string to_string(const Difference& difference);  // "6.14 on spark-1; 6.17 on spark-2, spark-3"
Document to_json(const std::vector<Difference>& differences);
std::string differences_text(const std::vector<Difference>& differences);  // a table

}  // namespace yoke::check
