# The compute capabilities of this machine's NVIDIA GPUs, as nvidia-smi says them: paceline_gpus_here(RESULT) sets RESULT to a
# list such as 80;90, to "none" without a GPU, and to "unknown" where there is a GPU of which nvidia-smi does not say it.
# As a script (-P) this file prints the result.
function(paceline_gpus_here result)
  set(found none)
  find_program(PACELINE_NVIDIA_SMI nvidia-smi NO_CACHE)
  if(PACELINE_NVIDIA_SMI)
    execute_process(COMMAND ${PACELINE_NVIDIA_SMI} --query-gpu=compute_cap --format=csv,noheader
                    OUTPUT_VARIABLE said RESULT_VARIABLE failed ERROR_QUIET TIMEOUT 20)
    string(REGEX MATCHALL "[0-9]+\\.[0-9]+" versions "${said}")
    if(NOT failed AND versions)
      string(REPLACE "." "" found "${versions}")
      list(REMOVE_DUPLICATES found)
    endif()
  endif()
  file(GLOB devices /dev/nvidia[0-9]*)
  if(found STREQUAL none AND devices)
    set(found unknown)
  endif()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  paceline_gpus_here(here)
  message("${here}")
endif()
