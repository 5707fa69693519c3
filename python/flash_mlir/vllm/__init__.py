"""The plug-in for vLLM: with `--attention-backend CUSTOM`, vLLM's models compute attention by this package (docs/python.md, vLLM).

vLLM finds `register` by the entry point of the group `vllm.general_plugins`, and calls it in each of its processes.
"""


def register():
    """Makes `flash_mlir.vllm.backend.Backend` vLLM's backend CUSTOM. May be called again."""
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    register_backend(AttentionBackendEnum.CUSTOM, "flash_mlir.vllm.backend.Backend")
