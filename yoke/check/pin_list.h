// Variables that pin devices ("NCCL_IB_HCA==rocep1s0f0"), read as their libraries read them: which names each chooses
// or excludes, and what of the machine that is. Pointers go into the facts behind the view.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/check/cluster_view.h"

namespace yoke::check {

enum class PinMatch { kPrefix, kExact };
enum class PinNames { kInterfaces, kRdmaDevices, kEither };

struct PinKind {
  std::string_view variable;
  PinNames names;
  PinMatch match;  // without a sign before the list
};
bool is_pin(std::string_view variable);

struct Pin {
  const PinKind* kind;
  const spec::SurveyedNode* node;
  const spec::NetworkSetting* setting;
  bool excludes = false;
  PinMatch match = PinMatch::kExact;
  std::vector<std::string> entries;  // names without port numbers

  std::vector<std::string> names() const;                                  // of the machine, of the pin's kind
  std::vector<std::string> matches(const std::string& entry) const;        // those that an entry takes
  std::set<std::string> chosen() const;                                    // what all entries leave to be used
  const spec::NetworkInterface* interface(const std::string& name) const;  // null: none, or a pin of RDMA devices only
  const spec::RdmaDevice* rdma_device(const std::string& name) const;      // null: none, or a pin of interfaces only
  std::string place() const;                                               // "NCCL_IB_HCA=mlx5_9 in /etc/environment"
  std::string write(const std::vector<std::string>& names) const;          // exact: "NCCL_IB_HCA==a,b"
};
std::vector<Pin> pins_of(const ClusterView& view);

}  // namespace yoke::check
