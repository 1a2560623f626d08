// How weights lie in a GPU's memory, and what kernels are told of a step: plain data, read by the host's compiler and
// by nvcc, so nothing else may be included here.
//
// A weight is cut into panels of 16 rows and blocks of 64 columns. A block is what the 32 lanes of a warp hold for four
// products m16n8k16 of the tensor cores: lane 4 g + t holds, of step s, the columns 16 s + 4 t to 16 s + 4 t + 3 of the
// rows g and g + 8, as four pairs: pair p is row g + 8 (p % 2), columns 2 (p / 2) and 2 (p / 2) + 1 of those four. The
// order of columns within a step is ours to choose, as the activations follow it. Per lane and block:
//
//   4 bits    16 bytes: word s is step s; the pair's first number is nibble p, its second nibble p + 4
//   8 bits    32 bytes: two words a step; of each word two pairs
//   16 bits   64 bytes: word p of a step is pair p
//   32 bits  128 bytes: words 2 p and 2 p + 1 of a step
//
// in pieces of 16 bytes, [panel][block][piece][lane]. Scales and zeros lie as [panel][group][g][2]: rows g and g + 8
// side by side. One layout serves every number of rows of activations.
#pragma once

namespace yoke::ops::cuda {

constexpr int kPanelRows = 16;
constexpr int kBlockColumns = 64;
constexpr int kStepColumns = 16;
constexpr int kBlockSteps = kBlockColumns / kStepColumns;

enum PackedKind : int { kInt4, kNvfp4, kInt8, kFp8, kBf16, kF16, kF32 };
enum ScaleKind : int { kNoScale, kF32Scale, kBf16Scale, kF16Scale, kE4m3Scale };

// Of a lane in a step.
constexpr int step_bytes(int kind) {
  return kind == kInt4 || kind == kNvfp4 ? 4 : kind == kInt8 || kind == kFp8 ? 8 : kind == kF32 ? 32 : 16;
}
// Pieces of 16 bytes of a lane in a block.
constexpr int block_pieces(int kind) { return kBlockSteps * step_bytes(kind) / 16; }

// Where the rows of a panel go in the result.
struct PanelRows {
  int first = 0;
  int count = 0;     // fewer than 16 in the last panel of a part
  float factor = 1;  // of all its numbers: the global scale of nvfp4
};

// Matrices of one kind that lie side by side and are multiplied with the same activations.
struct PackedMatrix {
  const unsigned char* values = nullptr;
  const unsigned char* scales = nullptr;
  const short* zeros = nullptr;  // of int4 and int8; null: 8 and 128
  const PanelRows* panels = nullptr;
  const int* source = nullptr;  // which column of the activations each packed column takes, -1: none; null: its own
  int kind = kF32;
  int scale_kind = kNoScale;
  int panel_count = 0;
  int blocks = 0;             // of 64 columns
  int groups = 0;             // along a row, that have a scale each
  int group_steps = 1;        // of 16 columns, in a group
  unsigned group_factor = 0;  // 2^32 / group_steps, rounded up; 0 for 1
  int scale_pair = 0;         // bytes of the scales of two rows
  int slice_blocks = 1;       // how far one sum goes; sums of slices are added in ascending order
  int slices = 1;
  int columns = 0;   // of the activations
  int is_gated = 0;  // panel 2 i is of the gate, 2 i + 1 of what it multiplies
};

struct LinearCall {
  const float* x = nullptr;      // [rows, columns]
  float* y = nullptr;            // [rows, y_columns]
  const float* bias = nullptr;   // by the row of the stack
  float* partials = nullptr;     // [panel][slice][row of activations][16]
  unsigned* counters = nullptr;  // one for each panel, or pair of panels: zero between calls
  int rows = 0;
  int y_columns = 0;
  int swiglu = 0;
  int part_rows = 0;  // of a gate
};

// Of many rows: their activations are rounded before.
struct PromptCall {
  LinearCall linear;
  const unsigned short* x = nullptr;  // [rows, x_columns] in bf16
  int x_columns = 0;                  // the packed columns
};

// A sequence of a step.
struct SequenceInfo {
  int first_row = 0, fresh = 0, context = 0, first_page = 0;
};
struct StepInfo {
  const int* ids = nullptr;
  const int* sequence_of = nullptr;  // of each row
  const int* positions = nullptr;    // of each row
  const SequenceInfo* sequences = nullptr;
  const int* pages = nullptr;
  const int* logit_rows = nullptr;
  const float* angles = nullptr;  // [rows][D / 2][2]: cosine, sine
  int page_tokens = 1;
};

// Pages of keys or values.
enum CacheKind : int { kF32Cache, kBf16Cache, kF16Cache };
struct CacheInfo {
  void* keys = nullptr;
  void* values = nullptr;
  int kind = kF32Cache;
  int kv_heads = 1, width = 1, page_tokens = 1;
};

struct HeadsCall {
  const float* qkv = nullptr;     // [rows, (heads + 2 kv_heads) width]
  const float* q_norm = nullptr;  // null: not normed
  const float* k_norm = nullptr;
  float* q = nullptr;
  float epsilon = 0;
  int heads = 1;
};

struct AttendCall {
  const float* q = nullptr;
  float* y = nullptr;
  float* partials = nullptr;  // [row][head][split][2 + width]
  CacheInfo cache;
  int heads = 1;
  int window = 0;
  int splits = 1;  // that partials have room for
  int rows = 0;
  float scale = 1;
};

// Stored numbers that become a part of a packed matrix, dense rows of them.
struct RawPart {
  const unsigned char* values = nullptr;  // rows from `first_row` on
  long long row_bytes = 0;
  const unsigned char* scales = nullptr;  // all of the part
  const unsigned char* zeros = nullptr;
  const int* source = nullptr;      // as in PackedMatrix
  const int* step_group = nullptr;  // the stored group of each step, where columns are reordered
  int value_kind = kF32;
  int is_signed = 0;  // of int8
  int rows = 0, columns = 0;
  int scale_rows = 1, scale_groups = 1;
  int zero_offset = 0;
  int first_row = 0, row_count = 0;     // of this call
  int first_panel = 0, panel_step = 1;  // where panel 0 of the part is
};

}  // namespace yoke::ops::cuda
