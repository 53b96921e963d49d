import torch
M, K, N = 16, 48, 40
class Model(torch.nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.linear = torch.nn.Linear(k, n)
    def forward(self, x):
        return torch.relu(self.linear(x))
def get_inputs():
    return [torch.rand(M, K)]
def get_init_inputs():
    return [K, N]
