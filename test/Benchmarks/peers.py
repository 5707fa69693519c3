"""The benchmarks' use of others, on modules that stand in for PyTorch and for them; and of an energy counter."""
import pathlib
import subprocess
import sys
import tempfile
import types

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python" / "benchmarks"))


class Tensor:
    """What the benchmarks need of a tensor, of a NumPy array."""

    def __init__(self, array):
        self.array = array

    shape = property(lambda self: self.array.shape)

    def to(self, device):
        return self

    cpu = contiguous = float = lambda self: self

    def transpose(self, a, b):
        return Tensor(self.array.swapaxes(a, b))

    def numpy(self):
        return self.array


def attend(query, key, value, causal):
    """Of (batch, heads, length, D)."""
    q, k, v = (x.array.astype(float) for x in (query, key, value))
    scores = q @ k.swapaxes(2, 3) / q.shape[-1] ** 0.5
    if causal:
        scores = numpy.where(numpy.tril(numpy.ones(scores.shape[2:], bool)), scores, -numpy.inf)
    p = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
    return Tensor((p / p.sum(axis=-1, keepdims=True)) @ v)


def module(name, **members):
    made = sys.modules[name] = types.ModuleType(name)
    vars(made).update(members)
    return made


class NoGrad:
    __enter__ = lambda self: self
    __exit__ = lambda self, *error: None


def check(condition, what):
    if not condition:
        raise SystemExit(f"peers: {what}")


def test_modules():
    calls = []

    def rows_first(name, with_lse):
        def flash_attn_func(q, k, v, causal=False):
            calls.append((name, q.shape, causal))
            result = attend(*(x.transpose(1, 2) for x in (q, k, v)), causal).transpose(1, 2)
            return (result, None) if with_lse else result

        return flash_attn_func

    functional = module("torch.nn.functional", scaled_dot_product_attention=lambda q, k, v, is_causal: attend(q, k, v, is_causal))
    module("torch", __version__="2.0", no_grad=NoGrad, from_numpy=Tensor, nn=module("torch.nn", functional=functional))
    module("flash_mlir", __version__="0.1", causal=lambda: "causal",
           attention=lambda q, k, v, mask: attend(q, k, v, mask == "causal"))
    module("flash_attn_interface", flash_attn_func=rows_first("FA3", with_lse=False))
    import peers

    said = []
    found = peers.Peers(False, 0.001, said.append)
    # On a CPU nobody looks for kernels of GPUs.
    check(list(found.modules) == ["Python"] and not found.missing, "modules of the CPU")
    check(found.describe() == "PyTorch 2.0, flash-mlir's package 0.1", found.describe())
    # As on a GPU, whose clock is not here.
    peers.torch.cuda = types.SimpleNamespace(
        is_available=lambda: True, get_device_properties=lambda device: types.SimpleNamespace(L2_cache_size=0))
    peers.torch.int8 = None
    peers.torch.empty = lambda *sizes, **options: None
    found = peers.Peers(True, 0.001, said.append)
    check(list(found.modules) == ["Python", "FA3"], "modules of a GPU")
    check(len(found.missing) == 1 and found.missing[0].startswith("FlashAttention-4 (flash_attn.cute.interface: No module"),
          f"missing: {found.missing}")
    check("not found: FlashAttention-4" in found.describe(), found.describe())
    random = numpy.random.default_rng(1)
    arrays = [random.standard_normal((2, 3, 20, 8), dtype=numpy.float32) for _ in range(3)]
    tensors = found.tensors(arrays)
    for name in ("Python", "FA3"):
        for mask in ("full", "causal"):
            check(found.checked(name, tensors, arrays, mask) >= 0, f"{name}, {mask}")
    check(set(calls) == {("FA3", (2, 20, 3, 8), False), ("FA3", (2, 20, 3, 8), True)}, f"calls: {set(calls)}")
    check(found.checked("FA4", tensors, arrays, "full") is None, "what is not there has no time")
    # One that returns the log-sum-exp, too, and one that is wrong.
    found.modules["FA4"] = types.SimpleNamespace(flash_attn_func=rows_first("FA4", with_lse=True))
    check(found.checked("FA4", tensors, arrays, "causal") >= 0, "FA4")
    found.modules["FA4"] = types.SimpleNamespace(flash_attn_func=lambda q, k, v, causal: q)
    try:
        found.checked("FA4", tensors, arrays, "full")
        check(False, "a wrong result is accepted")
    except RuntimeError as error:
        check(str(error).startswith("FlashAttention-4 is off by "), str(error))
    # One that refuses has no time.
    found.modules["FA4"] = types.SimpleNamespace()
    check(found.checked("FA4", tensors, arrays, "full") is None and "FA4" in said[-1], f"said: {said}")


NVML = """
typedef void *device_t;
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t *device) { *device = (device_t)(index + 1ul); return 0; }
int nvmlDeviceGetHandleByUUID(const char *uuid, device_t *device) {
  *device = (device_t)2;
  return uuid[0] != 'G' || uuid[4] != 'a';
}
int nvmlDeviceGetTotalEnergyConsumption(device_t device, unsigned long long *energy) {
  static unsigned long long total = 1000;
  *energy = total += 500;
  return device != (device_t)1 && device != (device_t)2 ? 2 : 0;
}
"""


def test_energy(compiler, folder):
    from energy import EnergyCounter, sustain

    (folder / "nvml.c").write_text(NVML)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "nvml.so", folder / "nvml.c"], check=True)
    for uuid in (None, "GPU-a", "a"):
        counter = EnergyCounter(uuid, str(folder / "nvml.so"))
        before = counter.read()
        check(counter.read() - before == 0.5, "joules of millijoules")
    for uuid, library, reason in (("b", folder / "nvml.so", "nvmlDeviceGetHandleByUUID fails with error 1"),
                                  (None, folder / "none.so", "none.so"), (None, "libc.so.6", "NVML has no nvmlInit_v2")):
        try:
            EnergyCounter(uuid, str(library))
            check(False, f"an energy counter without {reason}")
        except OSError as error:
            check(reason in str(error), str(error))

    class Clock:
        """A machine whose calls take longer when it is warm: 1 ms in the first second, then 2 ms, at 300 W."""

        def __init__(self):
            self.now, self.queued, self.joules = 0.0, 0, 0.0

        def call(self):
            self.queued += 1

        def synchronize(self):
            for _ in range(self.queued):
                took = 1e-3 if self.now < 1 else 2e-3
                self.now, self.joules = self.now + took, self.joules + 300 * took
            self.queued = 0

    clock = Clock()
    counter = types.SimpleNamespace(read=lambda: clock.joules)
    took, joules = sustain(clock.call, clock.synchronize, 4, counter, lambda: clock.now)
    check(abs(took - 2e-3) < 1e-9 and abs(joules - 0.6) < 1e-9, f"{took} s and {joules} J of a call")
    check(4 <= clock.now < 5, f"ends after {clock.now} s")
    took, joules = sustain(clock.call, clock.synchronize, 0.1, None, lambda: clock.now)
    check(abs(took - 2e-3) < 1e-9 and joules is None, "without a counter")


if __name__ == "__main__":
    test_modules()
    with tempfile.TemporaryDirectory() as folder:
        test_energy(sys.argv[1], pathlib.Path(folder))
    print("peers: ok")
