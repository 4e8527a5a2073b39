// SPDX-License-Identifier: GPL-2.0
/*
 * Replaces nouveau in guests of the gpu-ready lab: it takes the GPUs as nouveau does, and does nothing with them.
 *
 * The real one is loaded by udev too, but it finds no video BIOS on the pretended functions and lets them go; on a real
 * machine it keeps them, and NVIDIA's module cannot have them before the next boot.
 */
#include <linux/module.h>
#include <linux/pci.h>

static int probe(struct pci_dev *device, const struct pci_device_id *id)
{
	pci_info(device, "taken by the lab's nouveau\n");
	return 0;
}

static void release(struct pci_dev *device)
{
}

static const struct pci_device_id ids[] = {
	{
		PCI_DEVICE(PCI_VENDOR_ID_NVIDIA, PCI_ANY_ID),
		.class = PCI_BASE_CLASS_DISPLAY << 16, .class_mask = 0xff << 16,
	},
	{ }
};
MODULE_DEVICE_TABLE(pci, ids);

static struct pci_driver taker = { .name = "nouveau", .id_table = ids, .probe = probe, .remove = release };

module_pci_driver(taker);
MODULE_DESCRIPTION("Takes GPUs as nouveau does, for the gpu-ready lab");
MODULE_LICENSE("GPL");
