# cmake --install: libflash, its header, the tools, and what finds the library,
# a CMake package and a pkg-config file. An installed tree may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# LLVM's libraries may lie where the loader does not look.
foreach(target libflash flash-opt flash-run flash-translate flash-lsp-server)
  set_target_properties(${target} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
endforeach()
install(TARGETS libflash flash-opt flash-run flash-translate flash-lsp-server
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
# Tools.h is for the library of a wheel.
install(FILES "${PROJECT_SOURCE_DIR}/include/flash-c/Flash.h"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/flash-c")

# Written by hand: an exported target would ask for LLVM's and MLIR's packages.
# Not where find_package() would see a build as a prefix.
set(flash_files "${PROJECT_BINARY_DIR}/package")
set(flash_package "${CMAKE_INSTALL_LIBDIR}/cmake/FlashMLIR")
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/FlashMLIRConfig.cmake.in"
  "${flash_files}/FlashMLIRConfig.cmake"
  INSTALL_DESTINATION "${flash_package}"
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file("${flash_files}/FlashMLIRConfigVersion.cmake"
  COMPATIBILITY SameMajorVersion)
install(FILES "${flash_files}/FlashMLIRConfig.cmake"
              "${flash_files}/FlashMLIRConfigVersion.cmake"
  DESTINATION "${flash_package}")

set(flash_pkgconfig "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH flash_prefix "/${flash_pkgconfig}" "/")
configure_file("${PROJECT_SOURCE_DIR}/cmake/flash-mlir.pc.in"
  "${flash_files}/flash-mlir.pc" @ONLY)
install(FILES "${flash_files}/flash-mlir.pc" DESTINATION "${flash_pkgconfig}")
