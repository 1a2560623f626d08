// SHA-256 and random tokens by libsodium.
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace yoke {

std::string sha256_hex(std::string_view data);

// Reads the file in pieces; throws Error where it cannot be read.
std::string sha256_file_hex(const std::filesystem::path& file);

// A secret from the system's generator, in hex: `bytes` bytes, twice as many digits.
std::string random_token_hex(std::size_t bytes);

// Compares in constant time, for secrets.
bool equal_secrets(std::string_view a, std::string_view b);

}  // namespace yoke
