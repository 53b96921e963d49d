/* {
  "inputs":  {"x": ["B", "C", "L"]},
  "state":   {"conv.weight": ["OC", "C", 3], "conv.bias": ["OC"]},
  "outputs": {"y": {"shape": ["B", "OC", "(L - 1) // 2 + 1"], "dtype": "float32"}},
  "sizes":   {"OUT": "(L - 1) // 2 + 1"},
  "kernels": [{"name": "conv1d", "grid": ["cdiv(OUT, 32)", "OC", "B"], "block": [32],
               "args": ["x", "conv.weight", "conv.bias", "y", "C", "L", "OC", "OUT"]}]
} */

// Convolution with a kernel of 3, a stride of 2 and padding of 1: an output element a thread.
constexpr int KERNEL = 3;
constexpr int STRIDE = 2;
constexpr int PADDING = 1;

extern "C" __global__ void conv1d(const float* __restrict__ x, const float* __restrict__ weight,
                                  const float* __restrict__ bias, float* __restrict__ y, int C,
                                  int L, int OC, int OUT) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  int oc = blockIdx.y;
  int image = blockIdx.z;
  if (at >= OUT) return;
  float total = bias[oc];
  for (int c = 0; c < C; ++c) {
    for (int k = 0; k < KERNEL; ++k) {
      int i = at * STRIDE + k - PADDING;
      if (i >= 0 && i < L) {
        total += x[(image * C + c) * L + i] * weight[(oc * C + c) * KERNEL + k];
      }
    }
  }
  y[(image * OC + oc) * OUT + at] = total;
}
