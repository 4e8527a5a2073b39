/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef _LINUX_ERRNO_H
#define _LINUX_ERRNO_H
#define EINVAL 22
#define ENODEV 19
#endif
