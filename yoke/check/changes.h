// What is different since all was well: two sets of facts, compared by what breaks clusters (kernel, driver, firmware,
// NCCL, cabling, addresses, speeds), not byte by byte: memory in use and temperatures always differ. Pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/spec/survey.h"

namespace yoke::check {

struct FactChange {
  std::string node;
  std::string what;         // "kernel", "MTU of enp1s0f0np0"
  std::string before, now;  // empty: it was not there, or is gone
  friend bool operator==(const FactChange&, const FactChange&) = default;
};

std::vector<FactChange> find_changes(const spec::Survey& before, const spec::Survey& now);
Document to_json(const std::vector<FactChange>& changes);

}  // namespace yoke::check
