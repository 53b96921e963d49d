/* {
  "inputs":  {"x": ["ROWS", "COLUMNS"]},
  "state":   {"bias": ["COLUMNS"]},
  "outputs": {"y": {"shape": ["ROWS", "COLUMNS"], "dtype": "float32"}},
  "kernels": [{"name": "bias_gelu", "grid": ["cdiv(COLUMNS, 32)", "cdiv(ROWS, 4)"], "block": [32, 4],
               "args": ["x", "bias", "y", "ROWS", "COLUMNS"]}]
} */

// A bias for each column, then GELU, in one pass.
#include <cuda_fp16.h>

extern "C" __global__ void bias_gelu(const float* __restrict__ x, const float* __restrict__ bias,
                                     float* __restrict__ y, int rows, int columns) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && col < columns) {
    float v = x[row * columns + col] + bias[col];
    y[row * columns + col] = 0.5f * v * (1.0f + erff(v * 0.70710678f));
  }
}
