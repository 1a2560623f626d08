// Recipes of the community (spark-vllm-docker's version 1, sparkrun's version 2) as a description of an engine. Nothing
// of a recipe is run: what it would run besides the engine is named.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::launch {

struct ConvertedRecipe {
  std::string engine;              // "vllm", "sglang"
  std::string model;               // as the recipe names it; empty: it names none
  std::vector<std::string> argv;   // of the recipe, without what the launcher sets
  std::string description;         // the text of the file
  std::vector<std::string> notes;  // what was left out, and what to look at
};

// Error(kInvalid) for unknown keys, missing values and words that cannot be read; kUnsupported for other engines.
ConvertedRecipe convert_recipe(std::string_view yaml, std::string_view source);

// The words of a command with its values: names of `values` in single braces; double braces only where a word has them,
// as recipes mix Python's format with plain JSON. Then as a shell splits it.
std::vector<std::string> recipe_words(std::string_view command, const std::map<std::string, std::string>& values);

}  // namespace yoke::launch
