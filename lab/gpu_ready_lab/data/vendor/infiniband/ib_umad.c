/* A stand-in for the kernel's ib_umad.ko: metadata only, for kmod to read. */
#define INFO(name, text) static const char name[] __attribute__((used, section(".modinfo"), aligned(1))) = text
INFO(info_license, "license=Dual BSD/GPL");
INFO(info_description, "description=InfiniBand userspace MAD packet access (simulated)");
INFO(info_depends, "depends=");
INFO(info_intree, "intree=Y");
INFO(info_name, "name=ib_umad");
INFO(info_vermagic, "vermagic=" KERNEL " SMP preempt mod_unload modversions ");
