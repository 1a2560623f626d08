// The day itself: what to bring and to do before it, and a drive in place of the internet.
#pragma once
#include <optional>
#include <string>

#include "yoke/cli/command.h"

namespace yoke::cli {

struct DayOptions {
  bool checklist = false;
  std::optional<std::string> on;         // machines, as 'yoke plan --on' takes them
  std::string model, format;             // of the plan
  std::optional<std::string> hub_model;  // to look up: its size, and the speed of this line
  std::optional<std::string> page;       // an HTML file beside the text
  std::optional<std::string> from;       // the drive
  std::string to = "/models";
};

int print_checklist(Session& session, const DayOptions& options);
int prep_from_drive(Session& session, const DayOptions& options);

}  // namespace yoke::cli
