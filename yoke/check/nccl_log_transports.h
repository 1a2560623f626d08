// What the words about an NCCL log and the evaluations of it both ask: which ways and devices the ranks use. Pure.
#pragma once
#include <optional>
#include <set>
#include <string>

#include "yoke/check/nccl_log.h"

namespace yoke::check {

enum class Transport {
  kUnknown,
  kInside,  // nothing leaves the machine: what NCCL says of networks does not matter
  kRdma,
  kTcp,       // also where other ranks of the same host do RDMA
  kTcpIfAny,  // NCCL chose TCP, and nothing in the log shows that anything leaves the machine
  kPlugin,    // that is not known to be either
};
// By the channels where the log shows some that leave the machine, else by the network that NCCL chose.
Transport transport_of(const spec::NcclLog& log, const spec::NcclHost& host);
std::set<std::string> networks_used(const spec::NcclHost& host);  // "IB", "Socket", "AWS Libfabric"
bool uses_rdma(const spec::NcclHost& host);                       // any of its ranks
int net_channels(const spec::NcclHost& host);                     // that leave the machine

// A GB10's ports by their names, and without GPUDirect RDMA, which it does not have: other machines' NICs are whole.
bool has_spark_names(const spec::NcclHost& host);
std::set<std::string> domains_of(const spec::NcclHost& host);  // PCI domains of the devices that NCCL found
// The devices that carry channels, those of a merged one each; a number that the log does not explain stays "NET/IB/7".
std::set<std::string> busy_devices(const spec::NcclHost& host);

enum class RailsUsed { kUnknown, kOne, kBoth };
// By the channels where the log shows them and says which devices they take, else by the devices found.
RailsUsed rails_used(const spec::NcclHost& host);

std::string channel_words(const spec::NcclHost& host);  // "4 by NET/IB/0, 4 by NET/IB/1"
std::string device_name(const spec::NcclHost& host, int device);

}  // namespace yoke::check
