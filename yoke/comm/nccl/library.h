// NCCL's functions, loaded at run time: from the path in YOKE_NCCL, else libnccl.so.2 where the loader finds it.
// A copy inside a Python package is used only when YOKE_NCCL names it: which NCCL runs should be nobody's surprise.
//
// What is declared here is NCCL's ABI as far as we call it, the same from 2.18 on. Safe from any thread.
#pragma once
#include <cstddef>
#include <string>

#include "yoke/base/result.h"

namespace yoke::comm::nccl {

inline constexpr std::size_t kNcclIdSize = 128;

struct NcclUniqueId {
  char bytes[kNcclIdSize];
};

// Those that are told apart, of ncclResult_t.
enum class NcclResult : int {
  kSuccess = 0,
  kSystemError = 2,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};
enum class NcclType : int { kI8 = 0, kI32 = 2, kF16 = 6, kF32 = 7, kBf16 = 9 };
enum class NcclOp : int { kSum = 0, kMax = 2, kMin = 3, kAvg = 4 };

// The configuration as NCCL 2.14 had it, whose version and size tell later ones to fill the rest with their defaults:
// they copy `size` bytes of it and then overwrite each field that is younger than `version`.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;  // every call returns at once, so that every wait is ours and has a deadline
};

using NcclComm = void*;
using CudaStreamHandle = void*;

struct NcclFunctions {
  NcclResult (*version)(int* version) = nullptr;
  NcclResult (*unique_id)(NcclUniqueId* id) = nullptr;
  NcclResult (*init)(NcclComm* comm, int ranks, NcclUniqueId id, int rank, NcclConfig* config) = nullptr;
  NcclResult (*finalize)(NcclComm comm) = nullptr;
  NcclResult (*destroy)(NcclComm comm) = nullptr;
  NcclResult (*abort)(NcclComm comm) = nullptr;
  NcclResult (*async_error)(NcclComm comm, NcclResult* error) = nullptr;
  const char* (*error_string)(NcclResult result) = nullptr;
  const char* (*last_error)(NcclComm comm) = nullptr;
  NcclResult (*group_start)() = nullptr;
  NcclResult (*group_end)() = nullptr;
  NcclResult (*all_reduce)(const void* send, void* receive, std::size_t count, NcclType type, NcclOp op, NcclComm comm,
                           CudaStreamHandle stream) = nullptr;
  NcclResult (*all_gather)(const void* send, void* receive, std::size_t count, NcclType type, NcclComm comm,
                           CudaStreamHandle stream) = nullptr;
  NcclResult (*reduce_scatter)(const void* send, void* receive, std::size_t count, NcclType type, NcclOp op,
                               NcclComm comm, CudaStreamHandle stream) = nullptr;
  NcclResult (*broadcast)(const void* send, void* receive, std::size_t count, NcclType type, int root, NcclComm comm,
                          CudaStreamHandle stream) = nullptr;
  NcclResult (*reduce)(const void* send, void* receive, std::size_t count, NcclType type, NcclOp op, int root,
                       NcclComm comm, CudaStreamHandle stream) = nullptr;
  NcclResult (*send)(const void* data, std::size_t count, NcclType type, int peer, NcclComm comm,
                     CudaStreamHandle stream) = nullptr;
  NcclResult (*receive)(void* data, std::size_t count, NcclType type, int peer, NcclComm comm,
                        CudaStreamHandle stream) = nullptr;
};

class NcclLibrary {
 public:
  // Loaded once per process; kUnsupported with the reason where it is not there.
  static Result<const NcclLibrary*> find();
  static const NcclLibrary& get();  // the same, thrown

  const std::string& version() const { return version_; }  // "2.28.3"
  const NcclFunctions& call() const { return functions_; }
  // What a result means, with NCCL's own last words about it: they are per process, so another communicator's may slip
  // in. In progress is no error, and a bug to ask about.
  Error error(NcclResult result, const std::string& what) const;

 private:
  NcclLibrary() = default;
  static Result<NcclLibrary> load();
  NcclFunctions functions_;
  std::string version_;
};

}  // namespace yoke::comm::nccl
