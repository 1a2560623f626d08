#include "yoke/rank/rank_part.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/rank/mpirun.h"

namespace yoke::rank {
namespace {

// By stdio: where memory is short, nothing that needs more may be called.
int say(const char* message, ErrorCode code) {
  std::fprintf(stderr, "%s\n", message);
  return info(code).exit_status;
}

const RankKind& find_kind(std::span<const RankKind> kinds, const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  for (const RankKind& kind : kinds) {
    if (arguments.size() == 1 && arguments[0] == kind.name) return kind;
    names.emplace_back(kind.name);
  }
  const std::string wrong = arguments.empty() ? "" : arguments[0];
  throw Error(ErrorCode::kUsage, fmt::format("there is no kind of rank '{}'", printable(wrong, 40)),
              suggest(wrong, names, "kinds"));
}

void run_kind(std::span<const RankKind> kinds, const std::vector<std::string>& arguments) {
  const RankKind& kind = find_kind(kinds, arguments);
  const job::Environment environment = job::environment_now();
  const auto place = job::find_rank_place(environment);
  const auto task = environment.find(kRankTaskVariable);
  if (!place || task == environment.end()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("'{}' starts {} {}, nobody else does", kind.started_by, kRankWord, kind.name));
  }
  set_check_rank(place->rank);
  kind.run(*place, parse_json(task->second, kRankTaskVariable));
}

}  // namespace

int run_rank_part(std::span<const RankKind> kinds, const std::vector<std::string>& arguments) noexcept {
  return run_rank_frame([&] { run_kind(kinds, arguments); });
}

int run_rank_frame(const std::function<void()>& work) noexcept {
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

}  // namespace yoke::rank
