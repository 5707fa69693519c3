# How a flash library and a flash tool are built and linked.

# Tools and libraries of LLVM and MLIR that are linked statically need only
# glibc, so they can be copied to a machine without LLVM (see `make dist`).
execute_process(
  COMMAND "${LLVM_TOOLS_BINARY_DIR}/llvm-config" --link-static --libnames
          nvptx native orcjit passes linker asmparser irreader bitreader
          bitwriter coverage frontendopenmp targetparser perfjitevents lto
          supportlsp hipstdpar mcjit jitlink
  OUTPUT_VARIABLE flash_llvm_names OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE " " ";" flash_llvm_names "${flash_llvm_names}")
file(GLOB flash_mlir_archives "${LLVM_LIBRARY_DIR}/libMLIR*.a")
list(FILTER flash_mlir_archives EXCLUDE REGEX "libMLIR(CAPI|.*Test|JitRunner)")
set(FLASH_STATIC_LINK -Wl,--start-group ${flash_mlir_archives})
foreach(name IN LISTS flash_llvm_names)
  # llvm-config names Polly's archives, which the packages do not carry.
  if(NOT name MATCHES "Polly")
    list(APPEND FLASH_STATIC_LINK "${LLVM_LIBRARY_DIR}/${name}")
  endif()
endforeach()
list(APPEND FLASH_STATIC_LINK -Wl,--end-group -static-libstdc++ -static-libgcc
     -fuse-ld=lld -Wl,--gc-sections -Wl,--icf=all -Wl,-Bstatic -lz -lzstd -Wl,-Bdynamic -lpthread -ldl -lm)

function(flash_precompile target header)
  add_library(${target} OBJECT "${PROJECT_SOURCE_DIR}/cmake/Precompiled.cpp")
  target_precompile_headers(${target} PRIVATE "${PROJECT_SOURCE_DIR}/${header}")
  # The same headers make the same file, as ccache needs it.
  target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
endfunction()

# Most of the cost of a translation unit is parsing MLIR's headers, so every
# library reuses one precompiled header.
flash_precompile(FlashPrecompiled cmake/Precompiled.h)

# Libraries about a dialect have its operations in a precompiled header of their
# own, which Clang chains to the shared one. So other libraries are not compiled
# again when the dialect changes.
set(flash_shared_pch
    "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/FlashPrecompiled.dir/cmake_pch.hxx.pch")
foreach(name IN ITEMS Flash Tile)
  set(target FlashPrecompiled${name})
  flash_precompile(${target} include/flash/Dialect/${name}/IR/${name}.h)
  target_compile_options(${target} PRIVATE
    "SHELL:-Xclang -include-pch -Xclang ${flash_shared_pch}")
  set_source_files_properties(
    "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.cxx"
    PROPERTIES OBJECT_DEPENDS "${flash_shared_pch}")
  add_dependencies(${target} FlashPrecompiled flash-headers)
endforeach()

# DIALECT is Flash or Tile if most files of the library include its operations.
function(flash_add_library name)
  cmake_parse_arguments(ARG "" "DIALECT" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  target_precompile_headers(${name} REUSE_FROM FlashPrecompiled${ARG_DIALECT})
  add_dependencies(${name} flash-headers)
endfunction()

# Links the shared libraries of LLVM and MLIR, which takes a second. To name any
# other MLIR target beside `MLIR` would register every command-line option twice.
function(flash_add_tool name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  # As the precompiled header, which goes into libraries too.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  target_precompile_headers(${name} REUSE_FROM FlashPrecompiled)
  add_dependencies(${name} flash-headers)
  target_link_libraries(${name} PRIVATE ${ARG_LINK} MLIR LLVM)
endfunction()

# Generates the page docs/reference/<page>.md of the build directory from a .td
# file below include/. `make docs` copies the pages into the source directory.
function(flash_add_doc page td)
  set(output "${PROJECT_BINARY_DIR}/reference/${page}.md")
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/reference")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/*.td")
  add_custom_command(OUTPUT "${output}"
    COMMAND "${MLIR_TABLEGEN_EXE}" ${ARGN} "${PROJECT_SOURCE_DIR}/include/${td}"
            -I "${PROJECT_SOURCE_DIR}/include" -I "${MLIR_INCLUDE_DIRS}"
            -o "${output}"
    DEPENDS ${sources} VERBATIM)
  set_property(GLOBAL APPEND PROPERTY FLASH_DOCS "${output}")
endfunction()
