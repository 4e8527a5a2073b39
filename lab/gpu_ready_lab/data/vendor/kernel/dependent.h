/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stand-in for a module that needs nvidia, as the real ones do. See nvidia.c about its licence text. */
#include <linux/init.h>
#include <linux/module.h>
#include <linux/string.h>

#include "nvidia.h"

static int __init start(void)
{
	return strcmp(nvidia_driver_version(), "@version@") == 0 ? 0 : -EINVAL;
}

static void __exit end(void)
{
}

module_init(start);
module_exit(end);

MODULE_LICENSE("@license@");
MODULE_VERSION("@version@");
MODULE_INFO(supported, "external");
MODULE_DESCRIPTION("gpu-ready lab: stand-in that needs nvidia");
