// A game day: the phases played one after the other at one environment. A phase that fails does not end the day; those
// that need it are skipped. Ctrl-C ends it with Error(kInterrupted), and with the environment goes all that was
// started.
#pragma once
#include <string>
#include <vector>

#include "yoke/gameday/environment.h"
#include "yoke/gameday/phases.h"
#include "yoke/gameday/result.h"

namespace yoke::gameday {

enum class Finale { kNone, kChat };  // kChat: a conversation over all nodes before the clean-up, on this terminal

struct GamedayOptions {
  EnvironmentOptions environment;
  std::vector<const Phase*> phases;
  Finale finale = Finale::kNone;
  PhaseRun::Write write;  // empty: nothing is reported while it plays
};

GamedayResult run_gameday(const GamedayOptions& options);

}  // namespace yoke::gameday
