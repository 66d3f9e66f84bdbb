# The completions of torusctl and torusd for bash and zsh: `completions` is a part of the build.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(NOT Python3_Interpreter_FOUND)
    message(STATUS "No completions: python3 is not installed")
    return()
endif()
# Programs that are built for another machine run in an emulator.
set(COMPLETION_EMULATOR "")
if(CMAKE_CROSSCOMPILING)
    if(NOT CMAKE_CROSSCOMPILING_EMULATOR)
        message(STATUS "No completions: they need CMAKE_CROSSCOMPILING_EMULATOR")
        return()
    endif()
    set(COMPLETION_EMULATOR --emulator ${CMAKE_CROSSCOMPILING_EMULATOR})
endif()

file(GLOB COMPLETION_SOURCES CONFIGURE_DEPENDS scripts/completion/*.py)
set(COMPLETION_FOLDER ${PROJECT_BINARY_DIR}/completions)
set(COMPLETION_STAMP ${PROJECT_BINARY_DIR}/completions.stamp)
add_custom_command(OUTPUT ${COMPLETION_STAMP}
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/completion/__main__.py
        --torusctl-tables $<TARGET_FILE:torusctl_tables> --torusd-tables $<TARGET_FILE:torusd_tables>
        ${COMPLETION_EMULATOR} ${COMPLETION_FOLDER}
    COMMAND ${CMAKE_COMMAND} -E touch ${COMPLETION_STAMP}
    DEPENDS torusctl_tables torusd_tables ${COMPLETION_SOURCES}
    COMMENT "Writing the completions"
    VERBATIM)
add_custom_target(completions ALL DEPENDS ${COMPLETION_STAMP})
install(DIRECTORY ${COMPLETION_FOLDER}/bash/ DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(DIRECTORY ${COMPLETION_FOLDER}/zsh/ DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
