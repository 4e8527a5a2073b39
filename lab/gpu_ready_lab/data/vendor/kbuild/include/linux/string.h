/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <linux/errno.h>
int strcmp(const char *one, const char *other);
