// Which network a library of collectives was told to use, for libraries that do not tell which one they took.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>

namespace yoke::comm {

// "NCCL_SOCKET_IFNAME=enp1s0f0np0, NCCL_IB_HCA=rocep1s0f0" of those that are set in the environment, else
// "interfaces as NCCL chooses".
std::string describe_interfaces(std::string_view library, std::initializer_list<const char*> variables);

}  // namespace yoke::comm
