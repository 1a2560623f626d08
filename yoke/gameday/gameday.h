// A game day: the phases played one after the other at one venue. A phase that fails does not end the day; those that
// need it are skipped. Ctrl-C ends it with Error(kInterrupted), and with the venue goes all that was started.
#pragma once
#include <string>
#include <vector>

#include "yoke/gameday/phases.h"
#include "yoke/gameday/result.h"
#include "yoke/gameday/venue.h"

namespace yoke {

enum class Finale { kNone, kChat };  // kChat: a conversation over all nodes before the clean-up, on this terminal

struct GamedayOptions {
  VenueOptions venue;
  std::vector<const Phase*> phases;
  Finale finale = Finale::kNone;
  Scene::Write write;  // empty: nothing is told while it plays
};

GamedayResult play_gameday(const GamedayOptions& options);

}  // namespace yoke
