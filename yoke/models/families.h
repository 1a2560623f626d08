// The table of model families: which there are in this program, and how a config.json tells them apart.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "yoke/models/language_model.h"

namespace yoke::models {

// Error(kUnsupported) lists the architectures there are; kInvalid names the key that makes no sense.
std::unique_ptr<ModelOutline> outline_model(const Document& config);

}  // namespace yoke::models
