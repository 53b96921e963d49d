/* {
  "inputs":  {"x": ["ROWS", "COLUMNS"]},
  "state":   {"norm.weight": ["COLUMNS"], "norm.bias": ["COLUMNS"]},
  "outputs": {"y": {"shape": ["ROWS", "COLUMNS"], "dtype": "float32"}},
  "kernels": [{"name": "layer_norm", "grid": ["ROWS"], "block": [64],
               "args": ["x", "norm.weight", "norm.bias", "y", "COLUMNS"]}]
} */

// Layer norm: a block a row, two passes for the statistics.
#include <cuda_fp16.h>

constexpr int THREADS = 64;
constexpr float EPSILON = 1e-5f;

__device__ float across_block(float value, float* of_warp) {
  for (int lane = 16; lane > 0; lane /= 2) {
    value += __shfl_xor_sync(0xffffffff, value, lane);
  }
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  float total = of_warp[0] + of_warp[1];
  __syncthreads();
  return total;
}

extern "C" __global__ void layer_norm(const float* __restrict__ x,
                                      const float* __restrict__ weight,
                                      const float* __restrict__ bias, float* __restrict__ y,
                                      int columns) {
  __shared__ float of_warp[THREADS / 32];
  const float* in = x + blockIdx.x * columns;
  float* out = y + blockIdx.x * columns;

  float total = 0.0f;
  for (int i = threadIdx.x; i < columns; i += THREADS) total += in[i];
  float mean = across_block(total, of_warp) / columns;

  float squares = 0.0f;
  for (int i = threadIdx.x; i < columns; i += THREADS) {
    float centred = in[i] - mean;
    squares += centred * centred;
  }
  float scale = rsqrtf(across_block(squares, of_warp) / columns + EPSILON);

  for (int i = threadIdx.x; i < columns; i += THREADS) {
    out[i] = (in[i] - mean) * scale * weight[i] + bias[i];
  }
}
