/* A stand-in for the kernel's own modules: metadata only. DKMS takes a kernel without any module for one that was removed
 * and deletes its modules.dep (dkms 3.2, do_depmod), so the pretended kernel has one. */
#define INFO(name, text) static const char name[] __attribute__((used, section(".modinfo"), aligned(1))) = text
INFO(info_license, "license=GPL");
INFO(info_description, "description=Dummy netdevice driver (simulated)");
INFO(info_depends, "depends=");
INFO(info_intree, "intree=Y");
INFO(info_name, "name=dummy");
INFO(info_vermagic, "vermagic=" RELEASE " SMP preempt mod_unload modversions ");
