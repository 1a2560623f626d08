// What can be done with a step on the node that it concerns. A step's state is whatever it would change, as data, so
// that the journal can keep it and undo can restore it. Runs as root, or as a user for that user's own files.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/link/file_state.h"
#include "yoke/link/step.h"

namespace yoke::link {

class StepAction {
 public:
  virtual ~StepAction() = default;
  // All is as the step wants it: nothing to do, and after apply() its verification.
  virtual bool satisfied() const = 0;
  // What apply() runs or writes, a line each, as one would type it.
  virtual std::vector<std::string> commands() const = 0;
  virtual void apply() const = 0;
  virtual Document capture(const SavedBytes& saved) const = 0;
  // Back to a captured state, also where apply() was cut short. `after` is the state that apply() left (null where it
  // did not come to an end): what somebody else changed since is not destroyed, but an Error(kConflict).
  virtual void restore(const Document& before, const Document& after, const SavedBytes& saved) const = 0;
};

std::unique_ptr<StepAction> make_step_action(const Step& step);

// Scratch folders of steps. remove_abandoned_scratch() removes what a killed step left in them: a new private key, or a
// copy of netplan's files.
inline constexpr const char* kKeyScratch = "yoke-key";
inline constexpr const char* kNetplanScratch = "yoke-netplan";
void remove_abandoned_scratch();

// The home of the user that ssh logged in, through sudo too.
struct LoginUser {
  std::filesystem::path home;
  FileOwner owner;
};
LoginUser login_user();

// Of one kind each, for make_step_action().
std::unique_ptr<StepAction> make_file_action(const Step& step);
std::unique_ptr<StepAction> make_lines_action(const Step& step);
std::unique_ptr<StepAction> make_key_pair_action(const Step& step);
std::unique_ptr<StepAction> make_setting_action(const Step& step);
std::unique_ptr<StepAction> make_interface_action(const Step& step);
std::unique_ptr<StepAction> make_route_action(const Step& step);

}  // namespace yoke::link
