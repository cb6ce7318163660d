# ronda_room(NAME [DEPENDS rooms…] [PUBLIC libraries…] [PRIVATE libraries…] [FOLDERS …] [CUDA folder] [CUDA_PRIVATE libraries…]
#            [WITH folder library …])
# One static library a room, from every source of the folder and the subfolders named in FOLDERS. Other rooms include the headers at its
# root, and those that public_headers.txt lists: these are installed under their own paths. A build for GPUs has the sources of the
# subfolder CUDA and its libraries too. One without has no_NAME.cpp instead, beside the subfolder NAME: the same functions, which say that
# there is no GPU.
# WITH has pairs of a subfolder and a library that is optional: where that was not found, no_FOLDER.cpp has the functions likewise. A
# program that does not call these does not load the library: it is linked as needed, and nothing else is compiled with the folder.
set(RONDA_PUBLIC_HEADERS ${CMAKE_CURRENT_LIST_DIR}/public_headers.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${RONDA_PUBLIC_HEADERS})

function(ronda_room name)
  cmake_parse_arguments(room "" "CUDA" "DEPENDS;PUBLIC;PRIVATE;FOLDERS;CUDA_PRIVATE;WITH" ${ARGN})
  set(vendors "")
  if(room_CUDA AND RONDA_CUDA)
    list(APPEND vendors ${room_CUDA})
    list(APPEND room_PRIVATE ${room_CUDA_PRIVATE})
  endif()
  set(apart "")
  while(room_WITH)
    list(POP_FRONT room_WITH folder library)
    if(TARGET ${library})
      list(APPEND vendors ${folder})
      list(APPEND room_PRIVATE ${library})
      file(GLOB more ${folder}/*.cpp)
      list(APPEND apart ${more})
    endif()
  endwhile()
  set_source_files_properties(${apart} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  foreach(folder IN LISTS room_FOLDERS vendors)
    file(GLOB more CONFIGURE_DEPENDS ${folder}/*.cpp ${folder}/*.cu)
    list(APPEND sources ${more})
  endforeach()
  foreach(folder IN LISTS vendors)
    get_filename_component(vendor ${folder} NAME)
    list(FILTER sources EXCLUDE REGEX "/no_${vendor}\\.cpp$")
  endforeach()
  add_library(ronda_${name} STATIC ${sources})
  add_library(ronda::${name} ALIAS ronda_${name})
  set_target_properties(ronda_${name} PROPERTIES EXPORT_NAME ${name})
  if(RONDA_SANITIZE)  # only what tests there link
    set_target_properties(ronda_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  target_compile_features(ronda_${name} PUBLIC cxx_std_20)
  target_include_directories(ronda_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
                                                  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  ronda_compile_options(ronda_${name})
  if(apart)
    target_link_options(ronda_${name} INTERFACE LINKER:--as-needed)
  endif()
  list(TRANSFORM room_DEPENDS PREPEND ronda::)
  target_link_libraries(ronda_${name} PUBLIC ${room_DEPENDS} ${room_PUBLIC} PRIVATE ${room_PRIVATE})
  file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  file(STRINGS ${RONDA_PUBLIC_HEADERS} headers REGEX "^${path}/[a-z0-9_/]+[.]hpp")
  list(TRANSFORM headers REPLACE " .*" "")
  foreach(header IN LISTS headers)
    get_filename_component(folder ${header} DIRECTORY)
    install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ronda/${folder})
  endforeach()
  install(TARGETS ronda_${name} EXPORT ronda ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# Warnings, and the flags on which equal bits rest: no contraction that the source does not spell out.
function(ronda_compile_options target)
  set(options -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wno-restrict # GCC 12 warns of its own std::string
              -ffp-contract=off)
  list(JOIN options "," host_options)
  target_compile_options(${target} PRIVATE "$<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:${options};-Wpedantic;-fno-math-errno>"
                                           "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${host_options};--fmad=false;--expt-relaxed-constexpr>")
  if(RONDA_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${RONDA_SANITIZE} -fno-omit-frame-pointer ${RONDA_NOT_SANITIZED})
    # A program ends where its behaviour is undefined: otherwise it goes on, and a test passes. AddressSanitizer says at which line; code
    # that says more would take a quarter of the time to compile.
    if(RONDA_SANITIZE MATCHES undefined)
      target_compile_options(${target} PRIVATE -fsanitize-undefined-trap-on-error)
    endif()
    if(RONDA_SANITIZE MATCHES address)  # which sees null pointers that are used, and what is read beyond an object
      target_compile_options(${target} PRIVATE -fno-sanitize=null,object-size)
    endif()
    # Looking at every address takes a third of the time to compile: where numbers are made of a message's or a file's bytes.
    if(RONDA_SANITIZE MATCHES undefined AND NOT target MATCHES "^ronda_(core|collectives|coordinator|key_value|data|io|checkpointing)$")
      target_compile_options(${target} PRIVATE -fno-sanitize=alignment)
    endif()
    target_compile_definitions(${target} PRIVATE XXH_NO_INLINE_HINTS=1)  # xxHash insists on more than -Og does
    target_link_options(${target} PUBLIC -fsanitize=${RONDA_SANITIZE})
    find_program(RONDA_LLD ld.lld)
    if(RONDA_LLD)  # half of the time, of a second for each program
      target_link_options(${target} PUBLIC -fuse-ld=lld)
    endif()
  endif()
  if(CMAKE_UNITY_BUILD)
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage) # a file's own class may hold its own types
  endif()
  if(RONDA_COVERAGE)
    target_compile_options(${target} PRIVATE --coverage)
    target_link_options(${target} PUBLIC --coverage)
  endif()
endfunction()

# Under a sanitizer tests spend half of their time in the loops of these sources, which are therefore optimised, unlike all others.
macro(ronda_optimize_under_sanitizers)
  if(RONDA_SANITIZE)
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON COMPILE_OPTIONS -O2)
  endif()
endmacro()
