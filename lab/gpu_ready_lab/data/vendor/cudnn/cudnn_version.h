/* Stand-in of the gpu-ready lab: the macros that give the version of cuDNN. */
#ifndef CUDNN_VERSION_H_
#define CUDNN_VERSION_H_

#define CUDNN_MAJOR @major@
#define CUDNN_MINOR @minor@
#define CUDNN_PATCHLEVEL @patch@

#define CUDNN_VERSION (CUDNN_MAJOR * @factor@ + CUDNN_MINOR * 100 + CUDNN_PATCHLEVEL)

#endif
