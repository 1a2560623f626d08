#include "yoke/comm/nccl/library.h"

#include <fmt/format.h>

#include <cstdlib>

#include "yoke/base/check.h"
#include "yoke/base/shared_library.h"
#include "yoke/base/text.h"

namespace yoke::comm::nccl {
namespace {

static_assert(sizeof(NcclConfig) == 24, "the layout of ncclConfig_t as of NCCL 2.14");

constexpr int kMinVersion = 21800;  // the first with which a communicator that does not block can be trusted to abort

NcclFunctions bind_all(const SharedLibrary& library) {
  NcclFunctions f;
  library.bind("ncclGetVersion", f.version);
  library.bind("ncclGetUniqueId", f.unique_id);
  library.bind("ncclCommInitRankConfig", f.init);
  library.bind("ncclCommFinalize", f.finalize);
  library.bind("ncclCommDestroy", f.destroy);
  library.bind("ncclCommAbort", f.abort);
  library.bind("ncclCommGetAsyncError", f.async_error);
  library.bind("ncclGetErrorString", f.error_string);
  library.bind("ncclGetLastError", f.last_error);
  library.bind("ncclGroupStart", f.group_start);
  library.bind("ncclGroupEnd", f.group_end);
  library.bind("ncclAllReduce", f.all_reduce);
  library.bind("ncclAllGather", f.all_gather);
  library.bind("ncclReduceScatter", f.reduce_scatter);
  library.bind("ncclBroadcast", f.broadcast);
  library.bind("ncclReduce", f.reduce);
  library.bind("ncclSend", f.send);
  library.bind("ncclRecv", f.receive);
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
  return try_to([&] {
    NcclLibrary nccl;
    nccl.functions_ = bind_all(value_or_throw(
        SharedLibrary::open({.what = "NCCL",
                             .names = {path},
                             .missing_hint = "install libnccl2, or name the file in the environment variable YOKE_NCCL",
                             .old_hint = "install NCCL 2.18 or newer"})));
    int version = 0;
    if (nccl.functions_.version(&version) != NcclResult::kSuccess || version < kMinVersion) {
      throw Error(ErrorCode::kUnsupported, fmt::format("NCCL {} is too old", version_text(version)),
                  fmt::format("install NCCL {} or newer", version_text(kMinVersion)));
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
  return Error(code_of(result), message, "NCCL_DEBUG=WARN in the environment makes NCCL print more");
}

}  // namespace yoke::comm::nccl
