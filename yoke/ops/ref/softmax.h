// Probabilities of a row of logits, for those that have the whole row: log-probabilities asked for by a request, tests.
#pragma once
#include <cstdint>
#include <span>

namespace yoke::ref {

// log of the sum of exp(x); minus infinity for an empty row.
double log_sum_exp(std::span<const float> row);
void softmax(std::span<float> row);  // in place
// The first of the largest; -1 for an empty row.
std::int64_t argmax(std::span<const float> row);

}  // namespace yoke::ref
