"""Attention of others, and ours as Python calls it, timed with the protocol of flash-run."""
import contextlib
import importlib
import statistics
import time

import oracle
import programs

try:
    import torch
    from torch.nn.functional import scaled_dot_product_attention
except ImportError:
    torch = None

# By their columns: the name in full, and the module.
MODULES = {"Python": ("flash-mlir's package", "flash_mlir"),
           "FA3": ("FlashAttention-3", "flash_attn_interface"),
           "FA4": ("FlashAttention-4", "flash_attn.cute.interface")}

DETERMINISTIC = "FA4, deterministic"

# For so long a GPU waits while the host queues a call, which autograd does in 0.2 ms: no gap between kernels is the
# host's.
CYCLES_OF_HOST = 2_000_000

BACKENDS = {"FA2": "FLASH_ATTENTION", "cuDNN": "CUDNN_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "math": "MATH"}


def describe(error):
    """The first line of what it says."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:100]


def flash_attn(module, rows, causal, **options):
    """The output of FlashAttention's modules, which may return the log-sum-exp, too."""
    result = module.flash_attn_func(*rows, causal=causal, **options)
    return result[0] if isinstance(result, tuple) else result


class Peers:
    """Every method returns None where PyTorch, or what is needed of it, is not there."""

    def __init__(self, on_gpu, seconds, say):
        self.say, self.seconds = say, seconds
        self.device = "cuda" if on_gpu else "cpu"
        self.here = torch is not None and (not on_gpu or torch.cuda.is_available())
        self.flush = None
        self.modules, self.missing = {}, []
        for name, (title, module) in MODULES.items():
            if not self.here or (name != "Python" and not on_gpu):
                continue
            try:
                self.modules[name] = importlib.import_module(module)
            except Exception as error:  # Of another CUDA or PyTorch it may fail in any way.
                self.missing.append(f"{title} ({module}: {describe(error)})")
        if self.here and on_gpu:
            bytes_of_cache = torch.cuda.get_device_properties(0).L2_cache_size
            self.flush = torch.empty(2 * bytes_of_cache, dtype=torch.int8, device="cuda")

    def describe(self):
        if not self.here:
            return "no PyTorch"
        parts = [f"PyTorch {torch.__version__}"]
        parts += [f"{MODULES[name][0]} {getattr(module, '__version__', '')}".strip() for name, module in self.modules.items()]
        return ", ".join(parts + [f"not found: {each}" for each in self.missing])

    def tensors(self, arrays):
        return [torch.from_numpy(array).to(self.device) for array in arrays]

    def release(self):
        if self.flush is not None:
            torch.cuda.empty_cache()

    def once(self, function):
        if self.flush is None:
            start = time.perf_counter()
            function()
            return (time.perf_counter() - start) * 1e3
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.flush.zero_()
        torch.cuda._sleep(CYCLES_OF_HOST)
        start.record()
        function()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop)

    def time(self, name, function):
        """The median of milliseconds."""
        if not self.here:
            return None
        try:
            with torch.no_grad():
                for _ in range(3):
                    self.once(function)
                times, end = [], time.perf_counter() + self.seconds
                while len(times) < 5 or (time.perf_counter() < end and len(times) < 1000):
                    times.append(self.once(function))
        except Exception as error:  # A backend that refuses, or memory that is not there.
            self.say(f"  PyTorch, {name}: {describe(error)}")
            self.release()
            return None
        return statistics.median(times)

    def sdpa(self, backend, tensors, causal, **options):
        if not self.here:
            return None
        chosen = contextlib.nullcontext()
        if self.device == "cuda":
            from torch.nn.attention import SDPBackend, sdpa_kernel
            chosen = sdpa_kernel([getattr(SDPBackend, BACKENDS[backend])])
        with chosen:
            return self.time(backend, lambda: scaled_dot_product_attention(*tensors, is_causal=causal, **options))

    def sdpa_call(self, backend, tensors, causal, **options):
        """A call of one backend on a GPU."""
        from torch.nn.attention import SDPBackend, sdpa_kernel

        def call():
            with sdpa_kernel([getattr(SDPBackend, BACKENDS[backend])]):
                return scaled_dot_product_attention(*tensors, is_causal=causal, **options)

        return call

    def call(self, name, tensors, causal):
        """A call of one of MODULES, or None: the result is of (batch, heads, length, D)."""
        module = self.modules.get(name)
        if module is None:
            return None
        if name == "Python":
            mask = module.causal() if causal else None
            return lambda: module.attention(*tensors, mask=mask)
        # They want (batch, length, heads, D).
        rows = [tensor.transpose(1, 2).contiguous() for tensor in tensors]
        return lambda: flash_attn(module, rows, causal).transpose(1, 2)

    def normal(self, shape, dtype):
        return torch.randn(*shape, device=self.device, dtype=getattr(torch, programs.DTYPES[dtype]))

    def backward(self, name, tensors, causal):
        """A call that computes the gradients of queries, keys and values, the first of the tensors, of an output whose
        gradient is the last, by autograd, of what `name` computes: one of MODULES, of BACKENDS on a GPU, SDPA, or
        DETERMINISTIC. None where it is not there, or refuses."""
        module = self.modules.get("FA4" if name == DETERMINISTIC else name)
        if module is None and (name in MODULES or name == DETERMINISTIC):
            return None
        wants_rows = module is not None and name != "Python"
        if wants_rows:
            # As in `call`; to copy takes no time of theirs.
            tensors = [tensor.transpose(1, 2).contiguous() for tensor in tensors]
        *leaves, grad = (tensor.detach() for tensor in tensors)
        for leaf in leaves:
            leaf.requires_grad_()
        try:
            with torch.enable_grad():
                if wants_rows:
                    output = flash_attn(module, leaves, causal, **({"deterministic": True} if name == DETERMINISTIC else {}))
                elif name == "SDPA":
                    output = scaled_dot_product_attention(*leaves, is_causal=causal)
                else:
                    output = (self.call if module else self.sdpa_call)(name, leaves, causal)()
        except Exception as error:  # A backend that refuses.
            self.say(f"  {name}: {describe(error)}")
            return None
        return lambda: torch.autograd.grad(output, leaves, grad, retain_graph=True)

    def backward_time(self, name, tensors, causal):
        call = self.backward(name, tensors, causal)
        return self.time(name, call) if call else None

    def gradient_deviation(self, tensors, causal, found):
        """By how much the gradients of the first head are off from the gradients of a naive attention in f32: the root of the
        mean square, by that of the gradient, of the worst of the three; and what is allowed."""
        *leaves, grad = (tensor.detach()[:1, :1].float() for tensor in tensors)
        q, k, v = (leaf.requires_grad_() for leaf in leaves)
        with torch.enable_grad():
            scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
            if causal:
                scores = scores.masked_fill(~torch.ones_like(scores, dtype=torch.bool).tril(), float("-inf"))
            wanted = torch.autograd.grad(torch.softmax(scores, dim=-1) @ v, (q, k, v), grad)

        def norm(x):
            return float(x.float().pow(2).mean().sqrt())

        deviation = max(norm(mine[:1, :1].float() - other) / norm(other) for mine, other in zip(found, wanted))
        allowed = {"bfloat16": 2e-2, "float16": 4e-3, "float32": 1e-5}[str(tensors[0].dtype).removeprefix("torch.")]
        return deviation, allowed

    def checked_backward(self, tensors, causal):
        """The median of milliseconds of our gradients, if they are right; wrong ones raise RuntimeError."""
        call = self.backward("Python", tensors, causal)
        if call is None:
            return None
        deviation, allowed = self.gradient_deviation(tensors, causal, call())
        if not deviation <= allowed:
            raise RuntimeError(f"gradients are off by {deviation:.1e}, and {allowed:.0e} is allowed")
        return self.time("Python", call)

    def checked(self, name, tensors, arrays, mask):
        """The median of milliseconds of one of MODULES, if its result is right; a wrong one raises RuntimeError."""
        call = self.call(name, tensors, mask == "causal")
        took = self.time(name, call) if call else None
        if took is not None:
            with torch.no_grad():
                output = call().float().cpu().numpy()
            deviation, tolerance = oracle.compare(*arrays, output, mask, None, None)
            if not deviation <= tolerance:
                raise RuntimeError(f"{MODULES[name][0]} is off by {deviation:.1e}, and {tolerance:.0e} is allowed")
        return took

    def naive(self, tensors, causal):
        """Product, softmax, product: milliseconds, and bytes at most beyond the inputs."""
        if not self.here:
            return None, None
        query, key, value = tensors
        scale = query.shape[-1] ** -0.5
        keep = None
        if causal:
            keep = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool, device=self.device).tril()

        def run():
            scores = (query * scale) @ key.transpose(-1, -2)
            if causal:
                scores = scores.masked_fill(~keep, float("-inf"))
            return torch.softmax(scores, dim=-1) @ value

        milliseconds = self.time("naive", run)
        memory = None
        if milliseconds is not None and self.device == "cuda":
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            run()
            torch.cuda.synchronize()
            memory = torch.cuda.max_memory_allocated() - before
        return milliseconds, memory
