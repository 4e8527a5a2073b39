/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the lab's module sources use of the kernel's module.h: tags in .modinfo, and names of exported symbols. */
#ifndef _LINUX_MODULE_H
#define _LINUX_MODULE_H
#define GRL_JOIN2(a, b) a##b
#define GRL_JOIN(a, b) GRL_JOIN2(a, b)
#define MODULE_INFO(tag, text) \
	static const char GRL_JOIN(grl_info_, __COUNTER__)[] __attribute__((used, section(".modinfo"), aligned(1))) = #tag "=" text
#define MODULE_LICENSE(text) MODULE_INFO(license, text)
#define MODULE_VERSION(text) MODULE_INFO(version, text)
#define MODULE_AUTHOR(text) MODULE_INFO(author, text)
#define MODULE_DESCRIPTION(text) MODULE_INFO(description, text)
#define MODULE_ALIAS(text) MODULE_INFO(alias, text)
#define MODULE_FIRMWARE(text) MODULE_INFO(firmware, text)
#define EXPORT_SYMBOL(name) \
	const char __ksymtab_##name[] __attribute__((used, section("__ksymtab_strings"), aligned(1))) = #name
#define EXPORT_SYMBOL_GPL(name) EXPORT_SYMBOL(name)
#define module_init(function) int init_module(void) { return function(); }
#define module_exit(function) void cleanup_module(void) { function(); }
#endif
