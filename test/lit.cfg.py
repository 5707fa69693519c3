# The lit suite: how tests are found and which tools their RUN lines name.
import os
import shutil

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
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%cc", config.cc))
config.substitutions.append(("%source_dir", config.flash_source_dir))
config.substitutions.append(("%build_dir", config.flash_build_dir))
config.substitutions.append(("%examples", os.path.join(config.flash_source_dir, "examples")))
if shutil.which("ptxas"):
    config.available_features.add("ptxas")
