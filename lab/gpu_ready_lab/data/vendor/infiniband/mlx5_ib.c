/* A stand-in for the kernel's mlx5_ib.ko: metadata only, for kmod to read. */
#define INFO(name, text) static const char name[] __attribute__((used, section(".modinfo"), aligned(1))) = text
INFO(info_license, "license=Dual BSD/GPL");
INFO(info_description, "description=Mellanox 5th generation network adapters (ConnectX series) IB driver (simulated)");
INFO(info_depends, "depends=");
INFO(info_intree, "intree=Y");
INFO(info_name, "name=mlx5_ib");
INFO(info_vermagic, "vermagic=" KERNEL " SMP preempt mod_unload modversions ");
