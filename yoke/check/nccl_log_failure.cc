// Why a job failed, by NCCL's own warnings. What a program prints of an error of NCCL ("unhandled system error") only
// says that there was one; the warnings before it say which. Of a wait in vain only the program tells.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "yoke/check/nccl_log_read.h"
#include "yoke/check/rules.h"

namespace yoke::check {
namespace {

enum class Tells {
  kAlways,      // a job that was running has failed too
  kUntilReady,  // only where no communicator came to be: jobs that ran well end with such lines as well
};

struct Telling {
  std::array<std::string_view, 4> words;  // any of them, in small letters; unused ones are empty
  Tells tells;
  std::string_view what, fix;
};

// Causes before what follows from them on other ranks.
constexpr std::array kTelling = {
    Telling{
        {"no kernel image"},
        Tells::kAlways,
        "the NCCL library, or another one of the job, has no code for this GPU",
        "a build for it: a GB10 (sm_121) needs NCCL 2.27.3 or later with sm_120 or sm_121 inside; 'yoke probe' shows "
        "which libraries hold what, 'yoke check' which do not fit (nccl-architecture)"},
    Telling{{"duplicate gpu detected", "multiple ranks are using the same gpu"},
            Tells::kAlways,
            "two ranks were put on one GPU",
            "as many ranks on a node as it has GPUs: one on a Spark ('slots=1' in the host file, one process a node), "
            "each with its own CUDA_VISIBLE_DEVICES"},
    Telling{{"driver version is insufficient"},
            Tells::kAlways,
            "the GPU driver is older than the CUDA that the job was built for",
            "update the driver, or take a container or package for the CUDA that 'yoke probe' shows"},
    Telling{
        {"ibv_reg_mr", "ibv_create_cq", "unable to register memory", "cannot allocate memory"},
        Tells::kAlways,
        "memory could not be locked for RDMA",
        "'ulimit -l' must be unlimited: --ulimit memlock=-1 --cap-add=IPC_LOCK for a container, limits.d for a login "
        "('yoke link setup' writes it); some kernels 7.0.0 have no memory for it at all ('yoke check': kernel-no-cma)"},
    Telling{{"out of memory"},
            Tells::kAlways,
            "the GPU has no memory left for NCCL's buffers",
            "give the job less of it; on unified memory drop the page cache ('yoke check' shows what holds it)"},
    Telling{{"no socket interface found", "no usable listening interface"},
            Tells::kAlways,
            "NCCL found no interface to meet the other ranks by",
            "NCCL_SOCKET_IFNAME names none that is up and has an address: unset it or name one ('yoke check')"},
    Telling{{"call to connect", "connect to "},
            Tells::kAlways,
            "a rank could not be reached over TCP",
            "refused: that rank has ended, and its own log has the reason; timed out or no route: the ranks meet by an "
            "interface "
            "that does not lead there (NCCL_SOCKET_IFNAME; never docker0), or a firewall is between ('yoke check')"},
    Telling{{"async fatal event"},
            Tells::kAlways,
            "an RDMA device failed under the job",
            "look at the kernel's log there ('dmesg | grep mlx5'), then 'yoke check'"},
    Telling{{"got completion"},
            Tells::kAlways,
            "an RDMA transfer failed",
            "'yoke check' looks at the rails; where the other rank ended first, its own log has the reason"},
    Telling{{"timed out", "timeout"},
            Tells::kAlways,
            "a rank waited for another until its time was up",
            "look at the log of the rank that did not answer; where all are silent, 'yoke check' looks at the rails"},
    Telling{{"cuda failure"},
            Tells::kUntilReady,
            "a CUDA call failed",
            "the text in quotes is CUDA's own; does a job on this GPU alone run?"},
    Telling{{"closed by remote peer", "connection reset"},
            Tells::kUntilReady,
            "another rank ended first",
            "its own log has the reason: give the logs of all ranks"},
};

// What PyTorch and vLLM print when ranks waited for each other in vain; NCCL itself is silent then.
struct Wait {
  std::array<std::string_view, 4> words;  // any of them; unused ones are empty
  std::string_view what, fix;
};
constexpr std::array kWaits = {
    Wait{{"DistStoreError", "clients joined", "DistNetworkError", "retrieving ncclUniqueId"},
         "the ranks never met",
         "were all started, with the same MASTER_ADDR and MASTER_PORT? It must be an address of the first node that "
         "the others reach (not 127.0.0.1, never docker0's), with no firewall between: 'yoke check'"},
    // The builds of NCCL: vllm-project/vllm#42354 and #41725.
    Wait{
        {"collective operation timeout", "RPC call to sample_tokens timed out", "RPC call to execute_model timed out"},
        "the job hung in a collective",
        "a rank that ended or failed before, or went another way, keeps the others waiting: the logs of all ranks show "
        "which (SeqNum and OpType of each); where all wait in the same one, 'yoke check' looks at the rails. On a "
        "Spark, pip's nvidia-nccl-cu13 2.28.9 hung after some 20 minutes of load where libnccl2 2.28.9 of DGX OS ran "
        "on: try another build"},
};

// What PyTorch, nccl-tests and others print when a call of NCCL failed: the text of its error or its name.
constexpr std::array<std::string_view, 10> kCallFailed = {
    "unhandled system error", "unhandled cuda error",
    "ncclSystemError",        "ncclUnhandledCudaError",
    "ncclInternalError",      "ncclInvalidUsage",
    "ncclRemoteError",        "Test NCCL failure",
    "DistBackendError",       "remote process exited or there was a network error"};

template <typename Words>
bool has_any(std::string_view text, const Words& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return !word.empty() && text.find(word) != std::string_view::npos; });
}

std::string in_small_letters(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

Advice failure(std::optional<std::string> node, std::string what, std::string evidence, std::string fix) {
  return {.node = std::move(node),
          .what = std::move(what),
          .evidence = std::move(evidence),
          .consequence = "the job ends, or hangs",
          .fix = std::move(fix)};
}

std::optional<Advice> failure_by_warning(const spec::NcclLog& log, Tells tells) {
  for (const Telling& telling : kTelling) {
    if (telling.tells != tells) continue;
    for (const spec::NcclWarning& warning : log.warnings) {
      if (!has_any(in_small_letters(warning.text), telling.words)) continue;
      return failure(warning.host, std::string(telling.what), warning.text, std::string(telling.fix));
    }
  }
  return std::nullopt;
}

std::optional<Advice> failure_by_wait(const spec::NcclLog& log) {
  if (!log.error) return std::nullopt;
  for (const Wait& wait : kWaits) {
    if (!has_any(*log.error, wait.words)) continue;
    const std::string warned = log.warnings.empty() ? "" : "; NCCL warned: " + log.warnings.front().text;
    return failure({}, std::string(wait.what), *log.error + warned, std::string(wait.fix));
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string_view> failure_words() {
  std::vector<std::string_view> words(kCallFailed.begin(), kCallFailed.end());
  for (const Wait& wait : kWaits) {
    std::copy_if(wait.words.begin(), wait.words.end(), std::back_inserter(words),
                 [](std::string_view word) { return !word.empty(); });
  }
  return words;
}

AdviceList find_nccl_failures(const ClusterView& view) {
  const spec::NcclLog& log = *view.facts.log;
  const bool failed = !log.complete || log.error;
  if (auto advice = failure_by_warning(log, Tells::kAlways)) return {*advice};
  if (auto advice = failure_by_wait(log)) return {*advice};
  if (auto advice = failure_by_warning(log, Tells::kUntilReady); advice && failed) return {*advice};
  const char* const fix = "NCCL's words are all there is: 'yoke check' looks at the machines and between them";
  if (failed && !log.warnings.empty()) {
    return {failure(log.warnings[0].host, "NCCL failed", log.warnings[0].text, fix)};
  }
  if (!log.error) return {};
  return {failure({}, "a call of NCCL failed", *log.error,
                  "no warning in the log gives the reason: run with NCCL_DEBUG=INFO, and give the logs of all ranks")};
}

}  // namespace yoke::check
