// The day itself: what to bring and to do before it, and a drive in place of the internet.
#pragma once
#include <optional>
#include <string>

#include "yoke/spec/cluster.h"
#include "yoke/terminal/session.h"

namespace yoke::launch {

struct DayOptions {
  bool checklist = false;
  std::optional<std::string> on;         // machines, as 'yoke plan --on' takes them
  std::string model, format;             // of the plan
  std::optional<std::string> hub_model;  // to look up: its size, and the speed of this line
  std::optional<std::string> page;       // an HTML file beside the text
  std::optional<std::string> from;       // the drive
  std::string to = "/models";
};

// `cluster`: without --on, the one of this folder.
int print_checklist(terminal::Session& session, const DayOptions& options, const std::optional<spec::Cluster>& cluster);
int prep_from_drive(terminal::Session& session, const DayOptions& options, const std::optional<spec::Cluster>& cluster);

}  // namespace yoke::launch
