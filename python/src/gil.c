/*
 * A door that those who go into Python hold open, and that the end of the interpreter closes.
 */
#include "gil.h"

#include <pthread.h>
#include <unistd.h>

/* Held for reading by those inside Python. */
static pthread_rwlock_t door = PTHREAD_RWLOCK_INITIALIZER;
static bool is_closed;
static pid_t process;

bool gil_take(PyGILState_STATE *state) {
    pthread_rwlock_rdlock(&door);
    if (is_closed) {
        pthread_rwlock_unlock(&door);
        return false;
    }
    *state = PyGILState_Ensure();
    return true;
}

void gil_give(PyGILState_STATE state) {
    PyGILState_Release(state);
    pthread_rwlock_unlock(&door);
}

/* Waits for those inside. In the child of a fork they are not there, and will not open the door. */
static PyObject *close_door(PyObject *self, PyObject *arguments) {
    (void)self, (void)arguments;
    Py_BEGIN_ALLOW_THREADS
        bool is_mine = process == getpid();
        if (is_mine)
            pthread_rwlock_wrlock(&door);
        is_closed = true;
        if (is_mine)
            pthread_rwlock_unlock(&door);
    Py_END_ALLOW_THREADS
    return Py_NewRef(Py_None);
}

bool gil_watch_end(void) {
    static PyMethodDef method = {"close_door", close_door, METH_NOARGS, NULL};
    process = getpid();
    PyObject *function = PyCFunction_New(&method, NULL);
    PyObject *atexit = function ? PyImport_ImportModule("atexit") : NULL;
    PyObject *answer = atexit ? PyObject_CallMethod(atexit, "register", "O", function) : NULL;
    Py_XDECREF(answer);
    Py_XDECREF(atexit);
    Py_XDECREF(function);
    return answer != NULL;
}
