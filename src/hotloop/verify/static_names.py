"""What a candidate's text may not contain, and why: tables for the static rules.

Only what no honest kernel needs. Reasons are shown to whoever wrote the candidate.
"""

from __future__ import annotations

BANNED_MODULES = {
    name: "a kernel needs no access to the process or the system"
    for name in (
        "ctypes", "cffi", "gc", "inspect", "threading", "_thread", "multiprocessing", "subprocess",
        "socket", "signal", "concurrent", "asyncio", "pickle", "marshal", "mmap", "resource",
        "sysconfig", "importlib", "pkgutil", "cuda", "cupy", "numba", "pynvml", "hotloop",
        "atexit", "bdb", "builtins", "dbm", "faulthandler", "fcntl", "http", "pdb", "pty",
        "requests", "runpy", "shelve", "sqlite3", "ssl", "traceback", "urllib", "zipimport",
        "_ctypes", "_imp", "_pickle", "_posixsubprocess", "_signal", "_socket", "code", "codeop",
        "imp", "posix",
    )
} | {
    name: "what a call does may not depend on the time" for name in ("datetime", "uuid")
} | {
    name: "a kernel file executes no text"
    for name in (
        "_lsprof", "cProfile", "doctest", "jinja2", "numexpr", "profile", "pydoc", "rlcompleter",
        "sympy", "timeit", "trace", "unittest",
    )
}  # fmt: skip

REACHED = (BANNED_MODULES.keys() - {"code", "cuda", "profile", "trace"}) | {
    "os", "sys", "python_multiprocessing", "_C", "libtriton",
}  # fmt: skip
"""What may not be reached as an attribute of another module: `torch.os`. `torch.cuda` and
`torch.trace` are torch's own."""
NOT_REACHED = frozenset({"torch.signal", "scipy.signal", "fx.traceback"})
"""Modules of others that only share a name with a banned one."""

BANNED_ATTRIBUTES = {
    "sys._getframe": "frames are not for kernels",
    "sys._current_frames": "frames are not for kernels",
    "sys.settrace": "frames are not for kernels",
    "sys.setprofile": "frames are not for kernels",
    "sys.modules": "other modules are not for kernels",
    "sys.meta_path": "other modules are not for kernels",
    "sys.addaudithook": "frames are not for kernels",
    "sys._current_exceptions": "frames are not for kernels",
    **{
        f"os.{name}": "no processes"
        for name in (
            "execl", "execle", "execlp", "execlpe", "execv", "execve", "execvp",
            "execvpe", "fork", "forkpty", "popen", "posix_spawn", "posix_spawnp",
            "register_at_fork", "spawnl", "spawnle", "spawnlp", "spawnlpe", "spawnv", "spawnve",
            "spawnvp", "spawnvpe", "system",
        )
    },
    "os.environ": "the environment is the harness's",
    "os.times": "what a call does may not depend on the time",
    "torch.cuda.Event": "timing is the verifier's",
    "torch.cuda.StreamContext": "a side stream is entered by `with torch.cuda.stream(side):`",
    "torch.cuda.streams": "a side stream is a torch.cuda.Stream",
    "torch.cuda.get_stream_from_external": "a side stream is a torch.cuda.Stream",
    "torch.accelerator": "the device is the verifier's",
    "torch.get_device_module": "the device is the verifier's",
    "torch.cuda.ExternalStream": "work must be on the current stream",
    "torch.cuda.set_stream": "work must be on the current stream",
    "torch.Stream": "work must be on the current stream",
    "torch.Event": "timing is the verifier's",
    "torch.cuda.make_graphed_callables": "a graph replays old addresses",
    "torch.cuda.CUDAPluggableAllocator": "memory comes from torch's own allocator",
    "torch.cuda.change_current_allocator": "memory comes from torch's own allocator",
    "torch.cuda.cudart": "the device is the verifier's",
    "torch.cuda.CUDAGraph": "a graph replays old addresses",
    "torch.cuda.graph": "a graph replays old addresses",
    "torch.cuda.graphs": "a graph replays old addresses",
    "torch.cuda.is_current_stream_capturing": "a call does the same where it is captured",
    "torch.compile": "the compiler's kernels are the baseline",
    "torch._dynamo": "its kernels are the baseline; torch.compiler.is_compiling() is allowed",
    "torch._inductor": "the compiler's kernels are the baseline",
    "torch.multiprocessing": "no processes",
    **{
        f"torch.jit.{name}": "the compiler's kernels are the baseline"
        for name in (
            "ScriptFunction", "ScriptModule", "_fuser", "_recursive", "_script",
            "_script_if_tracing", "_trace", "fork", "frontend", "fuser", "load", "script",
            "script_if_tracing", "script_method", "trace", "trace_module",
        )
    },
    "torch.utils.benchmark": "a kernel file executes no text; time with triton.testing.do_bench",
    "numpy.testing": "a kernel file executes no text",
    "torch._C": "torch's internals are not for kernels",
    "torch._subclasses": "outputs are plain tensors",
    "torch.overrides": "outputs are plain tensors",
    "torch.utils._python_dispatch": "outputs are plain tensors",
    "torch.utils._mode_utils": "torch's internals are not for kernels",
    "torch._dispatch": "torch's internals are not for kernels",
    "triton._C": "Triton's internals are not for kernels",
    "torch.hub": "no files",
    "torch.load": "no files",
    "torch.save": "no files",
    "torch.utils.data": "no processes",
    "triton.runtime.interpreter": "the interpreter is the verifier's",
    "torch.distributed": "multicast can take every GPU of the host down",
}  # fmt: skip

BANNED_IDENTIFIERS = {
    "cudaMallocManaged": "managed memory can take the GPU down",
    "cuMemAllocManaged": "managed memory can take the GPU down",
    "cudaMemPrefetchAsync": "managed memory can take the GPU down",
    "cuMemPrefetchAsync": "managed memory can take the GPU down",
    "cudaMemAdvise": "managed memory can take the GPU down",
    "cuMemAdvise": "managed memory can take the GPU down",
    "__managed__": "managed memory can take the GPU down",
    "cuMulticastCreate": "multicast can take every GPU of the host down",
    "cuMulticastBindMem": "multicast can take every GPU of the host down",
    "cuMulticastBindAddr": "multicast can take every GPU of the host down",
    "cuMulticastAddDevice": "multicast can take every GPU of the host down",
    "multimem": "multicast can take every GPU of the host down",
    "cudaDeviceReset": "the device is the verifier's",
    "cudaDeviceSetLimit": "device limits are the verifier's",
    "cuCtxSetLimit": "device limits are the verifier's",
    "cudaCtxResetPersistingL2Cache": "the L2 policy is the verifier's",
    "cudaStreamSetAttribute": "the L2 policy is the verifier's",
    "cudaStreamCreate": "work must be on the current stream",
    "cudaStreamCreateWithFlags": "work must be on the current stream",
    "cudaGraphLaunch": "a graph replays old addresses",
    "cudaStreamCreateWithPriority": "work must be on the current stream",
    "cuStreamCreate": "work must be on the current stream",
    "cuStreamCreateWithPriority": "work must be on the current stream",
    "getStreamFromPool": "work must be on the current stream",
    "getStreamFromExternal": "work must be on the current stream",
    "cudaStreamBeginCapture": "a graph replays old addresses",
    "cuStreamBeginCapture": "a graph replays old addresses",
    "cudaStreamIsCapturing": "a call does the same where it is captured",
    "cuStreamIsCapturing": "a call does the same where it is captured",
    "cudaStreamGetCaptureInfo": "a call does the same where it is captured",
    "cuStreamGetCaptureInfo": "a call does the same where it is captured",
    "globaltimer": "what a kernel computes may not depend on the time",
    "cudaGraphCreate": "a graph replays old addresses",
    "cudaGraphInstantiate": "a graph replays old addresses",
    "cuGraphLaunch": "a graph replays old addresses",
    "cudaLaunchHostFunc": "work must be on the device, in the call itself",
    "cuLaunchHostFunc": "work must be on the device, in the call itself",
    "cudaStreamAddCallback": "work must be on the device, in the call itself",
    "cudaIpcOpenMemHandle": "memory of other processes is not for kernels",
    "cuIpcOpenMemHandle": "memory of other processes is not for kernels",
    "cuMemImportFromShareableHandle": "memory of other processes is not for kernels",
    "pthread_create": "no threads",
    "dlopen": "symbols are not looked up by name",
    "dlsym": "symbols are not looked up by name",
    "cuGetProcAddress": "symbols are not looked up by name",
    "cudaGetDriverEntryPoint": "symbols are not looked up by name",
    "ptrace": "no processes",
    "cudaEventElapsedTime": "timing is the verifier's",
    "nvmlDeviceSetGpuLockedClocks": "GPU settings are the operator's",
}

BANNED_HEADERS = {
    "thread": "no threads", "future": "no threads", "pthread.h": "no threads",
    "dlfcn.h": "symbols are not looked up by name", "unistd.h": "no processes",
    "sys/mman.h": "no processes", "sys/ptrace.h": "no processes", "sys/socket.h": "no files",
    "fstream": "no files", "filesystem": "no files",
}  # fmt: skip

BANNED_STD = {
    "thread": "no threads", "jthread": "no threads", "async": "no threads",
    "chrono": "what a call does may not depend on the time",
    "system": "no processes", "ifstream": "no files", "ofstream": "no files",
    "fstream": "no files",
}  # fmt: skip
"""Names of C++'s standard library; without `std::` they may be a kernel's own."""

BANNED_MEMBERS = {
    name: "frames are not for kernels"
    for name in (
        "__traceback__", "tb_frame", "f_back", "f_locals", "f_globals", "gi_frame", "cr_frame",
        "ag_frame", "__globals__", "__closure__", "__subclasses__", "__builtins__",
    )
} | {
    name: "outputs are plain tensors"
    for name in (
        "__torch_function__", "__torch_dispatch__", "_make_subclass", "_make_wrapper_subclass",
        "as_subclass",
    )
} | {
    name: "torch's internals are not for kernels"
    for name in (
        "DisableTorchFunction", "DisableTorchFunctionSubclass", "ExcludeDispatchKeyGuard",
        "_AutoDispatchBelowADInplaceOrView", "_AutoDispatchBelowAutograd", "_DisableFuncTorch",
        "_DisablePythonDispatcher", "_DisableTorchDispatch", "_EnablePreDispatch",
        "_EnablePythonDispatcher", "_ExcludeDispatchKeyGuard", "_ForceDispatchKeyGuard",
        "_IncludeDispatchKeyGuard", "_PreserveDispatchKeyGuard", "_RestorePythonTLSSnapshot",
        "_SetExcludeDispatchKeyGuard", "_dispatch_tls_set_dispatch_key_excluded",
        "_dispatch_tls_set_dispatch_key_included", "_disable_current_modes", "_get_dispatch_mode",
        "_get_dispatch_stack_at", "_len_torch_dispatch_stack", "_len_torch_function_stack",
        "_pop_torch_dispatch_stack", "_pop_torch_function_stack", "_push_on_torch_dispatch_stack",
        "_push_on_torch_function_stack", "_set_dispatch_mode", "_unset_dispatch_mode",
        "unset_fake_temporarily", "_profiler_enabled", "_enable_profiler", "_disable_profiler",
        "_enable_profiler_legacy", "_disable_profiler_legacy", "_RecordFunctionFast",
        "getprofile", "gettrace",
    )
} | {
    name: "other modules are not for kernels"
    for name in ("__getattribute__", "__loader__", "__self__", "__spec__", "libtriton")
} | {
    "CompilationUnit": "the compiler's kernels are the baseline",
    "__array_interface__": "memory comes from torch's own allocator",
    "__array_struct__": "memory comes from torch's own allocator",
    "__cuda_array_interface__": "memory comes from torch's own allocator",
    "_share_fd_cpu_": "no files",
    "_share_filename_cpu_": "no files",
    "_write_file": "no files",
    "findCaller": "frames are not for kernels",
}  # fmt: skip
"""Attributes of whatever object."""

SETTINGS = ("torch.backends",)
"""Modules whose attributes are settings that an honest file may write."""

BANNED_CALLS = frozenset({"eval", "exec", "compile", "__import__", "globals", "open"})
BANNED_BARE = frozenset({"__builtins__", "__loader__", "__spec__"})
"""Names that every module has, and that lead to others."""

LIBRARY_CALLS = frozenset({
    "matmul", "mm", "bmm", "addmm", "baddbmm", "einsum", "tensordot", "linear", "bilinear",
    "mv", "addmv", "addbmm", "addr", "chain_matmul", "multi_dot",
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "softmax", "log_softmax", "layer_norm", "scaled_dot_product_attention", "flex_attention",
    "multi_head_attention_forward",
    "cdist", "_cdist_forward", "_euclidean_dist", "_int_mm", "_scaled_mm", "_grouped_mm",
    "_scaled_grouped_mm", "_addmm_activation", "_trilinear", "linalg_multi_dot", "mkldnn_linear",
    "_linear_pointwise", "_convolution", "convolution", "_convolution_pointwise",
    "mkldnn_convolution", "cudnn_convolution", "cudnn_convolution_add_relu",
    "cudnn_convolution_relu", "cudnn_convolution_transpose", "thnn_conv2d",
    "_softmax", "_log_softmax", "_safe_softmax", "_masked_softmax", "native_layer_norm",
    "native_group_norm", "native_batch_norm", "_native_batch_norm_legit", "_fused_rms_norm",
    "_cudnn_attention_forward", "_efficient_attention_forward", "_flash_attention_forward",
    "_scaled_dot_product_attention_math", "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_fused_attention_overrideable",
})  # fmt: skip
