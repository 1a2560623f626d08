// One word to the process that holds a shared ssh connection, in its own protocol (PROTOCOL.mux of OpenSSH) and without
// another start of the client.
#pragma once
#include <filesystem>

#include "yoke/base/clock.h"

namespace yoke {

// As `ssh -O stop`: it takes no new sessions and gives up its socket; those that it has go on. False where it does not
// answer so in time.
bool stop_sharing(const std::filesystem::path& control_path, Deadline deadline) noexcept;

}  // namespace yoke
