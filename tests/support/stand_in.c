#include "support/stand_in.h"

void in_a_process(const char *variable, const char *file, const char *control, void **handle,
                  void (*test)(void)) {
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (file)
            setenv(variable, file, 1);
        else
            unsetenv(variable);
        void *library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
        void *symbol = library ? dlsym(library, control) : NULL;
        if (symbol) {
            void *(*call)(void);
            memcpy(&call, &symbol, sizeof call);
            *handle = call();
        }
        test_broken = 0;
        test();
        exit(test_broken);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
