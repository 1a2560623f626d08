// Drives a fuzzer without libFuzzer, so that `make test` runs it with any compiler: the seeds of its corpus, then
// 20,000 mutations of them from a fixed seed, or as many as 12 s of processor time allow. A finding ends the program;
// the input is written first.
//   NAME_fuzz CORPUS-FOLDER [COUNT [SEED]]
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "yoke/base/rng_testing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::string current_input;

// Async-signal-safe enough for a program that is about to end: leaves the input beside the working folder.
extern "C" void on_abort(int) {
  std::FILE* file = std::fopen("fuzz-finding.bin", "wb");
  if (file) {
    std::fwrite(current_input.data(), 1, current_input.size(), file);
    std::fclose(file);
  }
  std::fputs("\nthe input is in fuzz-finding.bin\n", stderr);
  std::_Exit(1);
}

void run(std::string input) {
  current_input = std::move(input);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(current_input.data()), current_input.size());
}

std::string mutate(yoke::Random& random, const std::vector<std::string>& seeds) {
  std::string text = seeds[random.below(seeds.size())];
  for (std::uint64_t change = 1 + random.below(8); change > 0; --change) {
    const std::size_t at = random.below(text.size() + 1);
    switch (random.below(6)) {
      case 0:
        text.insert(at, 1, static_cast<char>(random.below(256)));
        break;
      case 1:
        if (at < text.size()) text.erase(at, 1 + random.below(16));
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1U << random.below(8)));
        break;
      case 3:
        text.insert(at, text.substr(random.below(text.size() + 1), random.below(64)));
        break;
      case 4:
        text.insert(at, seeds[random.below(seeds.size())].substr(0, random.below(200)));
        break;
      default:
        text.insert(at, std::string(random.below(300), text.empty() ? '[' : text[random.below(text.size())]));
    }
  }
  if (text.size() > 65536) text.resize(65536);
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: fuzzer CORPUS-FOLDER [COUNT [SEED]]\n", stderr);
    return 2;
  }
  // Without a count, slow parsers get fewer mutations: the suite waits for no fuzzer longer than this.
  constexpr std::clock_t kLimit = 12 * CLOCKS_PER_SEC;
  const long count = argc > 2 ? std::atol(argv[2]) : 20000;
  const unsigned long seed = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 1;
  std::vector<std::string> seeds = {""};
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::ifstream file(entry.path(), std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  std::signal(SIGABRT, on_abort);
  std::signal(SIGSEGV, on_abort);
  for (const std::string& text : seeds) run(text);
  yoke::Random random(seed);
  long done = 0;
  for (; done < count && (argc > 2 || std::clock() < kLimit); ++done) run(mutate(random, seeds));
  std::printf("%zu seeds and %ld mutations of them (seed %lu): no finding\n", seeds.size(), done, seed);
}
