// SPDX-License-Identifier: GPL-2.0
/*
 * A PCI host bridge with NVIDIA functions that do not exist, for the virtual machines of the gpu-ready lab.
 *
 *   insmod gpu_ready_pci.ko ids=0x1b38,0x1b38 boot0=0x132000a1,0x132000a1 base=0x20000000
 *
 * NVIDIA's driver identifies a chip by its first register (PMC_BOOT_0) before it does anything else, so each function
 * gets registers: 64 MiB of RAM reserved on the kernel's command line (memmap=), with boot0 written to it. The driver
 * loads, probes, makes its /proc files and device nodes; starting an adapter fails, since there is no firmware.
 */
#include <linux/io.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <asm/pci.h>

#define MOST 8
#define REGISTERS 0x1000000	/* BAR 0: 16 MiB */
#define FRAMEBUFFER 0x2000000	/* BAR 1: 32 MiB, prefetchable */
#define STRIDE 0x4000000	/* memory of one function */
#define BOOT_0 0x0
#define BOOT_42 0xa00		/* where chips since Turing are asked */

static unsigned int ids[MOST], boot0[MOST], subsystems[MOST], classes[MOST], nids, nboot0, nsubsystems, nclasses;
module_param_array(ids, uint, &nids, 0444);
MODULE_PARM_DESC(ids, "PCI device ids, one for each function");
module_param_array(boot0, uint, &nboot0, 0444);
MODULE_PARM_DESC(boot0, "what register PMC_BOOT_0 of each function says");
module_param_array(subsystems, uint, &nsubsystems, 0444);
MODULE_PARM_DESC(subsystems, "subsystem device ids (the vendor is NVIDIA)");
module_param_array(classes, uint, &nclasses, 0444);
MODULE_PARM_DESC(classes, "class codes with programming interface; 0x030200 where there is none");
static unsigned long base;
module_param(base, ulong, 0444);
MODULE_PARM_DESC(base, "physical address of the reserved RAM, 64 MiB for each function");
static int domain = 1;
module_param(domain, int, 0444);
MODULE_PARM_DESC(domain, "PCI domain of the bridge");

static u8 space[MOST][256];
static struct pci_sysdata sysdata = { .node = NUMA_NO_NODE };
static struct platform_device *parent;
static struct pci_bus *root;
static struct resource numbers = { .name = "gpu-ready bus", .start = 0, .end = 0xff, .flags = IORESOURCE_BUS };
static struct resource window = { .name = "gpu-ready window", .flags = IORESOURCE_MEM };

static int function_of(struct pci_bus *bus, unsigned int devfn)
{
	bool ours = bus->number == 0 && PCI_FUNC(devfn) == 0 && PCI_SLOT(devfn) < nids;

	return ours ? PCI_SLOT(devfn) : -1;
}

static int space_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *value)
{
	int i = function_of(bus, devfn);

	if (i < 0) {
		*value = ~0u;
		return PCIBIOS_DEVICE_NOT_FOUND;
	}
	*value = 0;
	if (where + size <= sizeof(space[i]))
		memcpy(value, &space[i][where], size);
	return PCIBIOS_SUCCESSFUL;
}

/* Writing all ones to a BAR and reading it back is how its size is asked. */
static int space_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
	int i = function_of(bus, devfn);

	if (i < 0)
		return PCIBIOS_DEVICE_NOT_FOUND;
	if (where + size > sizeof(space[i]))
		return PCIBIOS_SUCCESSFUL;
	if (where == PCI_BASE_ADDRESS_0 && size == 4)
		value &= ~(REGISTERS - 1u);
	else if (where == PCI_BASE_ADDRESS_1 && size == 4)
		value = (value & ~(FRAMEBUFFER - 1u)) | PCI_BASE_ADDRESS_MEM_PREFETCH;
	else if (where != PCI_INTERRUPT_LINE && !(where >= PCI_COMMAND && where < PCI_STATUS))
		return PCIBIOS_SUCCESSFUL;
	memcpy(&space[i][where], &value, size);
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops operations = { .read = space_read, .write = space_write };

static void describe(int i)
{
	u8 *s = space[i];

	*(u16 *)(s + PCI_VENDOR_ID) = PCI_VENDOR_ID_NVIDIA;
	*(u16 *)(s + PCI_DEVICE_ID) = ids[i];
	*(u16 *)(s + PCI_STATUS) = PCI_STATUS_CAP_LIST;
	*(u32 *)(s + PCI_CLASS_REVISION) = (i < nclasses ? classes[i] : 0x030200) << 8 | 0xa1;
	*(u16 *)(s + PCI_SUBSYSTEM_VENDOR_ID) = PCI_VENDOR_ID_NVIDIA;
	*(u16 *)(s + PCI_SUBSYSTEM_ID) = i < nsubsystems ? subsystems[i] : 1;
	*(u32 *)(s + PCI_BASE_ADDRESS_0) = base + i * STRIDE + FRAMEBUFFER;
	*(u32 *)(s + PCI_BASE_ADDRESS_1) = (base + i * STRIDE) | PCI_BASE_ADDRESS_MEM_PREFETCH;
	s[PCI_INTERRUPT_PIN] = 1;
	s[PCI_INTERRUPT_LINE] = 11;
	s[PCI_CAPABILITY_LIST] = 0x60;
	s[0x60] = PCI_CAP_ID_PM;
	s[0x61] = 0x78;
	s[0x62] = 3;
	s[0x78] = PCI_CAP_ID_EXP;
	s[0x7a] = 2;			/* an endpoint, version 2 */
	*(u32 *)(s + 0x7c) = 0x8001;
	*(u32 *)(s + 0x84) = 0x103;	/* 8 GT/s, 16 lanes */
	*(u16 *)(s + 0x8a) = 0x1103;
}

static void write_registers(struct pci_dev *device)
{
	unsigned int i = PCI_SLOT(device->devfn);
	void __iomem *registers = ioremap(pci_resource_start(device, 0), PAGE_SIZE);

	if (!registers) {
		pci_err(device, "its registers cannot be mapped\n");
		return;
	}
	if (i < nboot0) {
		writel(boot0[i], registers + BOOT_0);
		writel(boot0[i], registers + BOOT_42);
	}
	iounmap(registers);
}

static int __init start(void)
{
	struct pci_dev *device;
	LIST_HEAD(resources);
	int i;

	if (!nids || !base)
		return -EINVAL;
	for (i = 0; i < nids; i++)
		describe(i);
	sysdata.domain = domain;
	parent = platform_device_register_simple("gpu-ready-pci", -1, NULL, 0);
	if (IS_ERR(parent))
		return PTR_ERR(parent);
	window.start = base;
	window.end = base + nids * STRIDE - 1;
	pci_add_resource(&resources, &numbers);
	pci_add_resource(&resources, &window);
	root = pci_create_root_bus(&parent->dev, 0, &operations, &sysdata, &resources);
	if (!root) {
		pci_free_resource_list(&resources);
		platform_device_unregister(parent);
		return -ENODEV;
	}
	/* The BARs are where describe() put them: the kernel only claims them, since it would place them elsewhere. */
	pci_scan_child_bus(root);
	pci_bus_claim_resources(root);
	list_for_each_entry(device, &root->devices, bus_list)
		write_registers(device);
	pci_bus_add_devices(root);
	return 0;
}

static void __exit stop(void)
{
	pci_lock_rescan_remove();
	pci_stop_root_bus(root);
	pci_remove_root_bus(root);
	pci_unlock_rescan_remove();
	platform_device_unregister(parent);
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("PCI functions that do not exist, for the gpu-ready lab");
MODULE_LICENSE("GPL");
