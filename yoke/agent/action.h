// What a node can be asked to do. One table of actions, written out in yoke/cli/commands.cc, is served by
// `yoke agent` (serve.h); folders declare their actions, nothing registers itself.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <typeindex>

#include "yoke/base/document.h"
#include "yoke/base/process.h"

namespace yoke::agent {

enum class AgentRights {
  kOwn,   // of the user that ssh logs in
  kRoot,  // an action is refused without it; a node is reached with it by sudo where that user is not root
};

// What actions keep between the questions of one agent, by type.
class AgentState {
 public:
  template <class T>
  T& get() {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<void>& kept = kept_[typeid(T)];
    if (!kept) kept = std::make_shared<T>();
    return *static_cast<T*>(kept.get());
  }

 private:
  std::mutex mutex_;
  std::map<std::type_index, std::shared_ptr<void>> kept_;
};

// What an action is given besides its question. Questions may be answered at once, each in a thread of its own.
class AgentContext {
 public:
  AgentContext(AgentState& state, std::function<void(std::string_view)> on_progress)
      : state_(state), on_progress_(std::move(on_progress)) {}

  // Made at the first use. Actions that share one lock it themselves where they may run at once.
  template <class T>
  T& state() {
    return state_.get<T>();
  }
  // What is being done now, for the person who waits.
  void progress(std::string_view what) { on_progress_(what); }

 private:
  AgentState& state_;
  std::function<void(std::string_view)> on_progress_;
};

// Either answers, or names a program whose streams the channel carries until it ends.
struct AgentAction {
  std::string_view name;
  AgentRights rights = AgentRights::kOwn;
  Document (*answer)(const Document& question, AgentContext& context) = nullptr;  // what it throws goes to the head
  Command (*program)(const Document& question) = nullptr;
};

}  // namespace yoke::agent
