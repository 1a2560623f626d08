// yoke version: what this program is.
#include <fmt/format.h>

#include "yoke/base/build_info.h"
#include "yoke/base/error.h"
#include "yoke/cli/commands.h"

namespace yoke {
namespace {

int run_version(Session& session) {
  const BuildInfo build = build_info();
  const std::string kind = build.sanitizers.empty() ? std::string(build.build_type)
                                                    : fmt::format("{}, {}", build.build_type, build.sanitizers);
  if (session.json) {
    session.print_json(Document::map({{"version", Document::string(std::string(build.version))},
                                      {"commit", Document::string(std::string(build.commit))},
                                      {"compiler", Document::string(std::string(build.compiler))},
                                      {"build", Document::string(kind)},
                                      {"processor", Document::string(std::string(build.processor))},
                                      {"cuda", Document::string(std::string(build.cuda))}}));
  } else {
    session.print(fmt::format("yoke {} ({})\nbuilt with {} for {}, {}\ncuda: {}\n", build.version, build.commit,
                              build.compiler, build.processor, kind, build.cuda));
  }
  return kExitOk;
}

}  // namespace

CommandRow version_command() {
  return {.name = "version",
          .summary = "print version, commit, compiler and what this build contains",
          .description = "Prints what this program was built from and what it contains.",
          .examples = {{"yoke version", "for people"}, {"yoke version --json", "for scripts"}},
          .prepare = [](OptionTable&) { return run_version; }};
}

}  // namespace yoke
