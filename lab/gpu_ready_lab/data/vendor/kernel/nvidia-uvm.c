// SPDX-License-Identifier: GPL-2.0-or-later
/* A stand-in for nvidia-uvm: it needs nvidia, as the real one does. See nvidia.c about its licence text. */
#include <linux/init.h>
#include <linux/module.h>
#include <linux/string.h>

#include "nvidia.h"

static int __init nvidia_uvm_init(void)
{
	return strcmp(nvidia_driver_version(), "@version@") == 0 ? 0 : -EINVAL;
}

static void __exit nvidia_uvm_exit(void)
{
}

module_init(nvidia_uvm_init);
module_exit(nvidia_uvm_exit);

MODULE_LICENSE("@license@");
MODULE_VERSION("@version@");
MODULE_INFO(supported, "external");
MODULE_DESCRIPTION("gpu-ready lab: stand-in for nvidia-uvm");
