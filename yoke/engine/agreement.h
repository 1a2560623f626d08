// Ranks tell each other what each of them knows, or that it failed, so that all end with the same cause and none is
// waited for.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/comm/communicator.h"

namespace yoke::engine {

// Thrown on all ranks alike: what ended the engine, where other Errors are of the group and may be recovered from.
class AgreedError : public Error {
 public:
  explicit AgreedError(Error error) : Error(std::move(error)) {}
};

// The texts of all ranks, by rank.
std::vector<std::string> gather_texts(comm::Communicator& control, const std::string& mine);

// Each rank does its own work; where it throws an Error on any, all ranks throw that of the lowest, naming its node
// where others did not fail so.
void do_together(comm::Communicator& control, const std::string& node, const std::function<void()>& work);

}  // namespace yoke::engine
