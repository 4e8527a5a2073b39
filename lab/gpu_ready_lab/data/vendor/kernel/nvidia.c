// SPDX-License-Identifier: GPL-2.0-or-later
/* A stand-in for NVIDIA's kernel module: the same name, version, licence text and PCI aliases, and nothing behind
 * them. It is built by DKMS like the real one. The source is ours; MODULE_LICENSE says what the real module of this
 * flavour says, because that text is what programs read. */
#include <linux/init.h>
#include <linux/module.h>

#include "nvidia.h"

const char *nvidia_driver_version(void)
{
	return "@version@";
}
EXPORT_SYMBOL(nvidia_driver_version);

static int __init nvidia_init_module(void)
{
	return 0;
}

static void __exit nvidia_exit_module(void)
{
}

module_init(nvidia_init_module);
module_exit(nvidia_exit_module);

MODULE_LICENSE("@license@");
MODULE_VERSION("@version@");
MODULE_INFO(supported, "external");
MODULE_DESCRIPTION("gpu-ready lab: stand-in for nvidia");
MODULE_ALIAS("char-major-195-*");
MODULE_ALIAS("pci:v000010DEd*sv*sd*bc03sc00i00*");
MODULE_ALIAS("pci:v000010DEd*sv*sd*bc03sc02i00*");
MODULE_ALIAS("pci:v000010DEd*sv*sd*bc06sc80i00*");
