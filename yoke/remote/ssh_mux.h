// The process that holds a shared ssh connection: spoken to in its own protocol (PROTOCOL.mux of OpenSSH), without
// another start of the client, and replaced where it hangs.
#pragma once
#include <filesystem>

#include "yoke/base/clock.h"

namespace yoke::remote {

// As `ssh -O stop`: it takes no new sessions and gives up its socket; those that it has go on. False where it does not
// answer so in time.
bool stop_sharing(const std::filesystem::path& control_path, Deadline deadline) noexcept;

// Whether the holder says hello, as it does to every client at once. A stopped or frozen one is silent: every login
// over its connection would wait for it.
enum class MuxHolder { kAnswers, kIsSilent, kIsGone };
MuxHolder inspect_holder(const std::filesystem::path& control_path, Deadline deadline) noexcept;

// Takes the socket away from a holder that says nothing within the limit, so that nobody joins it any more, and kills
// it: it would take away its successor's socket when it ends. Only processes of this user that have that socket open
// are killed. True where there was such a holder.
bool end_hung_holder(const std::filesystem::path& control_path, Seconds limit) noexcept;

}  // namespace yoke::remote
