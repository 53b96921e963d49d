/* {
  "inputs":  {"x": ["ROWS", "WIDTH"]},
  "outputs": {"y": {"shape": ["ROWS", "WIDTH // 2"], "dtype": "float32"}},
  "sizes":   {"COLUMNS": "WIDTH // 2"},
  "kernels": [{"name": "swiglu", "grid": ["ROWS"], "block": [32], "args": ["x", "y", "COLUMNS"]}]
} */

// silu of the left half of each row times the right half; a block a row.
extern "C" __global__ void swiglu(const float* __restrict__ x, float* __restrict__ y, int columns) {
  const float* left = x + blockIdx.x * columns * 2;
  const float* right = left + columns;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    float a = left[i];
    y[blockIdx.x * columns + i] = a / (1.0f + expf(-a)) * right[i];
  }
}
