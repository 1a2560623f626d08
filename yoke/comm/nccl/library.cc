#include "yoke/comm/nccl/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include "yoke/base/check.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

static_assert(sizeof(NcclConfig) == 24, "the layout of ncclConfig_t as of NCCL 2.14");

constexpr int kVersionLeast = 21800;  // the first with which a communicator that does not block can be trusted to abort

template <class Function>
void bind(void* library, Function*& function, const char* symbol) {
  function = reinterpret_cast<Function*>(dlsym(library, symbol));
  if (function == nullptr) {
    throw Error(ErrorCode::kUnsupported, fmt::format("this NCCL has no {}", symbol), "install NCCL 2.18 or newer");
  }
}

NcclFunctions bind_all(void* library) {
  NcclFunctions f;
  bind(library, f.version, "ncclGetVersion");
  bind(library, f.unique_id, "ncclGetUniqueId");
  bind(library, f.init, "ncclCommInitRankConfig");
  bind(library, f.finalize, "ncclCommFinalize");
  bind(library, f.destroy, "ncclCommDestroy");
  bind(library, f.abort, "ncclCommAbort");
  bind(library, f.async_error, "ncclCommGetAsyncError");
  bind(library, f.error_string, "ncclGetErrorString");
  bind(library, f.last_error, "ncclGetLastError");
  bind(library, f.group_start, "ncclGroupStart");
  bind(library, f.group_end, "ncclGroupEnd");
  bind(library, f.all_reduce, "ncclAllReduce");
  bind(library, f.all_gather, "ncclAllGather");
  bind(library, f.reduce_scatter, "ncclReduceScatter");
  bind(library, f.broadcast, "ncclBroadcast");
  bind(library, f.reduce, "ncclReduce");
  bind(library, f.send, "ncclSend");
  bind(library, f.receive, "ncclRecv");
  return f;
}

ErrorCode code_of(NcclResult result) {
  switch (result) {
    case NcclResult::kSystemError:
    case NcclResult::kRemoteError:
      return ErrorCode::kUnavailable;
    case NcclResult::kInvalidArgument:
    case NcclResult::kInvalidUsage:
      return ErrorCode::kInvalid;
    default:
      return ErrorCode::kInternal;
  }
}

std::string version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace

Result<NcclLibrary> NcclLibrary::load() {
  const char* named = std::getenv("YOKE_NCCL");
  const std::string path = named != nullptr && *named != '\0' ? named : "libnccl.so.2";
  // Never closed: NCCL leaves threads behind that run its code.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Unexpected(Error(ErrorCode::kUnsupported, fmt::format("NCCL cannot be loaded: {}", dlerror()),
                            "install libnccl2, or name the file in the environment variable YOKE_NCCL"));
  }
  return try_to([&] {
    NcclLibrary nccl;
    nccl.functions_ = bind_all(library);
    int version = 0;
    if (nccl.functions_.version(&version) != NcclResult::kSuccess || version < kVersionLeast) {
      throw Error(ErrorCode::kUnsupported, fmt::format("NCCL {} is too old", version_text(version)),
                  fmt::format("install NCCL {} or newer", version_text(kVersionLeast)));
    }
    nccl.version_ = version_text(version);
    return nccl;
  });
}

Result<const NcclLibrary*> NcclLibrary::find() {
  static const Result<NcclLibrary> loaded = load();
  if (!loaded) return Unexpected(loaded.error());
  return &*loaded;
}

const NcclLibrary& NcclLibrary::get() { return *value_or_throw(find()); }

Error NcclLibrary::error(NcclResult result, const std::string& what) const {
  YOKE_CHECK(result != NcclResult::kSuccess && result != NcclResult::kInProgress);
  const char* meaning = functions_.error_string(result);
  const char* last = functions_.last_error(nullptr);
  std::string message = fmt::format("{} failed in NCCL: {}", what, meaning ? meaning : "unknown");
  if (last != nullptr && *last != '\0') message += fmt::format(" ({})", printable(trim(last)));
  return Error(code_of(result), message, "NCCL_DEBUG=WARN in the environment makes NCCL tell more");
}

}  // namespace yoke
