/* {
  "inputs":  {"x": ["ROWS", "COLUMNS"], "t": ["ROWS", "COLUMNS"]},
  "outputs": {"y": {"shape": [], "dtype": "float32"}},
  "sizes":   {"N": "ROWS * COLUMNS"},
  "kernels": [{"name": "clear", "grid": [1], "block": [1], "args": ["y"]},
              {"name": "huber", "grid": ["cdiv(N, 128)"], "block": [64], "args": ["x", "t", "y", "N"]}]
} */

// Mean of the smooth L1 loss: an atomic addition a warp.
extern "C" __global__ void clear(float* __restrict__ y) { y[0] = 0.0f; }

extern "C" __global__ void huber(const float* __restrict__ x, const float* __restrict__ t,
                                 float* __restrict__ y, int n) {
  float total = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float off = fabsf(x[i] - t[i]);
    total += off < 1.0f ? 0.5f * off * off : off - 0.5f;
  }
  for (int lane = 16; lane > 0; lane /= 2) total += __shfl_xor_sync(0xffffffff, total, lane);
  if (threadIdx.x % 32 == 0) atomicAdd(y, total / n);
}
