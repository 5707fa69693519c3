"""Speed when kernels run for seconds, and the energy that it takes."""
import peers as peers_module
import programs
from energy import EnergyCounter, sustain
from results import Result, Table

# D, heads, N, mask: 16k tokens of hidden size 2048.
CASES = [(64, 32, 4096, "full"), (128, 16, 4096, "full"), (128, 16, 16384, "causal"), (256, 8, 4096, "full")]
TOKENS = 16384
DTYPE = "f16"


def list_calls(bench, tensors, shape, mask):
    """What is timed, by name; what is not there is left out."""
    causal = mask == "causal"
    flash = bench.peers.modules.get("Python")
    calls = {}
    if flash:
        kernel = flash.compile(programs.attention(shape, DTYPE, programs.CAUSAL if causal else None), target=bench.target)
        calls["flash-mlir"] = lambda: kernel(*tensors)
    calls["cuDNN"] = bench.peers.sdpa_call("cuDNN", tensors, causal)
    for name in peers_module.MODULES:
        calls[name] = bench.peers.call(name, tensors, causal)
    return {name: call for name, call in calls.items() if call}


def run(bench):
    result = Result(f"Sustained speed, {DTYPE}, {TOKENS} tokens, hidden size 2048",
                    f"Each kernel runs without a pause for {bench.sustained_seconds:.3g} s; of the second half, TFLOP/s, and joules "
                    "for each TFLOP by the energy counter of the GPU, all of whose parts it counts.")
    if not bench.gpu or not bench.peers.here:
        result.notes.append("Needs an NVIDIA GPU and PyTorch.")
        return result
    torch = peers_module.torch
    try:
        energy = EnergyCounter(str(getattr(torch.cuda.get_device_properties(0), "uuid", "")))
    except OSError as error:
        energy = None
        result.notes.append(f"No energy: {error}.")
    rows = []
    for dim, heads, length, mask in CASES:
        shape = (TOKENS // length, heads, length, dim)
        tensors = bench.peers.tensors(bench.flash.arrays.qkv(shape, DTYPE))
        pairs = length * (length + 1) / 2 if mask == "causal" else length**2
        teraflop = 4e-12 * shape[0] * heads * pairs * dim
        for name, call in list_calls(bench, tensors, shape, mask).items():
            try:
                with torch.no_grad():
                    seconds, joules = sustain(call, torch.cuda.synchronize, bench.sustained_seconds, energy)
            except Exception as error:  # A backend that refuses.
                bench.say(f"  {name}: {(str(error).strip().splitlines() or [type(error).__name__])[0][:100]}")
                continue
            rows.append([dim, mask, length, name, teraflop / seconds, joules and joules / teraflop, joules and joules / seconds])
        del tensors
        bench.peers.release()
    result.tables.append(Table(["D", "mask", "N", "kernel", "TFLOP/s", "J/TFLOP", "W"], rows))
    result.notes += [f"Not found: {each}." for each in bench.peers.missing]
    return result
