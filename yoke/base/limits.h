// The bounds on what comes from outside: a model folder, a cluster file, a capture, a node, an option. Each has its
// reason beside it, and a test of the same folder that goes beyond it. Goal: no file takes more than 1 GB and 5 s.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace yoke::limits {

// JSON. The largest index of a model has 200,000 tensors, the largest header of a file 20,000, which are 200,000
// values. A value takes about 150 bytes. Vocabularies and merges do not become values (json_walk.h): the largest known
// tokenizer has 262,000 tokens and 515,000 merges.
inline constexpr std::uint64_t kJsonValues = 1'000'000;
inline constexpr std::size_t kJsonDepth = 64;
inline constexpr std::uint64_t kTokenizerValues = 16'000'000;
inline constexpr std::size_t kMerges = 4'000'000;

// A GGUF file's tokenizer, which becomes values when it is imported: a tenth of what is above, in memory. The texts of
// the largest known vocabulary have 2 MB, its merges 5 MB.
inline constexpr std::size_t kImportedTokens = 600'000;
inline constexpr std::size_t kImportedMerges = 700'000;
inline constexpr std::int64_t kImportedTextBytes = 16 << 20;

// Names of tensors: the longest known has about 120 bytes.
inline constexpr std::size_t kTensorNameBytes = 512;
// Files of one model: the largest known has 400 shards.
inline constexpr std::size_t kModelShards = 10'000;

// Words that are compared to say "did you mean …?": no key, option or tensor that a person types is longer.
inline constexpr std::size_t kMistypedBytes = 64;
inline constexpr std::size_t kSuggestedBytes = 128;

// Ranks of one job: more than any machine of today has cores, times its nodes at a desk or in a rack.
inline constexpr int kRanks = 4'096;

// Lists of hosts ("n[01-16]"): more names than any cluster that this program is for, each as long as DNS allows.
// Slurm's own names have at most three brackets.
inline constexpr std::size_t kHosts = 4'096;
inline constexpr std::size_t kHostBytes = 253;
inline constexpr std::size_t kHostlistBytes = 64 << 10;
inline constexpr std::size_t kHostlistRanges = 8;
// Values of a cluster file's entry, times the hosts that it stands for: 1,024 nodes with 100 values each.
inline constexpr std::size_t kExpandedValues = 100'000;

// Recipes and engine files. Linux takes a command line of 2 MiB; names of variables are words.
inline constexpr std::size_t kCommandBytes = 2 << 20;
inline constexpr std::size_t kVariableNameBytes = 64;

// Logs of NCCL: with NCCL_DEBUG=INFO a rank writes about 100 kB. Of a line only the beginning is read: the longest that
// NCCL writes lists the devices of a node in some kB. A log of this size takes about 2 s.
inline constexpr std::int64_t kLogBytes = 512 << 20;
inline constexpr std::size_t kLogLineBytes = 64 << 10;
inline constexpr std::chrono::nanoseconds kLogTime = std::chrono::seconds(4);

// Regular expressions. The longest of a known tokenizer has about 1,000 bytes, the longest of a quantization section
// about 100; sections have a few dozen of them.
inline constexpr std::size_t kPatternBytes = 16 << 10;
inline constexpr std::size_t kModulePatternBytes = 1 << 10;
inline constexpr std::size_t kModulePatterns = 1'000;
// Steps of one match. A run of a million blanks takes about as many; ten million take about 0.1 s.
inline constexpr std::uint32_t kMatchSteps = 20'000'000;
inline constexpr std::uint32_t kMatchDepth = 2'000'000;
inline constexpr std::uint32_t kMatchHeapKib = 256 << 10;

// Processor time for one text. Tokenizers need about 0.2 us for a byte; a checker of memory makes that 10 us.
inline constexpr std::chrono::nanoseconds kTextTime = std::chrono::seconds(2);
inline constexpr std::chrono::nanoseconds kTextTimePerByte = std::chrono::microseconds(5);
// Processor time for all names of modules that one quantization section is asked about, and more for each name.
inline constexpr std::chrono::nanoseconds kModulesTime = std::chrono::seconds(2);
inline constexpr std::chrono::nanoseconds kModuleTime = std::chrono::microseconds(20);

// What a tokenizer makes of a text, and of one token when it decodes. A Unicode form makes at most 11 bytes of one, the
// byte-level alphabet 2, a mark for each space 3.
inline constexpr std::size_t kTextGrowth = 16;
inline constexpr std::size_t kTextGrowthBytes = 1 << 20;
inline constexpr std::size_t kTokenGrowthBytes = 4 << 10;
// Parts of a tokenizer: known ones have at most 10 steps, marks of 5 bytes, added tokens of 100 and 5 around a text.
inline constexpr std::size_t kTokenizerSteps = 256;
inline constexpr std::size_t kTokenizerMarkBytes = 1 << 10;
inline constexpr std::size_t kAddedTokenBytes = 1 << 10;
inline constexpr std::size_t kAddedTokens = 100'000;
inline constexpr std::size_t kTokensAround = 1'024;
// Names such as bos_token in tokenizer_config.json: about ten are known.
inline constexpr std::size_t kSpecialTokens = 1'000;

}  // namespace yoke::limits
