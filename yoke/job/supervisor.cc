#include "yoke/job/supervisor.h"

#include <fmt/format.h>

#include <filesystem>

#include "yoke/base/fields.h"
#include "yoke/job/process_watch.h"
#include "yoke/job/supervisor_loop.h"

namespace yoke::job {
using namespace literals;

struct Supervision {
  std::string tag;
};

template <class Visitor>
void visit_fields(Visitor& visit, Supervision& supervision) {
  visit.required("tag", supervision.tag);
}

Document supervision_question(const std::string& tag) { return to_document(Supervision{tag}); }

Command supervisor_command(const Document& question) {
  // By its path, so that people who list processes know it; replaced meanwhile, it is still us.
  std::error_code failure;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failure);
  const bool is_there = !failure && std::filesystem::exists(self, failure);
  return {.argv = {is_there ? self.native() : "/proc/self/exe", "node"},
          .environment = {{kJobTagVariable, from_json<Supervision>(question).tag}},
          .input_mode = InputMode::kPipe};
}

std::optional<int> run_job_part(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0] != "node") return std::nullopt;
  try {
    if (arguments.size() == 3 && arguments[1] == "clean") {
      end_tagged_processes(fmt::format("{}={}", kJobTagVariable, arguments[2]), 1_s);
      return 0;
    }
    if (arguments.size() == 1) return SupervisorLoop().run();
  } catch (const std::exception& failure) {
    fmt::print(stderr, "yoke: {}\n", failure.what());
    return 1;
  }
  return std::nullopt;
}

}  // namespace yoke::job
