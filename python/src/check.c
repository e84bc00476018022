/*
 * cogpu_check as a dict: verdicts, counts and findings.
 */
#include "fields.h"
#include "file.h"
#include "gil.h"

static PyObject *finding_object(const cogpu_finding *finding) {
    static const struct field fields[] = {
        FIELD(cogpu_finding, rule, FIELD_TEXT),     FIELD(cogpu_finding, advice, FIELD_TEXT),
        FIELD(cogpu_finding, directory, FIELD_I32), FIELD(cogpu_finding, block, FIELD_I64),
        FIELD(cogpu_finding, offset, FIELD_I64),    FIELD(cogpu_finding, more, FIELD_U64)};
    PyObject *dict = fields_dict(fields, FIELD_COUNT(fields), finding), *validators = PyList_New(0);
    bool is_made =
        dict && validators &&
        dict_add(dict, "severity", text_object(cogpu_severity_name(finding->severity))) &&
        dict_add(dict, "message", text_object(finding->message)) &&
        (!(finding->validators & COGPU_RULE_OF_GDAL) ||
         list_add(validators, PyUnicode_FromString("gdal"))) &&
        (!(finding->validators & COGPU_RULE_OF_RIO_COGEO) ||
         list_add(validators, PyUnicode_FromString("rio_cogeo"))) &&
        (!(finding->validators & COGPU_RULE_OF_OGC) ||
         list_add(validators, PyUnicode_FromString("ogc")));
    if (is_made && dict_add(dict, "validators", validators))
        return dict;
    if (!is_made)
        Py_XDECREF(validators);
    Py_XDECREF(dict);
    return NULL;
}

/* Failures stay raised, and the check ends with them. */
static void add_finding(void *user, const cogpu_finding *finding) {
    PyGILState_STATE state;
    if (!gil_take(&state))
        return;
    if (!PyErr_Occurred())
        list_add(user, finding_object(finding));
    gil_give(state);
}

static PyObject *checked_object(const cogpu_checked *checked, PyObject *findings) {
    static const struct field fields[] = {
        FIELD(cogpu_checked, errors, FIELD_U64), FIELD(cogpu_checked, warnings, FIELD_U64),
        FIELD(cogpu_checked, notes, FIELD_U64), FIELD(cogpu_checked, blocks, FIELD_U64)};
    PyObject *dict = fields_dict(fields, FIELD_COUNT(fields), checked);
    if (dict && dict_add(dict, "verdict", text_object(cogpu_verdict_name(checked->verdict))) &&
        dict_add(dict, "gdal", text_object(cogpu_verdict_name(checked->gdal))) &&
        dict_add(dict, "rio_cogeo", text_object(cogpu_verdict_name(checked->rio_cogeo))) &&
        dict_add(dict, "ogc", text_object(cogpu_verdict_name(checked->ogc))) &&
        dict_add(dict, "findings", Py_NewRef(findings)))
        return dict;
    Py_XDECREF(dict);
    return NULL;
}

PyObject *file_check(PyObject *module, PyObject *arguments, PyObject *words) {
    static char *names[] = {"file", "strict", NULL};
    PyObject *file = NULL, *made = NULL;
    cogpu_check_options options = COGPU_CHECK_OPTIONS_INIT;
    cogpu_checked checked = COGPU_CHECKED_INIT;
    cogpu_error error;
    cogpu_status status;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(arguments, words, "O|$p", names, &file, &options.strict))
        return NULL;
    struct handle *handle = file_take(file);
    PyObject *findings = handle ? PyList_New(0) : NULL;
    if (findings) {
        Py_BEGIN_ALLOW_THREADS
            status =
                cogpu_check(handle_file(handle), &options, add_finding, findings, &checked, &error);
        Py_END_ALLOW_THREADS
        if (!PyErr_Occurred())
            made = status == COGPU_OK ? checked_object(&checked, findings)
                                      : handle_raise(handle, &error);
    }
    Py_XDECREF(findings);
    handle_drop(handle);
    return made;
}
