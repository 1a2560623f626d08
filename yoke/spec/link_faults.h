// What the faults that measuring a link shows mean, and how they are mended: one wording for `yoke link test`, which
// knows halves by the cluster file, and for the rules of yoke/check, which know them by their interfaces.
#pragma once

namespace yoke {

struct LinkFault {
  const char* consequence;
  const char* fix;
};

constexpr LinkFault kHalfLossy{
    .consequence =
        "each loss stalls a collective for a fifth of a second by TCP; RDMA repeats all that was under way, "
        "or gives up (IBV_WC_RETRY_EXC_ERR)",
    .fix =
        "clean or replace the cable; look at the transceivers, the switch's port, and at 'tc qdisc' and the packet "
        "filter on both ends"};

constexpr LinkFault kHalfLate{
    .consequence = "tokens wait for it: tensor-parallel decoding has two all-reduces in each layer",
    .fix =
        "does the half go by another network, a VPN or a software bridge? look at 'ip route get', at 'tc qdisc' on "
        "both ends, and at the NIC's interrupt moderation ('ethtool -c')"};

constexpr LinkFault kHalfDegraded{
    .consequence = "all-reduces over large tensors, loading and training take four to twelve times as long",
    .fix =
        "ports come up so when a cable was moved while running: reboot both ends with the cable in place; where "
        "that does not cure it, shut both down and unplug their power for 30 s"};

constexpr LinkFault kHalfSlow{
    .consequence = "large messages take as much longer: loading, prefill and training, less so decoding",
    .fix =
        "is something else using the link or the processor? compare PCIe width, MTU and port speed of both ends "
        "('yoke check'); try another cable"};

constexpr LinkFault kHalvesShare{
    .consequence = "the second half gains less than it should",
    .fix =
        "by TCP the processor may be the limit ('yoke link test' shows the cores used); else both halves share a "
        "PCIe link or a cable"};

constexpr LinkFault kErrorsCounted{
    .consequence = "packets are damaged or lost: slow now and then, and a hang sooner or later",
    .fix = "clean or replace the cable, and look at the transceivers"};

constexpr LinkFault kCollectiveSlow{
    .consequence = "prefill and training run at the collective's rate, not at the link's",
    .fix =
        "not the cable: look at the load of the processors; run with NCCL_DEBUG=INFO and give the log to 'yoke check "
        "nccl-log'; with NCCL itself, unplug the power of both for 30 s, as this is a second form of the degraded "
        "state"};

constexpr LinkFault kCollectiveFailed{
    .consequence = "no model can run over these nodes",
    .fix = "'yoke bench all-reduce' tells more; a filter that lets only some ports pass is a usual cause"};

// yoke's own went well over the same halves.
constexpr LinkFault kNcclCollectiveFailed{
    .consequence = "what uses NCCL does not run over these nodes, or only by sockets",
    .fix =
        "run with NCCL_DEBUG=INFO and give the log to 'yoke check nccl-log'; 'yoke bench all-reduce --transport "
        "nccl' tells more"};

}  // namespace yoke
