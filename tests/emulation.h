// Tests of another processor's build (make test-aarch64) run under an emulator. The kernel cannot execute a program of
// that build, so what starts one does it through the emulator: YOKE_PROGRAM is then a script that does
// (cmake/tests.cmake), and a test that starts itself uses this_test_program(). Nothing is as quick there as it would be
// on the processor.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace yoke::tests {

#ifdef YOKE_EMULATE
inline constexpr bool kEmulated = true;
#else
inline constexpr bool kEmulated = false;
#endif

// The first words of a command that runs this test program again.
inline std::vector<std::string> this_test_program() {
#ifdef YOKE_EMULATE
  return {YOKE_EMULATE, std::filesystem::read_symlink("/proc/self/exe")};
#else
  return {"/proc/self/exe"};
#endif
}

}  // namespace yoke::tests
