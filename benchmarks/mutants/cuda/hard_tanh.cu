/* {
  "inputs":  {"x": ["ROWS", "COLUMNS"]},
  "outputs": {"y": {"shape": ["ROWS", "COLUMNS"], "dtype": "float32"}},
  "sizes":   {"N": "ROWS * COLUMNS"},
  "kernels": [{"name": "hard_tanh", "grid": ["cdiv(N, 128)"], "block": [32], "args": ["x", "y", "N"]}]
} */

// Hard tanh, four elements a thread by one vector load; the last thread's rest goes one by one.
__device__ float clamp(float v) { return fminf(fmaxf(v, -1.0f), 1.0f); }

extern "C" __global__ void hard_tanh(const float* __restrict__ x, float* __restrict__ y, int n) {
  int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i + 3 < n) {
    float4 v = *reinterpret_cast<const float4*>(x + i);
    v.x = clamp(v.x);
    v.y = clamp(v.y);
    v.z = clamp(v.z);
    v.w = clamp(v.w);
    *reinterpret_cast<float4*>(y + i) = v;
  } else {
    for (int k = i; k < n; ++k) y[k] = clamp(x[k]);
  }
}
