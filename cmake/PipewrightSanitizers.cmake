# Sanitizers apply to every target, or none: mixing instrumented and plain objects hides errors.
if(PIPEWRIGHT_SANITIZE)
  add_compile_options(-fsanitize=${PIPEWRIGHT_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${PIPEWRIGHT_SANITIZE})
endif()
