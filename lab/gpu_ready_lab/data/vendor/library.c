/* A library with a name, a SONAME and a version, and nothing else. */
const char gpu_ready_lab_stub[] = "gpu-ready lab stand-in, version " VERSION;
