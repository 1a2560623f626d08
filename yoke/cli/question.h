// A yes-or-no question to the person at the terminal.
#pragma once
#include <string>

#include "yoke/cli/command.h"

namespace yoke {

struct Question {
  std::string text;     // "Do these 12 steps?"
  bool agreed = false;  // --yes was given: nobody is asked
  std::string unasked;  // the error where nobody can be asked: "this changes the nodes, and nobody can be asked here"
  std::string hint;     // what to type instead
};

// Whether the answer is yes; anything but y or yes is no. Throws Error(kUsage) where nobody sits at a terminal or the
// input ends without an answer, kInterrupted on Ctrl-C.
bool ask(const Session& session, const Question& question);

}  // namespace yoke
