/* A stand-in for nouveau.ko: metadata only, for kmod to read; the simulated kernel binds GPUs when it is loaded. */
#define INFO(name, text) static const char name[] __attribute__((used, section(".modinfo"), aligned(1))) = text
INFO(info_license, "license=GPL and additional rights");
INFO(info_description, "description=nVidia Riva/TNT/GeForce/Quadro/Tesla/Tegra K1+ (simulated)");
INFO(info_alias, "alias=pci:v000010DEd*sv*sd*bc03sc*i*");
INFO(info_depends, "depends=");
INFO(info_intree, "intree=Y");
INFO(info_name, "name=nouveau");
INFO(info_vermagic, "vermagic=" RELEASE " SMP preempt mod_unload modversions ");
