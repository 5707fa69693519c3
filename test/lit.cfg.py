# The lit suite: how tests are found and which tools their RUN lines name.
import ctypes
import os
import shutil
import subprocess

import lit.formats

config.name = "flash"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.flash_build_dir, "test")

config.environment["PATH"] = os.pathsep.join(
    [config.flash_tools_dir, config.llvm_tools_dir, config.environment["PATH"]]
)
# Tests look at what is on stderr, and machines may be slow.
config.environment["FLASH_MLIR_QUIET"] = "1"
# `make test-all`: suite.py then takes every case (--shard any/N).
if "FLASH_TEST_ALL" in os.environ:
    config.environment["FLASH_TEST_ALL"] = os.environ["FLASH_TEST_ALL"]
if config.assertions == "ON":
    config.available_features.add("assertions")
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%cc", config.cc))
config.substitutions.append(("%cxx", config.cxx))
# `make python` installs the package there.
venv = os.path.join(config.flash_build_dir, "python")
config.substitutions.append(("%venv_python", os.path.join(venv, "bin", "python")))
if os.path.exists(os.path.join(venv, "installed")):
    config.available_features.add("python-package")
# `make test` installs Sphinx there.
if os.path.exists(os.path.join(config.flash_build_dir, "sphinx", "requirements.txt")):
    config.available_features.add("sphinx")
config.substitutions.append(("%source_dir", config.flash_source_dir))
config.substitutions.append(("%build_dir", config.flash_build_dir))
config.substitutions.append(("%examples", os.path.join(config.flash_source_dir, "examples")))


def find_gpu():
    """The compute capability of the first device, or None where the CUDA driver is not here or sees no device."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    count, device = ctypes.c_int(0), ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or count.value == 0:
        return None
    driver.cuDeviceGet(ctypes.byref(device), 0)
    major_and_minor = []
    # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
    for attribute in (75, 76):
        value = ctypes.c_int(0)
        driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        major_and_minor.append(value.value)
    return tuple(major_and_minor)


capability = find_gpu()
if capability:
    config.available_features.add("cuda")
if capability == (9, 0):
    config.available_features.add("hopper")
if subprocess.run([config.python, "-c", "import numpy, matplotlib"], capture_output=True).returncode == 0:
    config.available_features.add("matplotlib")
for tool in ("git", "ptxas", "pkg-config"):
    if shutil.which(tool):
        config.available_features.add(tool)
