#include "yoke/link/step_actions.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "yoke/base/error.h"

namespace yoke::link {

std::unique_ptr<StepAction> make_step_action(const Step& step) {
  switch (step.kind) {
    case StepKind::kFile:
    case StepKind::kNetplan:
      return make_file_action(step);
    case StepKind::kLines:
      return make_lines_action(step);
    case StepKind::kKeyPair:
      return make_key_pair_action(step);
    case StepKind::kSetting:
      return make_setting_action(step);
    case StepKind::kInterface:
      return make_interface_action(step);
    case StepKind::kRoute:
      return make_route_action(step);
  }
  throw Error(ErrorCode::kInternal, "a step of no kind");
}

LoginUser login_user() {
  const char* through_sudo = geteuid() == 0 ? std::getenv("SUDO_USER") : nullptr;
  const passwd* entry = through_sudo && *through_sudo ? getpwnam(through_sudo) : getpwuid(geteuid());
  if (!entry) throw Error(ErrorCode::kNotFound, "the user that we run as is not known to the system");
  return {entry->pw_dir, {static_cast<int>(entry->pw_uid), static_cast<int>(entry->pw_gid)}};
}

}  // namespace yoke::link
