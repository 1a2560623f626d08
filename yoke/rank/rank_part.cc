#include "yoke/rank/rank_part.h"

#include <cstdio>
#include <exception>
#include <new>

#include "yoke/base/error.h"
#include "yoke/rank/mpirun.h"

namespace yoke {
namespace {

// By stdio: where memory is short, nothing that needs more may be called.
int say(const char* message, ErrorCode code) {
  std::fprintf(stderr, "%s\n", message);
  return info(code).exit_status;
}

}  // namespace

int run_rank_part(const std::function<void()>& work) noexcept {
  try {
    work();
    return 0;
  } catch (const Error& error) {
    print_rank_error(error);
    return error.exit_status();
  } catch (const std::bad_alloc&) {
    return say("out of memory", ErrorCode::kExhausted);
  } catch (const std::exception& unexpected) {
    return say(unexpected.what(), ErrorCode::kInternal);
  } catch (...) {
    return say("something unexpected was thrown", ErrorCode::kInternal);
  }
}

}  // namespace yoke
