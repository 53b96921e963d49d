/* {
  "inputs":  {"x": ["ROWS", "COLUMNS"]},
  "outputs": {"y": {"shape": ["ROWS"], "dtype": "float32"}},
  "kernels": [{"name": "log_sum_exp", "grid": ["cdiv(ROWS, 2)"], "block": [32, 2],
               "args": ["x", "y", "ROWS", "COLUMNS"]}]
} */

// Logarithm of each row's sum of exponentials: a warp a row, one pass with a running maximum.
#include <cuda_fp16.h>

extern "C" __global__ void log_sum_exp(const float* __restrict__ x, float* __restrict__ y, int rows,
                                       int columns) {
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float top = -1e30f;
  float total = 0.0f;
  for (int i = threadIdx.x; i < columns; i += 32) {
    float v = x[row * columns + i];
    float higher = fmaxf(top, v);
    total = total * expf(top - higher) + expf(v - higher);
    top = higher;
  }
  for (int lane = 16; lane > 0; lane /= 2) {
    float other_top = __shfl_xor_sync(0xffffffff, top, lane);
    float other_total = __shfl_xor_sync(0xffffffff, total, lane);
    float higher = fmaxf(top, other_top);
    total = total * expf(top - higher) + other_total * expf(other_top - higher);
    top = higher;
  }
  if (threadIdx.x == 0) y[row] = top + logf(total);
}
