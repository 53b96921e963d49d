/* {
  "inputs":  {"x": ["B", "C", "L"]},
  "state":   {"norm.weight": ["C"], "norm.bias": ["C"]},
  "outputs": {"y": {"shape": ["B", "C", "L"], "dtype": "float32"}},
  "scratch": {"statistics": {"shape": ["B", 3, 2], "dtype": "float32"}},
  "sizes":   {"WIDTH": "C // 3", "N": "B * C * L"},
  "kernels": [{"name": "group_statistics", "grid": [3, "B"], "block": [64],
               "args": ["x", "statistics", "C", "L", "WIDTH"]},
              {"name": "group_scale", "grid": ["cdiv(N, 128)"], "block": [128],
               "args": ["x", "norm.weight", "norm.bias", "statistics", "y", "C", "L", "WIDTH", "N"]}]
} */

// Group norm with 3 groups in two kernels: mean and scale of each group, then every element.
constexpr int GROUPS = 3;
constexpr int THREADS = 64;
constexpr float EPSILON = 1e-5f;

__device__ float across_block(float value, float* shared) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  float total = shared[0];
  __syncthreads();
  return total;
}

extern "C" __global__ void group_statistics(const float* __restrict__ x,
                                            float* __restrict__ statistics, int C, int L,
                                            int width) {
  __shared__ float shared[THREADS];
  int group = blockIdx.x;
  int image = blockIdx.y;
  int count = width * L;
  const float* in = x + (image * C + group * width) * L;
  float total = 0.0f;
  for (int i = threadIdx.x; i < count; i += THREADS) total += in[i];
  float mean = across_block(total, shared) / count;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < count; i += THREADS) {
    squares += (in[i] - mean) * (in[i] - mean);
  }
  float variance = across_block(squares, shared) / count;
  if (threadIdx.x == 0) {
    statistics[(image * GROUPS + group) * 2] = mean;
    statistics[(image * GROUPS + group) * 2 + 1] = rsqrtf(variance + EPSILON);
  }
}

extern "C" __global__ void group_scale(const float* __restrict__ x,
                                       const float* __restrict__ weight,
                                       const float* __restrict__ bias,
                                       const float* __restrict__ statistics,
                                       float* __restrict__ y, int C, int L, int width, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int channel = i / L % C;
  int image = i / (L * C);
  const float* of_group = statistics + (image * GROUPS + channel / width) * 2;
  y[i] = (x[i] - of_group[0]) * of_group[1] * weight[channel] + bias[channel];
}
