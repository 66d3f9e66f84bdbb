# The man pages, if scdoc is installed: `man` is a part of the build.
find_program(SCDOC scdoc)
find_package(Python3 COMPONENTS Interpreter QUIET)
if(NOT SCDOC OR NOT Python3_Interpreter_FOUND)
    message(STATUS "No man pages: scdoc or python3 is not installed")
    return()
endif()

file(GLOB MANUAL_SOURCES CONFIGURE_DEPENDS
    client/doc/man/*.scd.in daemon/doc/man/*.scd.in topo/doc/man/*.scd.in
    client/include/torus/*.h scripts/manual/*.py topo/torus_net/*.py)
set(MANUAL_FOLDER ${PROJECT_BINARY_DIR}/man)
set(MANUAL_STAMP ${PROJECT_BINARY_DIR}/man.stamp)
# Programs that are built for another machine run in an emulator.
set(MANUAL_EMULATOR "")
if(CMAKE_CROSSCOMPILING)
    if(NOT CMAKE_CROSSCOMPILING_EMULATOR)
        message(STATUS "No man pages: they need CMAKE_CROSSCOMPILING_EMULATOR")
        return()
    endif()
    set(MANUAL_EMULATOR --emulator ${CMAKE_CROSSCOMPILING_EMULATOR})
endif()
add_custom_command(OUTPUT ${MANUAL_STAMP}
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/manual/__main__.py
        --torusctl-tables $<TARGET_FILE:torusctl_tables> --torusd-tables $<TARGET_FILE:torusd_tables>
        ${MANUAL_EMULATOR} --scdoc ${SCDOC} --version ${PROJECT_VERSION} ${MANUAL_FOLDER}
    COMMAND ${CMAKE_COMMAND} -E touch ${MANUAL_STAMP}
    DEPENDS torusctl_tables torusd_tables ${MANUAL_SOURCES}
    COMMENT "Writing the man pages"
    VERBATIM)
add_custom_target(man ALL DEPENDS ${MANUAL_STAMP})
install(DIRECTORY ${MANUAL_FOLDER}/ DESTINATION ${CMAKE_INSTALL_MANDIR})
