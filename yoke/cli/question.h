// Questions to the person at the terminal: yes or no, and whether nodes that ssh does not let us in to yet are trusted.
#pragma once
#include <functional>
#include <string>

#include "yoke/cli/command.h"
#include "yoke/spec/cluster.h"

namespace yoke::cli {

struct Question {
  std::string text;     // "Do these 12 steps?"
  bool agreed = false;  // --yes was given: nobody is asked
  std::string unasked;  // the error where nobody can be asked: "this would change the nodes, and there is no terminal
                        // to ask at"
  std::string hint;     // what to type instead
  std::function<void()> show_details = {};  // at the answer "d"; then the question comes again
};

// Whether the answer is yes; anything but y or yes is no. Throws Error(kUsage) where nobody sits at a terminal or the
// input ends without an answer, kInterrupted on Ctrl-C.
bool ask(const Session& session, const Question& question);

// Whether all nodes that refused a login let us in now. False where nobody can be asked, nobody agreed, or no node
// refused for want of a key.
bool offer_first_contact(const Session& session, const spec::Cluster& cluster);

}  // namespace yoke::cli
