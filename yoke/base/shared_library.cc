#include "yoke/base/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "yoke/base/error.h"

namespace yoke {

Result<SharedLibrary> SharedLibrary::open(LibraryRequest request) {
  const bool for_all = request.symbols == LibraryRequest::Symbols::kForAll;
  std::vector<std::string> reasons;
  for (const std::string& name : request.names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | (for_all ? RTLD_GLOBAL : RTLD_LOCAL))) {
      return SharedLibrary(handle, std::move(request));
    }
    const char* reason = dlerror();
    reasons.emplace_back(reason ? reason : name);
  }
  return Unexpected(Error(ErrorCode::kUnsupported,
                          fmt::format("{} cannot be loaded: {}", request.what, fmt::join(reasons, "; ")),
                          request.missing_hint));
}

void* SharedLibrary::find(const char* symbol) const { return dlsym(handle_, symbol); }

void* SharedLibrary::need(const char* symbol) const {
  if (void* found = find(symbol)) return found;
  throw Error(ErrorCode::kUnsupported, fmt::format("{} has no {}", request_.what, symbol), request_.old_hint);
}

void SharedLibrary::close() { dlclose(std::exchange(handle_, nullptr)); }

}  // namespace yoke
