// Arguments for a shell that we cannot avoid: ssh joins its arguments by spaces and hands them to the login shell of
// the far side. Everything else in yoke runs argument vectors.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace yoke::remote {

// One word that a POSIX shell reads back as exactly these bytes; any but zero, which throws Error(kInvalid). Quotes,
// backslashes and exclamation marks stand outside of the quotes, which fish and csh read alike; for csh newlines would
// still be wrong, so the login shell of a node must be one of sh, bash, zsh, fish.
std::string shell_quote(std::string_view word);
// The words with spaces between.
std::string shell_join(std::span<const std::string> words);

}  // namespace yoke::remote
