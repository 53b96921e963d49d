/* {
  "inputs":  {"x": ["ROWS", "COLUMNS"]},
  "outputs": {"y": {"shape": ["ROWS", "COLUMNS"], "dtype": "float32"}},
  "kernels": [{"name": "relu", "grid": ["(ROWS * COLUMNS + 255) // 256"], "block": [256],
               "args": ["x", "y", "ROWS * COLUMNS"]}]
} */

// ReLU, one element a thread.
extern "C" __global__ void relu(const float* __restrict__ x, float* __restrict__ y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
